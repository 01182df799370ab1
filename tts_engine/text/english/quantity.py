"""Quantities: counts, decimals, ordinals, fractions, ranges, units, percentages, dimensions."""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction
from typing import NamedTuple

from tts_engine.text.english import numbers
from tts_engine.text.english.scan import Scan, looks_plural
from tts_engine.text.english.units import Unit, per_at, unit_at
from tts_engine.text.english.vocabulary import vocabulary

_GROUPED = (
    r"\d{1,3}(?:,\d{3}){1,11}(?!,?\d)|[1-9]\d?(?:,\d{2}){1,8},\d{3}(?!,?\d)"
    r"|[1-9]\d{0,2}(?:[\u00a0\u202f\u2009']\d{3}){1,11}(?!\d)|[1-9]\d{0,2}(?:(?: \d{3}){2,11}|(?: 000){1,11})(?! ?\d)"
    r"|\d{1,3}(?:_\d{3}){1,11}(?!\w)|[1-9]\d{0,2}(?:\.\d{3}){2,11}(?!\.?\d)"
)
_NUMBER = re.compile(rf"(?:({_GROUPED})|(\d+))(?:\.(\d+)(?!\.\d))?|()()\.(\d+)(?!\.\d)")
_NOT_FIGURES = re.compile(r"\D")
_RANGE = re.compile(r"(-|–| – | - |~|\.\.\.?)(?=[-−]?\.?\d)")
_SCALES = {
    "k": "thousand", "K": "thousand", "M": "million", "mn": "million", "mln": "million", "B": "billion",
    "bn": "billion", "Bn": "billion", "BN": "billion", "bln": "billion", "T": "trillion", "tn": "trillion",
    "trn": "trillion",
}  # fmt: skip
_MONEY_SCALES = _SCALES | {
    "m": "million",
    "mm": "million",
    "MM": "million",
    "b": "billion",
    "t": "trillion",
    "mil": "million",
}
_SCALE = re.compile(r"(mln|bln|trn|mil|bn|Bn|BN|tn|mn|mm|MM|[kKMBTmbt])(?![\w²³])")
_SCALE_WORD = re.compile(r"[ \u00a0-](hundred|thousand|million|billion|trillion|quadrillion)(?![A-Za-z])", re.IGNORECASE)
_ALGEBRA = re.compile(r"[xX] ?(?:[-+*/=^²³)<>≤≥]|\*\*)")
_ORDINAL = re.compile(r"(\d{1,3}(?:,\d{3}){1,6}|\d{1,18})(st|nd|rd|th|ST|ND|RD|TH|º|ª)(?![A-Za-z0-9])")
_FRACTION = re.compile(r"(?:(\d{1,4})([ -]))?(\d{1,4})[/⁄](\d{1,5})(?![\d/]|[.,:]\d)")
_FRACTION_TH = re.compile(r"(\d{1,4})/(\d{1,6})(st|nd|rd|th)s?(?![A-Za-z0-9])")
_VULGAR = re.compile(r"(?:(\d{1,9})[ \u00a0]?)?([¼½¾⅐-⅞↉])")
_TIMES = re.compile(r"[xX×](?![\w.])")
_UNIT_AFTER_HYPHEN = re.compile(
    r"-(?=(?:km|kg|mm|cm|m|mi|ft|lbs?|oz|GB|TB|MB|KB|mg|ml|mL|L|GHz|MHz|kHz|Hz|mph|kW|kWh|V|W|MP|px|hr|sec|min|yr|mo|gal|mAh|dB|km/h|°C|°F|°|in|%)(?![\w-]))"
)
_SIGNS = {"-": "minus", "−": "minus", "–": "minus"}
BY = re.compile(r" ?[x×] ?(?=\d)")
_FOUR_FIGURES = re.compile(r"\d[\d,]\d{2,3}$")
_DASH = re.compile(r" ?[-–] ?")
_DASH_DIGIT = re.compile(r" ?[-–] ?(?=\d)")
_SMALLER = re.compile(r"(in|oz|min|sec|s|m)(?!\w)\.?")


