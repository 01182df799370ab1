"""A Chinese sentence as the number readers see it: folded to plain digits and signs, with context on both sides."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

WINDOW = 20
"""Characters of context that a decision may look at, on each side."""
NUMBER = r"(?:\d{1,3}(?:,\d{3}){1,9}(?![\d,])|\d+)(?:\.\d+)?"
CLAUSE = re.compile(r"[，。！？；,.!?;\n](?!\d)")
FOLDED = {
    "　": " ", "\u00a0": " ", "\u202f": " ", "\u2009": " ", "−": "-", "–": "-", "‐": "-", "‑": "-", "‒": "-", "﹣": "-",
    "〜": "~", "∼": "~", "⁓": "~", "∶": ":", "⁄": "/", "∕": "/", "﹪": "%", "٪": "%", "•": "·", "\u2126": "Ω", "µ": "μ",
    "￥": "¥", "￡": "£", "￦": "₩", "，": "，", "！": "！", "？": "？", "；": "；", "（": "（", "）": "）",
}  # fmt: skip


class Part(NamedTuple):
    """Spoken characters and the span of the sentence that they stand for."""

    spoken: str
    start: int
    end: int


@cache
def tables() -> dict[str, Any]:
    """The data of `normalize_zh.json`."""
    path = Path(__file__).parent / "data" / "normalize_zh.json"
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


@cache
def fold_char(char: str) -> str:
    """One character for one: full-width forms, dashes and digits of other scripts as their plain forms."""
    if char in FOLDED:
        return FOLDED[char]
    if "！" <= char <= "～":
        return chr(ord(char) - 0xFEE0)
    if char.isdecimal():
        return str(unicodedata.decimal(char))
    return char


@dataclass(frozen=True, slots=True)
class Written:
    """``text`` is folded, ``context`` is ``text`` with the traditional characters of the context words simplified.

    Both have the length of what was written.
    """

    text: str
    context: str

    @classmethod
    def of(cls, raw: str) -> Written:
        text = raw if raw.isascii() else "".join(map(fold_char, raw))
        return cls(text, text if text.isascii() else text.translate(_simplified()))

    def before(self, place: int) -> str:
        """The context before a place, within its clause."""
        left = self.context[max(0, place - WINDOW) : place]
        ends = [match.end() for match in CLAUSE.finditer(left)]
        return left[ends[-1] :] if ends else left

    def after(self, place: int) -> str:
        """The context after a place."""
        return self.context[place : place + WINDOW]


@cache
def _simplified() -> dict[int, str]:
    return {ord(old): new for old, new in tables()["traditional"].items()}


@cache
def _two_is_ordinal() -> re.Pattern[str]:
    return re.compile(rf"\s*(?:{tables()['ordinals']})")


@cache
def _two_is_counted() -> re.Pattern[str]:
    words = "|".join(tables()["measure_words"])
    return re.compile(rf"\s*(?:(?:[到至或、~-]|还是)\s*{NUMBER})?\s*(?:{words}|[{tables()['measures']}])")


ORDINAL_BEFORE = re.compile(r"(?:第|(?<![每一两几])(?:周|星期|礼拜)|初|农历|[零〇一二三四五六七八九十百千\d])\s*$")
"""What makes a 2 an ordinal, or a part of a longer number, from the left."""
FLOOR_BEFORE = re.compile(r"(?:住|在|到|去|上|位于|于)\s*$")


def counted(written: Written, start: int, end: int) -> bool:
    """Whether a 2 written at ``start`` … ``end`` counts something, so that it is 两 rather than 二."""
    right = written.after(end)
    left = written.before(start)
    if ORDINAL_BEFORE.search(left) or _two_is_ordinal().match(right):
        return False
    if right.startswith("层") and FLOOR_BEFORE.search(left):
        return False
    return bool(_two_is_counted().match(right))
