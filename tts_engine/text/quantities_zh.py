"""Chinese readings of quantities: sums, fractions, percentages, money, units, ranges, counts."""

from __future__ import annotations

import re
import unicodedata
from fractions import Fraction
from functools import cache

from tts_engine.text.language import is_han
from tts_engine.text.numbers_zh import cardinal, digits, money, number
from tts_engine.text.written_zh import NUMBER, Part, Written, counted, tables

PLAIN = re.compile(NUMBER)
EXPRESSION = re.compile(rf"{NUMBER}(?:\s?[-+*/×÷xX]\s?\(?{NUMBER}\)?){{1,30}}(?=\s*(?:[=≈]|等于|是多少|得多少|得几))")
AFTER_EQUALS = re.compile(r"[=≈(×÷*]\s*$")
OPERATORS = {
    "+": "加",
    "-": "减",
    "*": "乘以",
    "×": "乘以",
    "x": "乘以",
    "X": "乘以",
    "/": "除以",
    "÷": "除以",
    "(": "",
    ")": "",
}
PRODUCT = re.compile(rf"{NUMBER}(?:\s?[×xX*✕]\s?{NUMBER}){{1,7}}")
POWER = re.compile(r"\^\s?\(?(-?\d{1,4})\)?|([⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,4})")
SCIENTIFIC = re.compile(r"(\d+(?:\.\d+)?)[eE]([-+]?\d{1,3})(?![\dA-Za-z])")
SUPERSCRIPTS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
FRACTION = re.compile(r"(?:(\d{1,4})\s(?=\d{1,4}/))?(\d{1,9})/(\d{1,9})(?![\d/]|\.\d)")
MIXED = re.compile(r"(\d{1,9})?([¼-¾⅐-⅞])")
RANGE = re.compile(rf"({NUMBER})(\s?[-~—]{{1,2}}\s?)([-+]?)({NUMBER})(?![\d]|-\d)")
PERCENT = re.compile(r"\s?([%‰])")
COLLOQUIAL = re.compile(r"\s?(?:百万亿|千万|百万|十万|万亿|千亿|百亿|十亿|万|亿|千|百)")
COLD_BEFORE = re.compile(r"(?:温|零下|低至|降到|降至|冷到|低温|高温)[^，。\d]{0,6}$")
MATCH_BEFORE = re.compile(
    r"(?:比分|比数|总分|击败|战胜|战平|打平|领先|落后|不敌)[^\d，。后在于]{0,5}$|(?:[胜负平]|(?<![可所难得加予])以)\s*$"
)
MATCH_AFTER = re.compile(r"\s?(?:领先|落后|战胜|击败|大胜|险胜|完胜|小胜|获胜|取胜|惜败|战平|打平|不敌|逆转|淘汰)")
NAMED = re.compile(r"\s?(?:元|块|美元|美金|欧元|英镑|日元|港元|港币|韩元)")
METRES_BEFORE = re.compile(r"\d米\s?$")
CENTIMETRES = re.compile(r"\d{2}(?!\d|[.,:/%-]|\s?[a-zA-Z个条只块米厘公毫到])")
PRESSURE_BEFORE = re.compile(r"血压[^\d，。]{0,6}$")
TEMPERATURES = ("摄氏度", "华氏度")
PER = {"s": "秒", "min": "分钟", "h": "小时", "hr": "小时", "d": "天", "day": "天"}


def read(written: Written, start: int, sign: str = "") -> list[Part] | None:
    """The reading of a quantity whose first digit stands at ``start``; ``sign`` is the "-" or "+" right before it."""
    text = written.text
    for rule in (_scientific, _fraction, _product, _range):
        if parts := rule(written, start, sign):
            return parts
    if METRES_BEFORE.search(written.before(start)) and (match := CENTIMETRES.match(text, start)):
        return [Part(digits(match[0]), start, match.end())]
    match = PLAIN.match(text, start)
    if not match:
        return None
    return _single(written, start, match.end(), sign)


