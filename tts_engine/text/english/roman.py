"""Roman numerals by what stands before them: kings, wars, chapters; never CD, MIX, I or vitamin C."""

from __future__ import annotations

import re

from tts_engine.text.english import numbers
from tts_engine.text.english.scan import Scan
from tts_engine.text.english.vocabulary import vocabulary

_ROMAN = re.compile(r"([IVXLCDM]+)('s)?(?:(st|nd|rd|th))?(?![\w'])")
_ROMAN_RANGE = re.compile(r"[-–](?=[IVX]+(?!\w))")


def read_roman(scan: Scan, at: int) -> int | None:
    """Henry VIII (the eighth), World War II (two), Chapter IV; never CD, MIX, I or vitamin C."""
    text = scan.text
    match = _ROMAN.match(text, at)
    if match is None or scan.shouting:
        return None
    numeral = match[1]
    value = numbers.roman(numeral)
    if not value or (value > 200 and len(numeral) < 4):
        return None
    before = scan.word_before(at)
    if not before:
        return None
    key = before.lower().rstrip(".")
    stem = before.removesuffix("'s")
    earlier = scan.before(at)[-4:-1]
    tail = match[2] or ""
    follows = scan.word_after(match.end())
    if match[3] or follows.lower() in ("century", "centuries"):
        if (match[3] is None and before.lower() not in ("the", "in", "early", "late", "mid")) or (
            len(numeral) == 1 and numeral in "CDLM"
        ):
            return None
        scan.say(numbers.ordinal(value), at, match.end())
        return match.end()
    regnal = stem in vocabulary().regnal and value <= 30
    titled = regnal and (any(word in vocabulary().royal_titles for word in earlier) or key in vocabulary().royal_titles)
    if regnal and (
        numeral in vocabulary().roman_certain
        or titled
        or (numeral in "VX" and len(numeral) == 1)
        or (numeral == "I" and _may_reign(scan, match.end()))
    ):
        words = ["the", *numbers.ordinal(value)]
        words[-1] += tail
        scan.say(words, at, match.end())
        return match.end()
    if key in vocabulary().roman_after and (
        before[0].isupper()
        or key
        in (
            "chapter",
            "part",
            "section",
            "volume",
            "phase",
            "type",
            "level",
            "stage",
            "class",
            "grade",
            "act",
            "factor",
            "round",
            "tier",
        )
    ):
        if numeral == "I" and not (
            scan.text[match.end() : match.end() + 1] in ("", ".", ",", ":", ";", ")", "?", "!", "-", "–")
            or (
                before[0].isupper()
                and follows.islower()
                and follows
                in ("of", "and", "is", "was", "ended", "began", "to", "in", "trial", "trials", "veterans", "diabetes")
            )
            or key == "war"
        ):
            return None
        if numeral in ("C", "D", "L", "M"):
            return None
        number_words = numbers.cardinal(value)
    elif (
        numeral in vocabulary().roman_certain
        and before[:1].isupper()
        and before.lower() not in vocabulary().starters
        and not (numeral == "IV" and before.isupper())
    ) or (numeral in ("V", "X") and before.isupper() and before in ("GTA", "FF")):
        number_words = numbers.cardinal(value)
    else:
        return None
    number_words[-1] += tail
    scan.say(number_words, at, match.end())
    dash = _ROMAN_RANGE.match(text, match.end())
    if dash is not None and numbers.roman(_ROMAN.match(text, dash.end())[1] if _ROMAN.match(text, dash.end()) else ""):  # type: ignore[index]
        scan.say("to", match.end(), dash.end())
        second = _ROMAN.match(text, dash.end())
        assert second is not None
        scan.say(numbers.cardinal(numbers.roman(second[1])), dash.end(), second.end())
        return second.end()
    return match.end()


def _may_reign(scan: Scan, end: int) -> bool:
    """Whether the I after a king's name is his number, not the speaker."""
    rest = scan.text[end : end + 1]
    if rest in ("", ".", ",", ";", ":", ")", "?", "!", "'"):
        return True
    return scan.word_after(end) in (
        "of",
        "was",
        "ruled",
        "reigned",
        "became",
        "and",
        "died",
        "is",
        "who",
        "in",
        "had",
        "came",
        "took",
        "signed",
    )
