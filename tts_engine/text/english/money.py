"""Amounts of money: symbol or code before or after, cents, scales, ranges, prices per something."""

from __future__ import annotations

import re

from tts_engine.text.english import numbers
from tts_engine.text.english.quantity import Number, number_at, scale_at
from tts_engine.text.english.scan import Scan
from tts_engine.text.english.units import Currency, per_at, units

_COMMA_CENTS = re.compile(r"(\d{1,3}(?:\.\d{3}){0,5}),(\d{1,2})(?![\d,])")
_DOT_GROUPS = re.compile(r"\d{1,3}(?:\.000){1,5}(?!\d|[.,]\d)")
_DASH = re.compile(r" ?[-–] ?| - ")
_CENT_SIGN = re.compile(r" ?¢")
_HYPHENATED = re.compile(r"-(?!(?:a|an|per)-)[A-Za-z]")
_DOLLAR_CODE = re.compile(r" ?(USD|CAD|AUD|NZD|HKD|SGD|TWD|MXN)(?!\w)")


def read_money(scan: Scan, at: int) -> int | None:
    """Money that begins with its symbol or code: $5, US$1.5M, -$5, €3,50, EUR 20, $5-10, $3/month."""
    text = scan.text
    place = at
    sign = ""
    if text[place] in "-−+":
        sign = "plus" if text[place] == "+" else "minus"
        place += 1
    match = units().before.match(text, place)
    if match is None:
        return None
    place = match.end()
    if match[0][-1].isalpha() or match[0][-1] == ".":
        place += text[place : place + 1] in (" ", "\u00a0")
    elif text[place : place + 2][:1] == " " and text[place + 1 : place + 2].isdigit():
        place += 1
    if text[place : place + 1] in ("-", "−") and not sign:
        sign = "minus"
        place += 1
    currency = units().money[match[0]]
    number = _amount(text, place)
    if number is None:
        return None
    if sign:
        scan.say(sign, at, number.end)
    return _say_range(scan, at, number, currency, match[0])


def read_money_after(scan: Scan, at: int) -> int | None:
    """Money whose symbol or code follows: 5€, 20 USD, 50¢, 5-10 EUR."""
    text = scan.text
    number = _amount(text, at)
    if number is None:
        return None
    end = number.end
    second: tuple[int, Number] | None = None
    dash = _DASH.match(text, end)
    if dash is not None:
        other = _amount(text, dash.end())
        if other is not None:
            second = (dash.end(), other)
            end = other.end
    cents = _CENT_SIGN.match(text, end)
    if cents is not None:
        _say_numbers(scan, at, number, second)
        scan.say("cent" if number.is_one and second is None else "cents", end, cents.end())
        return cents.end()
    scale = scale_at(text, end, money=True)
    after = scale[0] if scale else end
    after += text[after : after + 1] in (" ", "\u00a0")
    match = units().after.match(text, after)
    if match is None or (match[0] == "$" and after != (scale[0] if scale else end)):
        return None
    if match[0] in ("RM", "kr") and not text[at:after].endswith(" "):
        return None
    currency = units().money[match[0]]
    if second is None and scale is None:
        _say_amount(scan, at, match.end(), number, None, currency, single=False)
        return _say_per(scan, match.end())
    _say_numbers(scan, at, number, second)
    if scale:
        scan.say([scale[1]], end, scale[0])
    scan.say(currency.plural, match.start(), match.end())
    return _say_per(scan, match.end())


def _amount(text: str, at: int) -> Number | None:
    match = _COMMA_CENTS.match(text, at)
    if match is not None:
        return Number(match.end(), match[1].replace(".", ""), match[2], True)
    match = _DOT_GROUPS.match(text, at)
    if match is not None:
        return Number(match.end(), match[0].replace(".", ""), "", True)
    return number_at(text, at)


def _say_numbers(scan: Scan, at: int, number: Number, second: tuple[int, Number] | None) -> None:
    scan.say(number.words(), at, number.end)
    if second is not None:
        scan.say("to", number.end, second[0])
        scan.say(second[1].words(), second[0], second[1].end)


def _say_range(scan: Scan, at: int, number: Number, currency: Currency, symbol: str) -> int:
    """Say the amount, and the second one of a range with it; the currency is named once, unless there are cents."""
    text = scan.text
    scale = scale_at(text, number.end, money=True)
    end = scale[0] if scale else number.end
    dash = _DASH.match(text, end)
    if dash is not None:
        repeated = text.startswith(symbol, dash.end())
        other = _amount(text, dash.end() + (len(symbol) if repeated else 0))
        if other is not None and (repeated or text[other.end : other.end + 1] not in ("-", "=", "+")):
            other_scale = scale_at(text, other.end, money=True)
            stop = other_scale[0] if other_scale else other.end
            if number.fraction and not scale and not other_scale:
                _say_amount(scan, at, number.end, number, None, currency, single=False)
            else:
                scan.say(number.words(), at, number.end)
                if scale and (other_scale is None or scale[1] != other_scale[1]):
                    scan.say([scale[1]], number.end, scale[0])
            scan.say("to", end, dash.end())
            _say_amount(scan, dash.end(), stop, other, other_scale, currency, scan.singular_here(at, stop))
            return _say_per(scan, stop)
    plus = text[end : end + 1] == "+" and not text[end + 1 : end + 2].isalnum()
    stop = end + plus
    code = _DOLLAR_CODE.match(text, stop) if symbol == "$" else None
    if code is not None:
        currency = units().money[code[1]]
        stop = code.end()
    single = _HYPHENATED.match(text, stop) is not None or scan.singular_here(at, stop)
    _say_amount(scan, at, stop, number, scale, currency, single, plus)
    return _say_per(scan, stop)


def _say_per(scan: Scan, at: int) -> int:
    per = per_at(scan.text, at)
    while per is not None:
        scan.say(f"per {per.singular}", at, per.end)
        at = per.end
        per = per_at(scan.text, at)
    return at


def _say_amount(
    scan: Scan,
    start: int,
    end: int,
    number: Number,
    scale: tuple[int, str] | None,
    currency: Currency,
    single: bool,
    plus: bool = False,
) -> None:
    more = ["plus"] if plus else []
    main = currency.singular if single else currency.plural
    if scale is not None:
        scan.say([*number.words(), scale[1], *more, *main.split()], start, end)
        return
    fraction = number.fraction
    if len(fraction) > 2 and not fraction[2:].strip("0"):
        fraction = fraction[:2]
    if len(fraction) > 2 or (fraction and not currency.cent):
        scan.say([*number.words(), *more, *main.split()], start, end)
        return
    cents = int(fraction.ljust(2, "0")) if fraction else 0
    has_whole = bool(number.whole.strip("0")) or not cents
    if has_whole:
        one = number.whole == "1" and not plus
        scan.say(numbers.whole(number.whole or "0", number.separated) + more, start, end)
        scan.say(currency.singular if one or (single and not cents) else currency.plural, start, end)
    if cents:
        name = currency.cent if cents == 1 or (single and not has_whole) else currency.cents
        scan.say([*(["and"] if has_whole else []), *numbers.cardinal(cents), *name.split()], start, end)