@cache
def _units() -> re.Pattern[str]:
    names = sorted(tables()["units"], key=len, reverse=True)
    unit = "|".join(map(re.escape, names))
    rate = rf"({unit})(?:/({unit}|d|day)(?![A-Za-z0-9]))?(?![A-Za-z0-9²³])"
    mixed = r"(h|min|′|°)(?=\s?\d{1,2}\s?(?:min|m|s|′|″)(?![A-Za-z]))"
    return re.compile(rf"\s?{rate}|\s?{mixed}")


@cache
def _currency_signs() -> re.Pattern[str]:
    names = sorted(tables()["currencies"], key=len, reverse=True)
    return re.compile("(" + "|".join(map(re.escape, names)) + rf")\s?(?=[-+]?(?:{NUMBER}|\.\d))")


@cache
def _currency_names() -> re.Pattern[str]:
    names = "|".join(map(re.escape, sorted(tables()["currencies"], key=len, reverse=True)))
    return re.compile(rf"\s?({names})(?![A-Za-z\d])")


@cache
def _scales() -> re.Pattern[str]:
    names = "|".join(sorted(tables()["scales"], key=len, reverse=True))
    return re.compile(rf"\s?({names})(?![A-Za-z])")


def _signed(sign: str) -> str:
    return {"-": "负", "+": "正"}.get(sign, "")


def read_sum(written: Written, start: int) -> list[Part] | None:
    """The reading of a sum that begins with a digit at ``start``, or None.

    What stands before "=" is arithmetic, so that "-" is minus and "/" is divided by.
    """
    match = EXPRESSION.match(written.text, start)
    if not match and AFTER_EQUALS.search(written.text[max(0, start - 3) : start]):
        match = re.compile(rf"{NUMBER}(?:\s?[-+*/×÷]\s?{NUMBER}){{1,30}}").match(written.text, start)
    if not match:
        return None
    parts: list[Part] = []
    for piece in re.finditer(rf"{NUMBER}|[-+*/×÷xX()]", match[0]):
        low, high = start + piece.start(), start + piece.end()
        if piece[0][0].isdigit():
            parts.append(Part(number(piece[0]), low, high))
        elif OPERATORS[piece[0]]:
            parts.append(Part(OPERATORS[piece[0]], low, high))
    return parts


def power(exponent: str) -> str:
    """What is spoken for an exponent: "2" → 的平方."""
    return {"2": "的平方", "3": "的立方"}.get(exponent) or "的" + ("负" if exponent[0] == "-" else "") + cardinal(
        exponent.lstrip("-")
    ) + "次方"


def exponent(written: Written, start: int) -> list[Part] | None:
    """The reading of ``^8`` or ``⁸``."""
    match = POWER.match(written.text, start)
    if not match or not (value := (match[1] or match[2].translate(SUPERSCRIPTS))).lstrip("-"):
        return None
    return [Part(power(value), start, match.end())]


def _scientific(written: Written, start: int, sign: str) -> list[Part] | None:
    match = SCIENTIFIC.match(written.text, start)
    if not match:
        return None
    spoken = f"{_signed(sign)}{number(match[1])}乘以十{power(match[2].lstrip('+'))}"
    return [Part(spoken, start, match.end())]


def _fraction(written: Written, start: int, sign: str) -> list[Part] | None:
    text = written.text
    if match := MIXED.match(text, start):
        whole = cardinal(match[1]) + "又" if match[1] else ""
        return [Part(_signed(sign) + whole + vulgar(match[2]), start, match.end())]
    match = FRACTION.match(text, start)
    if not match:
        return None
    whole, upper, lower = match.groups()
    if PRESSURE_BEFORE.search(written.before(start)) or text.startswith("mmHg", match.end()):
        return [
            Part(cardinal(upper), start, match.end(2)),
            Part("比", match.end(2), match.start(3)),
            *_single(written, match.start(3), match.end(), ""),
        ]
    spoken = (cardinal(whole) + "又" if whole else "") + f"{cardinal(lower)}分之{cardinal(upper)}"
    return [Part(_signed(sign) + spoken, start, match.end())]


def vulgar(char: str) -> str:
    """The reading of a fraction in one character: ½ → 二分之一."""
    value = Fraction(unicodedata.numeric(char)).limit_denominator(1000)
    return f"{cardinal(str(value.denominator))}分之{cardinal(str(value.numerator))}"


