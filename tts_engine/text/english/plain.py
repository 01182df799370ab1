"""Plain characters: width, digit and quote variants become the ones that readers know, and every offset is kept.

Full-width and mathematical letters, digits of other scripts, ligatures, squared units, accents written apart, curly
apostrophes, invisible joiners. Superscripts and fractions keep their own sign, because they mean more than a digit.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

FRACTIONS = frozenset("¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞")
RAISED = "⁰¹²³⁴-⁹ⁿ¼-¾⅐-⅞"
"""What counts as a letter or digit for a regular expression, but is none: the inside of a character class."""
_KEPT = frozenset("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ™®©…ªº℠")
_CHOSEN = {
    **dict.fromkeys("’‘ʼʻ´ˋ‛", "'"),
    **dict.fromkeys("„«‟", "“"),
    **dict.fromkeys("»", "”"),
    **dict.fromkeys("‐‑﹣－", "-"),
    **dict.fromkeys("。．｡", "."),
    **dict.fromkeys("、，､‚", ","),
    **dict.fromkeys("‒", "–"),
    **dict.fromkeys("―", "—"),
    **dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff\u200e\u200f\ufe0e\ufe0f", ""),
    "№": "No.",
    "‥": "…",
    "Ω": "Ω",
    "∶": ":",
}


def plain(text: str) -> tuple[str, list[tuple[int, int]] | None]:
    """The plain form of ``text``, and the span in ``text`` of each of its characters (None: offsets are equal)."""
    if text.isascii():
        return text, None
    table = {char: _plain_char(char) for char in set(text)}
    if all(len(new) == 1 for new in table.values()) and not any("\u0300" <= char <= "\u036f" for char in table):
        return "".join([table[char] for char in text]), None
    out: list[str] = []
    spans: list[tuple[int, int]] = []
    for index, char in enumerate(text):
        if "\u0300" <= char <= "\u036f" and out and spans[-1][1] == index:
            composed = unicodedata.normalize("NFC", out[-1] + char)
            if len(composed) == 1:
                out[-1] = composed
            spans[-1] = (spans[-1][0], index + 1)
            continue
        out.extend(table[char])
        spans.extend([(index, index + 1)] * len(table[char]))
    return "".join(out), spans


@lru_cache(maxsize=4096)
def _plain_char(char: str) -> str:
    if char in _CHOSEN:
        return _CHOSEN[char]
    if char.isascii() or char in _KEPT:
        return char
    category = unicodedata.category(char)
    if category in ("Nd", "Nl", "No"):
        value = unicodedata.numeric(char)
        return str(int(value)) if value == int(value) and value >= 0 else char if char in FRACTIONS else ""
    new = unicodedata.normalize("NFKC", char)
    if new.isspace() or new.startswith(" "):
        return char
    return new if len(new) == 1 or all(part.isascii() or part in "°μΩ" for part in new) else char