class Number(NamedTuple):
    """A number as written: its figures without separators, those after the point ("" if none), its end."""

    end: int
    whole: str
    fraction: str
    separated: bool

    @property
    def is_one(self) -> bool:
        return self.whole == "1" and not self.fraction

    def words(self) -> list[str]:
        if self.fraction:
            return numbers.decimal(self.whole, self.fraction, self.separated)
        return numbers.whole(self.whole, self.separated)

    def value(self) -> float:
        return float(f"{self.whole[:300] or '0'}.{self.fraction[:20] or '0'}")


def number_at(text: str, at: int) -> Number | None:
    """The number that begins at ``at``."""
    match = _NUMBER.match(text, at)
    if match is None:
        return None
    grouped, run, fraction = match[1] or match[4], match[2] or match[5], match[3] or match[6] or ""
    whole = _NOT_FIGURES.sub("", grouped) if grouped else (run or "")
    return Number(match.end(), whole, fraction, bool(grouped))


def scale_at(text: str, at: int, money: bool) -> tuple[int, str] | None:
    """A scale such as "k", "bn" or " million" at ``at``: its end and its name."""
    match = _SCALE_WORD.match(text, at)
    if match is not None:
        return match.end(), match[1].lower()
    match = _SCALE.match(text, at)
    names = _MONEY_SCALES if money else _SCALES
    if match is None or match[1] not in names:
        return None
    return match.end(), names[match[1]]


def range_at(scan: Scan, first: Number, at: int) -> int | None:
    """Where the second number of a range begins, if a range goes on at ``at``; a subtraction or a chain is none."""
    text = scan.text
    match = _RANGE.match(text, at)
    if match is None:
        return None
    begin = match.end() + (text[match.end()] in "-−")
    second = number_at(text, begin)
    if second is None or (text[second.end : second.end + 1] == "-" and text[second.end + 1 : second.end + 2].isdigit()):
        return None
    follows = text[second.end : second.end + 3].lstrip()[:1]
    if follows in tuple("=+×*÷^"):
        return None
    if match[1] == " - " and (first.value() >= second.value() or any(sign in "=+×*÷" for sign in text[max(0, at - 16) : at])):
        return None
    return match.end()


def say_signed(scan: Scan, at: int) -> Number:
    """Say the number at ``at``, which may have a sign."""
    if scan.text[at] in _SIGNS:
        scan.say("minus", at, at + 1)
        at += 1
    number = number_at(scan.text, at)
    assert number is not None
    scan.say(number.words(), at, number.end)
    return number


def read_quantity(scan: Scan, at: int) -> int | None:
    """A number with its range, scale and unit: "5-10 km", "1.5M", "20 °C", "50+", "2x"; None inside a mixed code."""
    text = scan.text
    number = number_at(text, at)
    if number is None:
        return None
    second_at = range_at(scan, number, number.end)
    end = number.end if second_at is None else _number_end(text, second_at)
    unit, scale = _measure(scan, end)
    tail = unit.end if unit else scale[0] if scale else end
    if tail < len(text) and tail == end and (text[end].isalnum() or text[end] == "_") and not _TIMES.match(text, end):
        if second_at is None:
            return None
        second_at, end = None, number.end
        unit, scale = _measure(scan, end)
    scan.say(number.words(), at, number.end)
    if second_at is not None:
        scan.say("to", number.end, second_at)
        say_signed(scan, second_at)
    one = number.is_one and second_at is None
    if scale is not None:
        scan.say([scale[1]], end + (not text[end].isalpha()), scale[0])
        end, one = scale[0], False
        unit = _unit(scan, end)
        again = range_at(scan, number, end) if second_at is None else None
        if again is not None:
            scan.say("to", end, again)
            return again
    if unit is not None:
        _say_unit(scan, at, end, unit, one)
        return _second_unit(scan, number, unit)
    if _TIMES.match(text, end):
        if _ALGEBRA.match(text, end) or text[max(0, at - 2) : at].rstrip().endswith(("=", "(", "+", "*", "/")):
            scan.say("X", end, end + 1)
            return end + 1
        scan.say("times" if not one else "time", end, end + 1)
        return end + 1
    if text[end : end + 1] == "+" and not text[end + 1 : end + 2].isalnum() and text[end + 1 : end + 2] not in ("+", "."):
        scan.say("plus", end, end + 1)
        end += 1
    per = per_at(text, end)
    if per is not None and second_at is None:
        scan.say(f"per {per.singular}", end, per.end)
        return per.end
    return end


