"""English number names: strings of ASCII digits in, lists of spoken words out; no text, no context."""

from __future__ import annotations

ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
TENS = ["zero", "ten", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
SCALES = (
    "", "thousand", "million", "billion", "trillion", "quadrillion", "quintillion", "sextillion", "septillion",
    "octillion", "nonillion", "decillion",
)  # fmt: skip
ORDINALS = {
    "one": "first",
    "two": "second",
    "three": "third",
    "five": "fifth",
    "eight": "eighth",
    "nine": "ninth",
    "twelve": "twelfth",
}
LONGEST_PLAIN = 15
"""Figures without separators up to this many are a number; a longer run is an identifier and is read digit by digit."""


def digits(figures: str) -> list[str]:
    """Each figure by its name: "407" is four zero seven."""
    return [ONES[int(figure)] for figure in figures]


def cardinal(number: int) -> list[str]:
    """``number`` >= 0 as a count, American style (no "and"); beyond the decillions digit by digit."""
    if number < 100:
        return _below_hundred(number)
    if number >= 1000 ** len(SCALES):
        return digits(str(number))
    groups: list[list[str]] = []
    for scale in SCALES:
        number, rest = divmod(number, 1000)
        if rest:
            groups.append(_below_thousand(rest) + ([scale] if scale else []))
        if not number:
            break
    return [word for group in reversed(groups) for word in group]


def _below_hundred(number: int) -> list[str]:
    if number < 20:
        return [ONES[number]]
    tens, ones = divmod(number, 10)
    return [TENS[tens], ONES[ones]] if ones else [TENS[tens]]


def _below_thousand(number: int) -> list[str]:
    hundreds, rest = divmod(number, 100)
    words = [ONES[hundreds], "hundred"] if hundreds else []
    return words + _below_hundred(rest) if rest else words


def whole(figures: str, separated: bool = False) -> list[str]:
    """A whole number as written: leading zeros and very long runs are read digit by digit.

    ``separated``: the figures were written in groups, which makes even a long run a number.
    """
    limit = 3 * len(SCALES) if separated else LONGEST_PLAIN
    if len(figures) > limit or (len(figures) > 1 and figures[0] == "0"):
        return digits(figures)
    return cardinal(int(figures))


def decimal(figures: str, fraction: str, separated: bool = False) -> list[str]:
    """ "3", "05" is three point zero five; an empty whole part is left out."""
    return (whole(figures, separated) if figures else []) + ["point", *digits(fraction)]


def ordinal(number: int) -> list[str]:
    """21 is twenty first."""
    return as_ordinal(cardinal(number))


def as_ordinal(words: list[str]) -> list[str]:
    """The words of a cardinal with the last one made ordinal."""
    last = words[-1]
    if last in ORDINALS:
        last = ORDINALS[last]
    elif last.endswith("y"):
        last = last[:-1] + "ieth"
    else:
        last += "th"
    return [*words[:-1], last]


def plural(word: str) -> str:
    """The plural of a number name, or of a regular unit name."""
    if word.endswith("y") and word[-2:-1] not in "aeou":
        return word[:-1] + "ies"
    return word + ("es" if word.endswith(("x", "ch", "sh", "s")) else "s")


def year(number: int) -> list[str]:
    """A year: 1905 is nineteen oh five, 2008 two thousand eight, 2024 twenty twenty four, 1900 nineteen hundred."""
    if number % 1000 < 10 or number >= 10_000:
        return cardinal(number)
    return pairs(str(number))


def decade(number: int) -> list[str]:
    """1990 (or 90) as the decade: nineteen nineties."""
    words = year(number)
    return [*words[:-1], plural(words[-1])]


def pairs(figures: str) -> list[str]:
    """Rooms, roads, models, years: three or four figures read in twos from the right ("404" is four oh four)."""
    if not 3 <= len(figures) <= 4 or figures[0] == "0":
        return whole(figures)
    head, tail = figures[:-2], figures[-2:]
    if tail == "00":
        return cardinal(int(figures)) if len(figures) == 3 or head[-1] == "0" else [*cardinal(int(head)), "hundred"]
    if len(figures) == 4 and figures[1:3] == "00":
        return cardinal(int(figures))
    return cardinal(int(head)) + (["oh", ONES[int(tail)]] if tail[0] == "0" else cardinal(int(tail)))


def fraction(numerator: int, denominator: int) -> list[str]:
    """3/4 is three quarters, 1/2 one half, 7/120 seven over one hundred twenty."""
    top = cardinal(numerator)
    if denominator == 2:
        return [*top, "half" if numerator == 1 else "halves"]
    if denominator == 4:
        return [*top, "quarter" if numerator == 1 else "quarters"]
    if denominator < 2 or (denominator > 20 and denominator not in (24, 25, 30, 32, 40, 50, 60, 64, 100, 1000, 10_000)):
        return [*top, "over", *cardinal(denominator)]
    words = ordinal(denominator)
    return top + words if numerator == 1 else [*top, *words[:-1], plural(words[-1])]


ROMAN = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}


def roman(numeral: str) -> int:
    """The value of a well-formed Roman numeral in capitals, 0 for anything else."""
    total = 0
    for letter, after in zip(numeral, [*numeral[1:], ""], strict=True):
        value = ROMAN.get(letter, 0)
        if not value:
            return 0
        total += -value if ROMAN.get(after, 0) > value else value
    return total if 0 < total < 4000 and to_roman(total) == numeral else 0


def to_roman(number: int) -> str:
    out = ""
    for value, letters in (
        (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"), (50, "L"), (40, "XL"), (10, "X"),
        (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
    ):  # fmt: skip
        times, number = divmod(number, value)
        out += letters * times
    return out
