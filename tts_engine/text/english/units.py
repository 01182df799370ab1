"""Units of measure and currencies: which symbol stands at a place in a text, and its names for one and for many."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

TABLE = Path(__file__).parent.parent / "data" / "units_en.json"
POWERS = {"²": "square", "2": "square", "^2": "square", "³": "cubic", "3": "cubic", "^3": "cubic"}
LENGTHS = frozenset(["m", "mm", "cm", "dm", "km", "μm", "nm", "mi", "ft", "in", "yd"])
_END = re.compile(r"(?![\w²³])")
_POWER = re.compile(r"\^?[23](?!\d)|[²³]")
_PER = re.compile(r"(?: ?/ ?| per )")
_WORD = re.compile(r"[a-zA-Z]+(?![\w@]|\.\w)")


class Unit(NamedTuple):
    """A unit at a place: where it ends, and its names."""

    end: int
    singular: str
    plural: str


class Currency(NamedTuple):
    """The names of a currency and of its hundredth; the latter are empty where there is none in use."""

    singular: str
    plural: str
    cent: str
    cents: str


@dataclass(frozen=True)
class Units:
    """The compiled table."""

    names: dict[str, tuple[str, str]]
    risky: dict[str, list[str] | None]
    glued_letters: frozenset[str]
    per: dict[str, str]
    money: dict[str, Currency]
    symbol: re.Pattern[str]
    before: re.Pattern[str]
    after: re.Pattern[str]


@cache
def units() -> Units:
    """The table, loaded at the first use."""
    data = json.loads(TABLE.read_text(encoding="utf-8"))
    names: dict[str, tuple[str, str]] = {}
    for symbol, (singular, plural, prefixes) in data["prefixed"].items():
        names[symbol] = (singular, plural)
        for prefix in prefixes.split():
            scale = data["prefixes"][prefix]
            names[prefix + symbol] = (scale + singular, scale + plural)
    names.update({symbol: (singular, plural) for symbol, (singular, plural) in data["whole"].items()})
    money = {symbol: Currency(*forms) for symbol, forms in data["money"].items()}
    alone = {symbol for symbol in money if not symbol.isalpha()}
    return Units(
        names=names,
        risky={symbol: words for symbol, words in data["risky"].items() if symbol != "note"},
        glued_letters=frozenset(data["glued_letters"]["letters"]),
        per=data["per"],
        money=money,
        symbol=re.compile(_any(names)),
        before=re.compile(_any(money)),
        after=re.compile(f"(?:{_any(alone)})(?![\\d])|(?:{_any(set(money) - alone)})(?!\\w)"),
    )


def _any(symbols: set[str] | dict[str, tuple[str, str]] | dict[str, Currency]) -> str:
    return "|".join(re.escape(symbol) for symbol in sorted(symbols, key=len, reverse=True))


def unit_at(text: str, at: int, glued: bool) -> Unit | None:
    """The unit that begins at ``at``, with its power and what it is "per".

    ``glued``: it follows the figure without a blank, which makes short symbols surer and single letters less sure.
    """
    found = _simple(text, at, glued)
    if found is None:
        return None
    per = _PER.match(text, found.end)
    if per is None:
        return found
    below = _simple(text, per.end(), True, below=True) or _per_word(text, per.end())
    if below is None or " per " in found.singular:
        return found
    return Unit(below.end, f"{found.singular} per {below.singular}", f"{found.plural} per {below.singular}")


def per_at(text: str, at: int) -> Unit | None:
    """ "/month" or "/kg" at ``at``: what something costs or happens per."""
    if text[at : at + 1] != "/":
        return None
    at += 1
    return _per_word(text, at) or _simple(text, at, True, below=True)


def _per_word(text: str, at: int) -> Unit | None:
    match = _WORD.match(text, at)
    if match is None:
        return None
    word = match[0]
    named = units().per.get(word)
    if named is None and (len(word) < 3 or not word.islower()):
        return None
    return Unit(match.end(), named or word, named or word)


def _simple(text: str, at: int, glued: bool, below: bool = False) -> Unit | None:
    table = units()
    match = table.symbol.match(text, at)
    while match is not None:
        symbol, end = match[0], match.end()
        power = _POWER.match(text, end) if symbol in LENGTHS or symbol == "s" else None
        if power is not None and not _END.match(text, power.end()):
            power = None
        if power is not None:
            name = POWERS[power[0]]
            singular, plural = table.names[symbol]
            if symbol == "s":
                name = "squared" if name == "square" else "cubed"
                return Unit(power.end(), f"{singular} {name}", f"{plural} {name}")
            return Unit(power.end(), f"{name} {singular}", f"{name} {plural}")
        if not symbol[-1].isalpha() or _END.match(text, end):
            break
        # A shorter symbol may still fit: "°" in "°Celsius".
        match = table.symbol.match(text, at, end - 1)
    if match is None:
        return None
    symbol, end = match[0], match.end()
    if not below and not _plausible(text, symbol, end, glued):
        return None
    if text[end : end + 1] == "." and symbol[-1].isalpha() and not _ends_sentence(text, end):
        end += 1
    return Unit(end, *table.names[symbol])


def _ends_sentence(text: str, at: int) -> bool:
    """Whether the dot at ``at`` is more than the dot of an abbreviation."""
    rest = text[at + 1 : at + 40].lstrip("\"'”)] \t\n")
    return not rest or not (rest[0].islower() or rest[0].isdigit() or rest[0] in ",;:-–—(")


def _plausible(text: str, symbol: str, end: int, glued: bool) -> bool:
    table = units()
    if glued:
        return symbol not in table.glued_letters and symbol not in ("in", "st", "ac", "AU", "pt")
    if symbol not in table.risky:
        return True
    dotted = text[end : end + 1] == "."
    if symbol == "in" and dotted and not _ends_sentence(text, end):
        return True
    words = table.risky[symbol]
    if words is None:
        return False
    rest = text[end : end + 24].lstrip(" ")
    if symbol == "in":
        return any(re.match(rf"{word}\b", rest) for word in words)
    return not rest or not rest[0].isalnum() or any(re.match(rf"{word}\b", rest) for word in words)
