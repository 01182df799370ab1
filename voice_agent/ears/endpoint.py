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
_SENTENCE_END = re.compile(r"[.!?。！？…]+(?=\s|[\u3400-\u9fff]|$)")
_COMMA = re.compile(r"[,，、;；:：]")
_LONG_CLAUSE = (9, 14)  # English words, Chinese characters: longer ones hold both clauses, without a comma between them
_SHORT_CLAUSE = (3, 4)  # shorter ones are an answer: "After lunch."
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
        if _doubtful(bare):
            return config.doubtful_s
        return config.complete_s if closed else config.unmarked_s


def _wants_more(bare: str, closed: bool) -> bool:
    """Whether another word must follow the last one; before a full stop fewer words want it."""
    wanting, ending = word_list("wants_more"), word_list("may_end")
    found = _LAST_WORD.search(bare)
    if found is not None:
        word = found.group().lower()
        return word in wanting["en"] and not (closed and word in ending["en"])
    return any(bare.endswith(word) and not (closed and word in ending["zh"]) for word in wanting["zh"])


def _doubtful(bare: str) -> bool:
    """Whether the last sentence looks like half of one: a clause that wants another, or an end that seldom is one."""
    sentence = _SENTENCE_END.split(bare)[-1].strip(_CLOSING).lower()
    ends = word_list("doubtful")
    words = sentence.split()
    if any(" ".join(words[-3:]).endswith(f" {phrase.replace('-', ' ')}") for phrase in ends["en"]):
        return True
    if sentence.endswith(ends["zh"]):
        return True
    opening, closing = word_list("opens"), word_list("closes")
    if _COMMA.search(sentence):
        return False
    if words and words[0] in opening["en"]:
        return _SHORT_CLAUSE[0] <= len(words) <= _LONG_CLAUSE[0] and not any(word in closing["en"] for word in words)
    if sentence.startswith(opening["zh"]):
        rest = sentence[1:]
        return _SHORT_CLAUSE[1] <= len(sentence) <= _LONG_CLAUSE[1] and not any(word in rest for word in closing["zh"])
    return False


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