def _number_end(text: str, at: int) -> int:
    number = number_at(text, at + (text[at] in _SIGNS))
    assert number is not None
    return number.end


def _measure(scan: Scan, end: int) -> tuple[Unit | None, tuple[int, str] | None]:
    unit = _unit(scan, end)
    if unit is not None:
        return unit, None
    scale = scale_at(scan.text, end, money=False)
    if scale is not None and scan.text[end] == "K" and scan.word_after(scale[0]).lower() in vocabulary().after_k:
        return None, None
    if (
        scale is not None
        and scan.text[end - 2 : end + 1].lstrip() in ("4K", "8K")
        and not looks_plural(scan.word_after(scale[0]))
    ):
        return None, None
    if scale is not None and scale[0] == end + 1 and scan.text[end].isupper() and _is_lettered(scan, end):
        return None, None
    return None, scale


def _is_lettered(scan: Scan, letter_at: int) -> bool:
    """Whether the capital after a figure is part of a name: 221B Baker Street, seat 12M, a 70B model."""
    after = scan.word_after(letter_at + 1)
    before = scan.before(letter_at)
    near = next((word for word in reversed(before) if word.isalpha()), "")
    return after[:1].isupper() or after in ("model", "models") or near in vocabulary().before_lettered


def _unit(scan: Scan, end: int) -> Unit | None:
    text = scan.text
    if end >= len(text):
        return None
    if text[end] in " \u00a0\u202f\u2009":
        return _basis_points(scan, end, unit_at(text, end + 1, glued=False))
    if _UNIT_AFTER_HYPHEN.match(text, end):
        return unit_at(text, end + 1, glued=True)
    return _basis_points(scan, end, unit_at(text, end, glued=True))


def _basis_points(scan: Scan, end: int, unit: Unit | None) -> Unit | None:
    """ "bps" after up to three figures is a matter of rates, not of modems."""
    if unit is not None and unit.plural == "bits per second" and not _FOUR_FIGURES.search(scan.text, max(0, end - 5), end):
        return Unit(unit.end, "basis point", "basis points")
    return unit


def _say_unit(scan: Scan, start: int, end: int, unit: Unit, one: bool) -> int:
    """Say the unit of the figures ``start:end``: in the singular for ``one``, and before its noun."""
    blank = scan.text[end] in " -\u00a0\u202f\u2009"
    single = one or scan.text[end] == "-" or scan.singular_here(start, unit.end)
    scan.say(unit.singular if single else unit.plural, end + blank, unit.end)
    return unit.end


def _second_unit(scan: Scan, number: Number, unit: Unit) -> int:
    """A smaller unit right after: "5 ft 10 in", "2 lb 3 oz"; a dash after the unit begins a range."""
    text, end = scan.text, unit.end
    dash = _DASH_DIGIT.match(text, end)
    if dash is not None and number_at(text, dash.end()):
        scan.say("to", end, dash.end())
        return dash.end()
    by = BY.match(text, end)
    if by is not None:
        scan.say("by", end, by.end())
        return by.end()
    if unit.singular in ("foot", "pound", "hour", "minute") and text[end : end + 1] == " ":
        second = number_at(text, end + 1)
        if second is not None:
            gap = second.end + (text[second.end : second.end + 1] == " ")
            match = _SMALLER.match(text, gap)
            name = (
                {"in": "inch", "oz": "ounce", "min": "minute", "m": "minute", "sec": "second", "s": "second"}.get(match[1])
                if match
                else None
            )
            if match and name:
                scan.say(second.words(), end + 1, second.end)
                stop = match.end(1) if match[0].endswith(".") and scan.ends_sentence(match.end() - 1) else match.end()
                scan.say(name if second.is_one else numbers.plural(name), gap, stop)
                return stop
    return end


