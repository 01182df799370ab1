"""Knows the characters that are seen but not spoken: emoji with their joiners, and characters without a shape.

Emoji are the characters with the Unicode property ``Emoji`` (UTS #51, emoji-data.txt 16.0), and the blocks above
U+1F000 that are reserved for them. Digits, ``#``, ``*`` and the symbols in ``TEXT_SYMBOLS`` have the property too but
are text; they count as emoji only with the emoji selector U+FE0F or the keycap U+20E3 behind them.
"""

from __future__ import annotations

import re

TEXT_SYMBOLS = "©®‼⁉™ℹ\u2194-\u2199\u21a9\u21aaⓂ▪▫▶◀㊗㊙"
EMOJI = (
    "\u231a\u231b\u2328\u23cf\u23e9-\u23f3\u23f8-\u23fa\u25fb-\u25fe\u2600-\u2604\u260e\u2611\u2614\u2615\u2618\u261d"
    "\u2620\u2622\u2623\u2626\u262a\u262e\u262f\u2638-\u263a\u2640\u2642\u2648-\u2653\u265f\u2660\u2663\u2665\u2666\u2668"
    "\u267b\u267e\u267f\u2692-\u2697\u2699\u269b\u269c\u26a0\u26a1\u26a7\u26aa\u26ab\u26b0\u26b1\u26bd\u26be\u26c4\u26c5"
    "\u26c8\u26ce\u26cf\u26d1\u26d3\u26d4\u26e9\u26ea\u26f0-\u26f5\u26f7-\u26fa\u26fd\u2702\u2705\u2708-\u270d\u270f\u2712"
    "\u2714\u2716\u271d\u2721\u2728\u2733\u2734\u2744\u2747\u274c\u274e\u2753-\u2755\u2757\u2763\u2764\u2795-\u2797\u27a1"
    "\u27b0\u27bf\u2934\u2935\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\u3030\u303d"
    "\U0001f000-\U0001f0ff\U0001f170\U0001f171\U0001f17e\U0001f17f\U0001f18e\U0001f191-\U0001f19a\U0001f1e6-\U0001f265"
    "\U0001f300-\U0001f6ff\U0001f7d5-\U0001f7ff\U0001f900-\U0001faff\U0001fc00-\U0001fffd"
)
SELECTORS = "\u200d\u20e3\ufe0e\ufe0f\U000e0020-\U000e007f"
"""What joins and varies emoji; goes with them, and alone too."""

INVISIBLE = (
    "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\xad\u034f\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\ufdd1-\ufdef\ufff9-\uffff\ud800-\udfff\ue000-\ue1ff\ue201-\uf8ff\u20e3\U000e0000-\U000e0fff\U000f0000-\U0010ffff"
)
"""Control characters, zero-width characters, lone surrogates, private use (but for the next one) and noncharacters
(but for U+FDD0, which the cleaner uses itself)."""

IS_INVISIBLE = re.compile(f"[{INVISIBLE}]")

CITATION_START, CITATION_END = "\ue200", "\ue201"
"""Private characters between which some models put the sources they cite."""

SEQUENCE = re.compile(f"(?:[{EMOJI}{SELECTORS}]|[0-9#*]\ufe0f?\u20e3|[{TEXT_SYMBOLS}]\ufe0f)+")
"""A run of emoji. What is held to see its end is at most the two characters of a keycap."""

MAY_BECOME_EMOJI = re.compile(f"(?:[0-9#*]\ufe0f?|[{TEXT_SYMBOLS}])\\Z")
"""The end of a text whose last character becomes part of an emoji if a selector follows."""
