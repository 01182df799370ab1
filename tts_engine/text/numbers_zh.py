"""Chinese number words: digits in ASCII in, spoken characters out."""

from __future__ import annotations

DIGITS = "零一二三四五六七八九"
PLACES = ("", "十", "百", "千")
MYRIADS = ("", "万", "亿", "万亿", "亿亿")
LARGEST_CARDINAL = 16
"""Digits of the largest number that is read as a quantity; longer ones are read digit by digit."""


def digits(number: str, *, yao: bool = False) -> str:
    """One by one: "110" → 一一零, with ``yao`` 幺幺零; a point is 点, anything else is left out."""
    spoken = "".join("点" if char == "." else DIGITS[int(char)] for char in number if char in "0123456789.")
    return spoken.replace("一", "幺") if yao else spoken


def cardinal(number: str, *, liang: bool = False) -> str:
    """A whole number as a quantity: "1002" → 一千零二. ``liang``: a lone 2 is 两, as it is before a measure word.

    Leading zeros count for nothing. A first 2 before 千, 万 and 亿 is 两, as people say it.
    """
    number = number.lstrip("0") or "0"
    if len(number) > LARGEST_CARDINAL:
        return digits(number)
    if number == "2" and liang:
        return "两"
    groups: list[str] = []
    while number:
        groups.append(number[-4:])
        number = number[:-4]
    spoken = ""
    for place in range(len(groups) - 1, -1, -1):
        group = groups[place]
        value = int(group)
        if not value:
            continue
        below = _group(value, first=not spoken, myriad=place > 0)
        gap = bool(spoken) and (group[0] == "0" or spoken.endswith("零"))
        skipped = bool(spoken) and not int(groups[place + 1])
        spoken += ("零" if (gap or skipped) and not spoken.endswith("零") else "") + below + _myriad(groups, place)
    return spoken or "零"


def _group(value: int, *, first: bool, myriad: bool) -> str:
    """1 … 9999, without zeros in front."""
    if value == 2 and first and myriad:
        return "两"
    spoken = ""
    for place in (3, 2, 1, 0):
        digit = value // 10**place % 10
        if digit:
            if digit == 1 and place == 1 and first and not spoken:
                spoken = "十"
            else:
                two = digit == 2 and place == 3 and first and not spoken
                spoken += ("两" if two else DIGITS[digit]) + PLACES[place]
        elif spoken and value % 10**place and not spoken.endswith("零"):
            spoken += "零"
    return spoken


def _myriad(groups: list[str], place: int) -> str:
    """万 or 亿 after a group; 万 alone where the 亿 group below it follows."""
    if place == 3 and int(groups[2]):
        return "万"
    return MYRIADS[place]


def number(text: str, *, liang: bool = False) -> str:
    """A whole number or a decimal, with thousands commas: "1,001.23" → 一千零一点二三."""
    whole, point, fraction = text.replace(",", "").partition(".")
    return cardinal(whole or "0") + "点" + digits(fraction) if point else cardinal(whole, liang=liang)


def money(text: str, *, liang: bool = True) -> str:
    """Like `number`, but without the spare zeros of a price: "1,000.00" → 一千, "5.50" → 五点五."""
    return number(text.rstrip("0").rstrip(".") if "." in text else text, liang=liang)
