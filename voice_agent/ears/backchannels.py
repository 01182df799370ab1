"""Tells words that a listener says without wanting the turn, in English and Chinese."""

from __future__ import annotations

import re
from functools import cache

from voice_agent.ears.words import word_list

__all__ = ["is_backchannel"]


def is_backchannel(words: str) -> bool:
    """Whether these words are nothing but signs of listening ("uh-huh", "yeah, right", "嗯", "对对对").

    Punctuation and letter case do not count. No words at all are no backchannel.
    """
    bare = re.sub(r"^\W+", "", words.replace("’", "'"))
    return _only_backchannels().fullmatch(bare) is not None


@cache
def _only_backchannels() -> re.Pattern[str]:
    words = word_list("backchannels")
    english = [re.escape(phrase).replace(r"\-", r"[\s-]*") for phrase in words["en"]]
    # The longest first, and possessive: a text of thousands of them is read once, whatever follows.
    longest_first = sorted([*english, *words["zh"]], key=len, reverse=True)
    return re.compile(rf"(?:(?:{'|'.join(longest_first)})(?![a-z'])\W*+)++", re.IGNORECASE)