def read_bare_unit(scan: Scan, at: int) -> int | None:
    """A unit with a stroke that no figure comes before: "in km/h"."""
    if at and scan.text[at - 1].isalnum():
        return None
    unit = unit_at(scan.text, at, glued=False)
    if unit is None or "/" not in scan.text[at : unit.end]:
        return None
    scan.say(unit.plural, at, unit.end)
    return unit.end


def read_ordinal(scan: Scan, at: int) -> int | None:
    """1st, 22nd, 1,000th; 1st-3rd as a range."""
    match = _ORDINAL.match(scan.text, at)
    if match is None:
        return None
    scan.say(numbers.ordinal(int(match[1].replace(",", ""))), at, match.end())
    dash = _DASH.match(scan.text, match.end())
    if dash and _ORDINAL.match(scan.text, dash.end()):
        scan.say("to", match.end(), dash.end())
        return dash.end()
    return match.end()


def read_fraction(scan: Scan, at: int) -> int | None:
    """3/4, 2 1/2, ½, 1½, 8/10 (a mark out of ten), 120/80 (over)."""
    text = scan.text
    vulgar = _VULGAR.match(text, at)
    if vulgar is not None:
        value = Fraction(unicodedata.numeric(vulgar[2])).limit_denominator(100)
        return _say_fraction(scan, at, vulgar[1], value.numerator, value.denominator, vulgar.start(2), vulgar.end())
    match = _FRACTION_TH.match(text, at)
    if match is not None:
        scan.say(numbers.cardinal(int(match[1])), at, match.end(1))
        words = numbers.ordinal(int(match[2]))
        scan.say(words if match[1] == "1" else [*words[:-1], numbers.plural(words[-1])], match.start(2), match.end())
        return match.end()
    match = _FRACTION.match(text, at)
    if match is None:
        return None
    top, bottom = int(match[3]), int(match[4])
    if match[1] is not None:
        if not 0 < top < bottom <= 100 or match[3][0] == "0":
            return None
        return _say_fraction(scan, at, match[1], top, bottom, match.start(3), match.end())
    end = match.end()
    if top == bottom and top > 1:
        scan.say(numbers.cardinal(top) + numbers.cardinal(bottom), at, end)
        return end
    if text[end : end + 3].lstrip()[:1] == "=":
        scan.say([*numbers.cardinal(top), "divided", "by", *numbers.cardinal(bottom)], at, end)
        return end
    if top == 0 or match[3][0] == "0" or match[4][0] == "0":
        scan.say([*numbers.whole(match[3]), "slash", *numbers.whole(match[4])], at, end)
        return end
    after = scan.word_after(end)
    if bottom in (10, 100) and after != "of" and not unit_at(text, end + 1, glued=False) and text[end : end + 1] != "-":
        scan.say([*numbers.cardinal(top), "out", "of", *numbers.cardinal(bottom)], at, end)
        return end
    if bottom == 5 and any(
        word in ("rated", "rating", "rate", "score", "scored", "stars", "gave") for word in scan.before(at)[-4:]
    ):
        scan.say([*numbers.cardinal(top), "out", "of", *numbers.cardinal(bottom)], at, end)
        return end
    unit = _unit(scan, end)
    if top >= 20 and bottom >= 20 and unit is not None:
        scan.say(numbers.cardinal(top) + numbers.cardinal(bottom), at, end)
        return _say_unit(scan, at, end, unit, one=False)
    if 10 < top <= bottom and bottom >= 20 and bottom not in (32, 64):
        scan.say([*numbers.cardinal(top), "out", "of", *numbers.cardinal(bottom)], at, end)
        return end
    if top > bottom and bottom > 4:
        scan.say([*numbers.cardinal(top), "over", *numbers.cardinal(bottom)], at, end)
        return end
    return _say_fraction(scan, at, None, top, bottom, at, end)


def _say_fraction(scan: Scan, at: int, whole: str | None, top: int, bottom: int, start: int, end: int) -> int:
    words = numbers.fraction(top, bottom)
    if whole:
        scan.say(numbers.whole(whole), at, at + len(whole))
        scan.say("and", start, end)
        if top == 1 and bottom in (2, 4):
            words[0] = "a"
    scan.say(words, start, end)
    unit = _unit(scan, end)
    return end if unit is None else _say_unit(scan, at, end, unit, one=not whole)
