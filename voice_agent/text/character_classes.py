"""Character classes that the text stages share, as the inside of a regular expression's brackets."""

from __future__ import annotations

HAN = "\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
"""Chinese characters, with 々 and 〇."""

KANA = "\u3040-\u30ff\u31f0-\u31ff"

WIDE = f"{HAN}{KANA}\u3100-\u318f\uac00-\ud7a3\u2e80-\u2fdf"
"""Letters of the scripts that need no blank between a mark and the next sentence."""

STRONG = "!?。！？｡؟۔।‼⁇⁈⁉"
DOTS = ".．…"
MARKS = STRONG + DOTS
CLOSERS = ")\\]}）］】〕｝」』》〉”’»›*_~～`"
WIDE_OPENERS = "（［【〔｛「『《〈“‘«‹"
OPENERS = f"(\\[{{{WIDE_OPENERS}"
BRACKETS = "([（［【〔《〈"
CLOSING_BRACKETS = ")]）］】〕》〉"