def _product(written: Written, start: int, sign: str) -> list[Part] | None:
    """Sizes and repetitions: 1920×1080, 7*24."""
    match = PRODUCT.match(written.text, start)
    if not match:
        return None
    parts: list[Part] = []
    place = start
    for value in PLAIN.finditer(match[0]):
        low, high = start + value.start(), start + value.end()
        if parts:
            parts.append(Part("乘", place, low))
        parts.append(Part((_signed(sign) if not parts else "") + number(value[0]), low, high))
        place = high
    *head, last = parts
    return head + (_single(written, last.start, last.end, "") or [last])


def _range(written: Written, start: int, sign: str) -> list[Part] | None:
    text, left = written.text, written.before(start)
    match = RANGE.match(text, start)
    if not match:
        return None
    low, joint, minus, high = match.groups()
    score = MATCH_BEFORE.search(left) or MATCH_AFTER.match(written.context, match.end())
    if score and not minus and _bare(written, match.end(), score=True):
        between = "比"
    elif (
        not minus
        and float(low.replace(",", "")) > float(high.replace(",", ""))
        and "-" in joint
        and _bare(written, match.end())
    ):
        between = "减"
    else:
        between = "到"
    joint_part = Part(between, match.end(1), match.start(3))
    tail = _single(written, match.start(4), match.end(), minus)
    if percent := PERCENT.match(text, match.end()):
        name = "百分之" if percent[1] == "%" else "千分之"
        return [Part(_signed(sign) + name + number(low), start, match.end(1)), joint_part, *(tail or [])]
    sign_word = _signed(sign)
    if sign == "-" and any(name in part.spoken for part in tail or [] for name in TEMPERATURES):
        sign_word = "零下"
    first = number(low, liang=between == "到" and counted(written, start, match.end()))
    return [Part(sign_word + first, start, match.end(1)), joint_part, *(tail or [])]


def _bare(written: Written, end: int, *, score: bool = False) -> bool:
    """Whether nothing that is counted follows; after a score other words may."""
    right = written.after(end)
    units = r"\s?[A-Za-z%‰℃°]" if score else r"\s?[A-Za-z%‰℃°\u4e00-\u9fff]"
    return not counted(written, end, end) and not re.match(units, right)


def _single(written: Written, start: int, end: int, sign: str) -> list[Part]:
    """One number with what belongs to it on the right: percent sign, unit, currency."""
    text, value = written.text, written.text[start:end]
    if match := PERCENT.match(text, end):
        name = "百分之" if match[1] == "%" else "千分之"
        spoken = "百" if value == "100" and match[1] == "%" else number(value)
        return [Part(_signed(sign) + name + spoken, start, match.end())]
    if (match := _scales().match(text, end)) and re.match(
        r"\s?(?:元|块|美元|美金|欧元|英镑|人民币)", written.after(match.end())
    ):
        spoken, after = _scaled(written, value, end)
        return [Part(_signed(sign) + spoken, start, after)]
    if match := _currency_names().match(text, end):
        return [
            Part(_signed(sign) + money(value), start, end),
            Part(tables()["currencies"][match[1]], end, match.end()),
        ]
    if (match := _units().match(text, end)) and _is_unit(written, match):
        return _united(written, start, end, match, sign)
    if exp := exponent(written, end):
        return [Part(_signed(sign) + number(value), start, end), *exp]
    right = written.after(end)
    below = sign == "-" and right.startswith("度") and COLD_BEFORE.search(written.before(start))
    spoken = "零下" if below else _signed(sign)
    if re.match(r"\s?(?:元|块|美元|欧元|英镑|日元|港元|港币|美金)", right):
        return [Part(spoken + money(value, liang=counted(written, start, end)), start, end)]
    spoken += number(value, liang=counted(written, start, end))
    if more := re.compile(r"\+(?=\s?[\u4e00-\u9fff])(?!\s?[等加])").match(text, end):
        return [Part(spoken, start, end), Part("多", end, more.end())]
    return [Part(spoken, start, end)]


