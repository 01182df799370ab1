"""Times of day, spans of time, and the ratios that look like them."""

from __future__ import annotations

import re

from tts_engine.text.english import numbers
from tts_engine.text.english.scan import Scan
from tts_engine.text.english.vocabulary import vocabulary

_HALF = r"(?:[ \u00a0]?([AaPp])(?:\.[ ]?[Mm]\.?|[Mm])(?![A-Za-z]))"
_CLOCK = re.compile(rf"(\d{{1,2}}):(\d{{2}})(?::(\d{{2}}))?(?:[.]\d+)?{_HALF}?(?![\d:])(?!(?!ish)[A-Za-z]{{2}})")
_DOTTED_CLOCK = re.compile(rf"(\d{{1,2}})\.(\d{{2}}){_HALF}")
_HOUR = re.compile(rf"(\d{{1,2}}){_HALF}")
_HOUR_RANGE = re.compile(rf"(\d{{1,2}})(?: ?[-–] ?)(?=\d{{1,2}}(?::\d{{2}})?{_HALF})")
_DASH_DIGIT = re.compile(r" ?[-–] ?(?=\d)")
_HOURS_PER_DAY = 24
_RATIO = re.compile(r"\d{1,6}(?::\d{1,6}){1,3}(?![\d:])")


def say_clock(scan: Scan, hour: int, minute: str, second: str | None, half: str | None, start: int, end: int) -> None:
    if int(minute) == 0 and not int(second or 0):
        if half:
            words = numbers.cardinal(hour)
        elif hour in (0, _HOURS_PER_DAY):
            words = ["midnight"]
        elif hour > 12:
            words = [*numbers.cardinal(hour), "hundred"]
        else:
            words = [*numbers.cardinal(hour), "o'clock"]
    else:
        words = numbers.cardinal(hour) + _two_figures(minute)
        if second and int(second):
            words += ["and", *numbers.cardinal(int(second)), "second" if int(second) == 1 else "seconds"]
    scan.say(words, start, end)


def _two_figures(figures: str) -> list[str]:
    if figures == "00":
        return ["hundred"]
    return ["oh", numbers.ONES[int(figures)]] if figures[0] == "0" else numbers.cardinal(int(figures))


def _half_end(scan: Scan, letter_at: int, end: int) -> int:
    """The end of "a.m." at ``letter_at``: without its last dot where that is a full stop too."""
    if scan.text[end - 1] == "." and scan.ends_sentence(end - 1):
        return end - 1
    return end


def _say_half(scan: Scan, letter: str, start: int, end: int) -> int:
    end = _half_end(scan, start, end)
    scan.say([letter.upper(), "M"], start, end)
    return end


def read_time(scan: Scan, at: int) -> int | None:
    """10:30, 9:05 p.m., 10:30:15, 7pm, 9am-5pm, 5-6 pm; a ratio such as 3:1 is none."""
    match = _CLOCK.match(scan.text, at) or _DOTTED_CLOCK.match(scan.text, at)
    if match is not None:
        dotted = match.re is _DOTTED_CLOCK
        half_group = 3 if dotted else 4
        half, second = match[half_group], None if dotted else match[3]
        hour = int(match[1])
        if hour > _HOURS_PER_DAY or int(match[2]) > 59 or (second and int(second) > 59):
            return None
        if not half and any(
            word in vocabulary().before_ratio for word in [*scan.before(at)[-4:], scan.word_after(match.end()).lower()]
        ):
            return None
        end = match.end(3) if second else match.end(2)
        say_clock(scan, hour, match[2], second, half, at, end)
        if half:
            end = _say_half(scan, half, match.start(half_group), match.end())
        return _time_range(scan, end)
    match = _HOUR.match(scan.text, at)
    if match is not None and int(match[1]) <= _HOURS_PER_DAY:
        scan.say(numbers.cardinal(int(match[1])), at, match.end(1))
        return _time_range(scan, _say_half(scan, match[2], match.start(2), match.end()))
    match = _HOUR_RANGE.match(scan.text, at)
    if match is not None and int(match[1]) <= _HOURS_PER_DAY:
        scan.say(numbers.cardinal(int(match[1])), at, match.end(1))
        return _time_range(scan, match.end(1))
    return None


def _time_range(scan: Scan, end: int) -> int:
    """Say "to" for a dash between two times; the second is read by itself."""
    dash = _DASH_DIGIT.match(scan.text, end)
    if dash is None or not any(pattern.match(scan.text, dash.end()) for pattern in (_CLOCK, _HOUR)):
        return end
    scan.say("to", end, dash.end())
    return dash.end()


def read_ratio(scan: Scan, at: int) -> int | None:
    """3:1, 16:9, 1:2:3."""
    match = _RATIO.match(scan.text, at)
    if match is None:
        return None
    place = at
    for index, part in enumerate(match[0].split(":")):
        if index:
            scan.say("to", place - 1, place)
        scan.say(numbers.whole(part), place, place + len(part))
        place += len(part) + 1
    return match.end()
