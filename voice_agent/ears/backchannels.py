"""Tells words that a listener says without wanting the turn, in English and Chinese."""

from __future__ import annotations

import re
from functools import cache

from voice_agent.ears.words import word_list

__all__ = ["is_backchannel", "may_become_backchannel"]


def is_backchannel(words: str) -> bool:
    """Whether these words are nothing but signs of listening ("uh-huh", "yeah, right", "嗯", "对对对").

    Punctuation and letter case do not count. No words at all are no backchannel.
    """
    return _only_backchannels().fullmatch(_bare(words)) is not None


def may_become_backchannel(words: str) -> bool:
    """Whether more words could make them signs of listening: "I" may become "I see", "我" may become "我知道"."""
    bare = _bare(words)
    signs = _only_backchannels().match(bare)
    rest = " ".join(re.findall(r"[\w']+", bare[signs.end() if signs else 0 :].lower()))
    lists = word_list("backchannels")
    english = any(phrase.startswith(f"{rest}-") for phrase in lists["en"])
    return not rest or english or any(phrase.startswith(rest) for phrase in lists["zh"])


def _bare(words: str) -> str:
    return re.sub(r"^\W+", "", words.replace("’", "'"))


@cache
def _only_backchannels() -> re.Pattern[str]:
    words = word_list("backchannels")
    english = [re.escape(phrase).replace(r"\-", r"[\s-]*") for phrase in words["en"]]
    # The longest first, and possessive: a text of thousands of them is read once, whatever follows.
    longest_first = sorted([*english, *words["zh"]], key=len, reverse=True)
    return re.compile(rf"(?:(?:{'|'.join(longest_first)})(?![a-z'])\W*+)++", re.IGNORECASE)
