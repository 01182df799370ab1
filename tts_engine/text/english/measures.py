"""Measures with a form of their own: dimensions, heights, angles, durations, powers of ten."""

from __future__ import annotations

import re

from tts_engine.text.english import numbers
from tts_engine.text.english.quantity import BY, number_at, read_fraction, read_quantity
from tts_engine.text.english.scan import Scan
from tts_engine.text.english.units import unit_at

_SCIENTIFIC = re.compile(r"(\d{1,15}(?:\.\d{1,15})?)(?:e|(?<=\.\d)E|(?<=\.\d\d)E|E(?=[-+]))([-+−]?)(\d{1,3})(?!\w)")
_DIMENSIONS = re.compile(r"(\d+(?:\.\d+)?)( ?[x×X] ?)(?=\d)")
_HEIGHT = re.compile(r"(\d{1,2})(?:'|′) ?(?:(\d{1,2}(?:\.\d+)?|\d? ?[½¼¾])(?:\"|”|″|''|(?!['\w])))?(?!\w)")
_INCHES = re.compile(r"(\d{1,3}(?:\.\d+)?)(\"|″|”)(?![A-WYZa-wyz0-9_])")
_ARC = re.compile(r"(\d{1,3})° ?(?:(\d{1,2}(?:\.\d+)?)[′'] ?)?(?:(\d{1,2}(?:\.\d+)?)(?:″|\"|'') ?)?([NSEW])?(?!\w)")
_DURATION = re.compile(r"(?:(\d{1,3})d ?)?(?:(\d{1,3})h ?)?(?:(\d{1,3})m(?:in)? ?)?(?:(\d{1,3})s(?:ec)?)?(?![\w/])")


def read_scientific(scan: Scan, at: int) -> int | None:
    """1e-5 and 6.02e23: times ten to the power of."""
    match = _SCIENTIFIC.match(scan.text, at)
    if match is None:
        return None
    mantissa = number_at(scan.text, at)
    assert mantissa is not None
    scan.say(mantissa.words(), at, match.end(1))
    words = ["times", "ten", "to", "the", "power", "of", *(["minus"] if match[2] in ("-", "−") else [])]
    scan.say(words + numbers.cardinal(int(match[3])), match.end(1), match.end())
    return match.end()


def read_dimensions(scan: Scan, at: int) -> int | None:
    """4x4, 1920x1080, 10 × 20 × 30 cm; a product with an equals sign is none."""
    text = scan.text
    parts: list[tuple[int, int, str]] = []
    place = at
    while len(parts) < 6 and (match := _DIMENSIONS.match(text, place)):
        parts.append((place, match.end(1), match[2]))
        place = match.end()
    last = number_at(text, place) if parts else None
    if last is None or text.startswith(("0x", "0X"), at):
        return None
    rest = text[last.end : last.end + 8].lstrip()
    spaced = parts[0][2] != parts[0][2].strip()
    if rest[:1] in tuple("=^*+-") or ((spaced and not rest[:1].isalpha()) and "x" not in parts[0][2]):
        return None
    if text[last.end : last.end + 1].isalpha() and not unit_at(text, last.end, glued=True):
        return None
    screen = all(len(text[start:end]) >= 3 for start, end, _ in parts) and len(last.whole) >= 3
    for start, end, sign in parts:
        scan.say(_side(text[start:end], screen), start, end)
        scan.say("by", end, end + len(sign))
    if screen and not last.fraction:
        scan.say(numbers.pairs(last.whole), place, last.end)
        return last.end
    return read_quantity(scan, place) or place


def _side(figures: str, screen: bool) -> list[str]:
    whole, _, fraction = figures.partition(".")
    if fraction:
        return numbers.decimal(whole, fraction)
    return numbers.pairs(whole) if screen else numbers.whole(whole)


def read_height(scan: Scan, at: int) -> int | None:
    """5'10", 6', 12"; a quote that closes one is no inch sign."""
    match = _HEIGHT.match(scan.text, at)
    if match is not None and not scan.text.startswith("'", match.end()):
        if match[2]:
            inches = match[2].strip()
            scan.say([*numbers.whole(match[1]), "foot"], at, match.end(1) + 1)
            number = number_at(scan.text, match.start(2))
            if number is None or not inches.isascii():
                read_fraction(scan, match.start(2))
            else:
                scan.say(number.words(), match.start(2), match.end())
            return match.end()
        scan.say(
            [*numbers.whole(match[1]), "foot" if match[1] == "1" or scan.singular_here(at, match.end()) else "feet"],
            at,
            match.end(),
        )
        return _say_by(scan, match.end())
    match = _INCHES.match(scan.text, at)
    if match is None or (match[2] != "″" and scan.open_quote):
        return None
    number = number_at(scan.text, at)
    assert number is not None
    scan.say(number.words(), at, match.end(1))
    scan.say("inch" if number.is_one or scan.singular_here(at, match.end()) else "inches", match.end(1), match.end())
    return _say_by(scan, match.end())


def _say_by(scan: Scan, end: int) -> int:
    """Say "by" for an x between two measures; the second is read by itself."""
    by = BY.match(scan.text, end)
    if by is None:
        return end
    scan.say("by", end, by.end())
    return by.end()


def read_arc(scan: Scan, at: int) -> int | None:
    """40° 26′ 46″ N."""
    match = _ARC.match(scan.text, at)
    if match is None or not (match[2] or match[4]):
        return None
    for group, name in ((1, "degree"), (2, "minute"), (3, "second")):
        if match[group]:
            number = number_at(scan.text, match.start(group))
            assert number is not None
            scan.say([*number.words(), name if number.is_one else name + "s"], match.start(group), match.end(group) + 1)
    if match[4]:
        scan.say({"N": "north", "S": "south", "E": "east", "W": "west"}[match[4]], *match.span(4))
    return match.end(4) if match[4] else match.end()


def read_duration(scan: Scan, at: int) -> int | None:
    """1h30m, 5m 30s, 2d 3h: two parts or more."""
    match = _DURATION.match(scan.text, at)
    if match is None or sum(part is not None for part in match.groups()) < 2:
        return None
    for group, name in enumerate(("day", "hour", "minute", "second"), 1):
        if match[group]:
            words = numbers.whole(match[group])
            scan.say([*words, name if match[group] == "1" else name + "s"], match.start(group), match.end(group) + 1)
    return match.end() - len(match[0]) + len(match[0].rstrip())