def _is_unit(written: Written, match: re.Match[str]) -> bool:
    """Whether letters after a number are a unit: not 5G, 2B or 4S, and not the l of "5l" inside a word."""
    name, right = match[1] or match[3], written.after(match.end())
    if name in ("g", "t") and re.match(r"\s?(?:网|信号|手机|基站|时代|恤)", right):
        return False
    if name in ("in", "us") and match[0].startswith(" "):
        return not re.match(r"\s?[A-Za-z]", right)
    return True


def _united(written: Written, start: int, end: int, match: re.Match[str], sign: str) -> list[Part]:
    names = tables()["units"]
    name = match[1] or match[3]
    unit = names[name]
    if match[2]:
        unit += "每" + (PER.get(match[2]) or names[match[2]])
    value = written.text[start:end]
    cold = sign == "-" and name in ("℃", "°C", "℉", "°F", "ºC")
    liang = not unit.startswith(TEMPERATURES)
    spoken = ("零下" if cold else _signed(sign)) + number(value, liang=liang)
    return [Part(spoken, start, end), Part(unit, end, match.end())]


def per(written: Written, start: int) -> list[Part] | None:
    """The reading of a slash after a quantity: 100元/天, 2万/㎡, 5L/100km, 20MB/s."""
    place = start + 1
    right = written.text[place : place + 1]
    if is_han(right) or right.isdigit():
        return [Part("每", start, place)]
    match = _units().match(written.text, place)
    if not match or match[2] or match[0][:1].isspace():
        return None
    name = match[1] or match[3]
    return [Part("每" + (PER.get(name) or tables()["units"][name]), start, match.end())]


def priced(written: Written, start: int) -> list[Part] | None:
    """The reading of a price that begins with a currency sign or code at ``start``, or None."""
    text = written.text
    sign_match = _currency_signs().match(text, start)
    if not sign_match:
        return None
    name = tables()["currencies"][sign_match[1]]
    place = sign_match.end()
    sign = ""
    if text[place] in "-+":
        sign, place = text[place], place + 1
    match = re.compile(rf"{NUMBER}|\.\d+").match(text, place)
    if not match:
        return None
    parts: list[Part] = []
    first = start
    end = match.end()
    more = re.compile(rf"\s*[-~—到至]\s*(?:{re.escape(sign_match[1])})?({NUMBER})").match(written.context, end)
    if more:
        parts = [Part(_signed(sign) + money(match[0]), start, end), Part("到", end, more.start(1))]
        first, sign, end, match = more.start(1), "", more.end(), more
    value = match[1] if more else match[0]
    spoken, end = _scaled(written, value, end)
    if NAMED.match(written.context, end):
        name = ""
    return [*parts, Part(_signed(sign) + spoken + name, first, end)]


def _scaled(written: Written, value: str, end: int) -> tuple[str, int]:
    """An amount with the scale after it (万, 亿, k, million), and where that ends."""
    if match := COLLOQUIAL.match(written.context, end):
        return money(value) + match[0].strip(), match.end()
    if match := _scales().match(written.text, end):
        whole, _, fraction = value.replace(",", "").partition(".")
        zeros = len(str(tables()["scales"][match[1]])) - 1
        if len(fraction) <= zeros:
            return compact(whole + fraction + "0" * (zeros - len(fraction))), match.end()
    return money(value), end


def compact(amount: str) -> str:
    """A whole amount in the scale that people speak: 1500000 → 一百五十万, 2500000000 → 二十五亿, 12345678 in full."""
    for zeros, name in ((8, "亿"), (4, "万")):
        if len(amount) > zeros:
            whole, rest = amount[:-zeros], amount[-zeros:].rstrip("0")
            if rest and len(rest) <= 2:
                return number(f"{whole}.{rest}") + name
            if not rest:
                return cardinal(whole, liang=True) + name
    return cardinal(amount)


def loose(written: Written, start: int) -> list[Part]:
    """Digits that no rule reads, one by one."""
    match = re.compile(r"\d+").match(written.text, start)
    assert match
    return [Part(digits(match[0]), start, match.end())]
