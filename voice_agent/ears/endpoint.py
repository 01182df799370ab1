"""How much silence ends a turn, by what was said last.

A listener does not wait equally long after "What time is it?" and after "I would like a table, because". The rules look at
the end of the words so far, in English or Chinese, and give a delay between the configured bounds.
"""

from __future__ import annotations

import re
from typing import Protocol

from voice_agent.ears.config import EndOfTurnConfig
from voice_agent.ears.words import word_list

__all__ = ["EndOfTurn", "EndOfTurnRules"]

_QUESTION = ("?", "？")
_STOP = (".", "!", "。", "！")
_OPEN = (",", "，", "、", ";", "；", ":", "：", "-", "—", "...", "…")
_CLOSING = " .!?。！？,，、;；:：-—…\"'”’)）"
_LAST_WORD = re.compile(r"[a-z']+$", re.IGNORECASE)
_LAST_GROUPS = re.compile(r"[\s,，.。、-]+")
_WHOLE_NUMBER = re.compile(r"\D(?<![\d][ -])\d{1,4}$")


class EndOfTurn(Protocol):
    """Decides how long to wait; a model may stand here."""

    def delay_s(self, words: str | None) -> float:
        """Seconds of silence after which the turn is over. ``words``: what was said so far, None if nobody knows."""
        ...


class EndOfTurnRules:
    """The rules for both languages.

    A recogniser closes every piece with a full stop, so a last word that wants another ("because", "因为") says more
    than the stop behind it; a question mark says more than the word.
    """

    def __init__(self, config: EndOfTurnConfig | None = None) -> None:
        self._config = config or EndOfTurnConfig()

    def delay_s(self, words: str | None) -> float:
        config = self._config
        return min(max(self._wanted_s(words), config.min_s), config.max_s)

    def _wanted_s(self, words: str | None) -> float:
        config = self._config
        text = (words or "").strip().replace("’", "'")
        bare = text.rstrip(_CLOSING)
        if not bare:
            return config.plain_s
        if text.endswith(_QUESTION):
            return config.complete_s
        closed = text.endswith(_STOP) and not text.endswith(_OPEN)
        if text.endswith(_OPEN) or _wants_more(bare, closed):
            return config.unfinished_s
        if _dictates(bare):
            return config.dictation_s
        return config.complete_s if closed else config.plain_s


def _wants_more(bare: str, closed: bool) -> bool:
    """Whether another word must follow the last one; before a full stop fewer words want it."""
    wanting, ending = word_list("wants_more"), word_list("may_end")
    found = _LAST_WORD.search(bare)
    if found is not None:
        word = found.group().lower()
        return word in wanting["en"] and not (closed and word in ending["en"])
    return any(bare.endswith(word) and not (closed and word in ending["zh"]) for word in wanting["zh"])


def _dictates(bare: str) -> bool:
    """Whether a number is being read out: digits at the end, as words or figures, and not a whole number behind a word."""
    digits = word_list("digits")
    tail = [word.lower() for word in _LAST_GROUPS.split(bare)[-2:]]
    if len(tail) == 2 and all(word in digits["en"] or word.isdecimal() for word in tail):
        return True
    if len(bare) < 2 or not all(char.isdecimal() or char in digits["zh"] for char in bare[-2:]):
        return False
    named = word_list("numbers")
    return _WHOLE_NUMBER.search(bare) is None or any(word in bare.lower() for words in named.values() for word in words)
