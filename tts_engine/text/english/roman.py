"""Roman numerals by what stands before them: kings, wars, chapters; never CD, MIX, I or vitamin C."""

from __future__ import annotations

import re

from tts_engine.text.english import numbers
from tts_engine.text.english.scan import Scan
from tts_engine.text.english.vocabulary import vocabulary

_ROMAN = re.compile(r"([IVXLCDM]+)('s)?(st|nd|rd|th)?(?![\w'])")
_RANGE = re.compile(r"[-–](?=([IVXL]+)(?!\w))")
_HIGHEST_KING = 30
_HIGHEST = 200
_ENDS = ("", ".", ",", ";", ":", ")", "?", "!", "'", "-", "–")


def read_roman(scan: Scan, at: int) -> int | None:
    """Henry VIII (the eighth), World War II (two), Chapter IV (four), the XXI century (twenty-first)."""
    match = _ROMAN.match(scan.text, at)
    if match is None or scan.shouting or len(match[1]) > 8:
        return None
    numeral, tail = match[1], match[2] or ""
    value = numbers.roman(numeral)
    if not 0 < value <= _HIGHEST:
        return None
    before, end = scan.word_before(at), match.end()
    century = match[3] or scan.word_after(end).lower() in ("century", "centuries")
    if century and (match[3] or numeral not in ("C", "D", "L", "M", "I")):
        words = numbers.ordinal(value)
    elif before and _is_king(scan, at, end, numeral, value):
        words = ["the", *numbers.ordinal(value)]
    elif before and _is_numbered(scan, end, numeral, before):
        words = numbers.cardinal(value)
    else:
        return None
    words[-1] += tail
    scan.say(words, at, end)
    dash = _RANGE.match(scan.text, end)
    second = numbers.roman(dash[1]) if dash and len(dash[1]) < 9 else 0
    if dash is None or not second:
        return end
    scan.say("to", end, dash.end())
    scan.say(numbers.cardinal(second), *dash.span(1))
    return dash.end(1)


def _is_king(scan: Scan, at: int, end: int, numeral: str, value: int) -> bool:
    """Whether the numeral counts the bearers of a name; a lone I may be the speaker instead."""
    table = vocabulary()
    before = scan.word_before(at)
    earlier = scan.before(at)[-4:-1]
    name = before.removesuffix("'s")
    if value > _HIGHEST_KING:
        return False
    if name not in table.regnal:
        given = earlier[-1].title() if earlier else ""
        return name.istitle() and given in table.regnal and numeral in ("II", "III", "IV")
    if numeral != "I":
        return numeral in table.roman_certain or numeral in ("V", "X")
    return (
        not table.royal_titles.isdisjoint(earlier)
        or scan.text[end : end + 1] in _ENDS
        or scan.word_after(end) in table.after_first
    )


def _is_numbered(scan: Scan, end: int, numeral: str, before: str) -> bool:
    """Whether the numeral numbers what stands before it: a chapter, a war, a sequel."""
    table = vocabulary()
    key = before.lower().rstrip(".")
    key = key if key in table.roman_after else key.removesuffix("s")
    if numeral in ("C", "D", "L", "M"):
        return False
    if key in table.roman_after and (before[0].isupper() or key in table.roman_after_lower):
        return (
            numeral != "I"
            or key == "war"
            or scan.text[end : end + 1] in _ENDS
            or (before[0].isupper() and scan.word_after(end) in table.after_first)
        )
    if numeral in ("V", "X"):
        return before == "GTA"
    named = before[0].isupper() and key not in table.starters
    return named and numeral in table.roman_certain and not (numeral == "IV" and before.isupper())
