"""Character classes that the text stages share, as the inside of a regular expression's brackets."""

from __future__ import annotations

from tts_engine.text.language import HAN as _HAN

HAN = f"\u3005{_HAN}"
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
