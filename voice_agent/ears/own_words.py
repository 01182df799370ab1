"""Knows the agent's own words, when its echo comes back as text."""

from __future__ import annotations

import difflib
import re

__all__ = ["are_own_words", "may_be_own_words"]

_LEAST = 3
_SHARE = 0.8
_TOKEN = re.compile(r"[\u3400-\u9fff]|[^\W_\u3400-\u9fff]+(?:['’][^\W_\u3400-\u9fff]+)*")
_LOOKED_BACK = 400
"""Words of the agent's that may still echo: the last minutes."""


def are_own_words(words: str, spoken: str) -> bool:
    """Whether ``words`` (at least three, or three Chinese characters) are a stretch of what the agent has ``spoken``.

    One in five may be another: an echo is not recognised as well as speech.
    """
    said, own = _tokens(words), _tokens(spoken)[-_LOOKED_BACK:]
    if len(said) < _LEAST:
        return False
    blocks = difflib.SequenceMatcher(None, own, said, autojunk=False).get_matching_blocks()
    same = [block.size for block in blocks if block.size > 1]  # single words are everywhere
    return max(same, default=0) >= _LEAST and sum(same) >= _SHARE * len(said)


def may_be_own_words(words: str, sounding: str) -> bool:
    """Whether all ``words`` are among those that the agent is ``sounding`` now: a loud echo brings back single ones."""
    said = set(_tokens(words))
    return bool(said) and said <= set(_tokens(sounding))


def _tokens(text: str) -> list[str]:
    return [match.group().casefold().replace("’", "'") for match in _TOKEN.finditer(text)]
