"""Knows a wake phrase at the beginning of what was said, also where a recogniser spells it its own way."""

from __future__ import annotations

import difflib
import re
import unicodedata

from voice_agent.errors import InputError

__all__ = ["WakePhrase"]

_ALIKE = 0.87
_ALIKE_ZH = 0.75  # one character in four is another of the same sound
_WORD = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+(?:['’][^\W\u3400-\u9fff]+)*")


class WakePhrase:
    """``phrase``: what the user says first, such as "hey computer" or "小雨小雨". Raises InputError where it has no word."""

    def __init__(self, phrase: str) -> None:
        self._bare = _bare(phrase)
        if not self._bare:
            raise InputError(f"the wake phrase {phrase!r} has no word: use something like 'hey computer'")
        self._chinese = any("\u3400" <= char <= "\u9fff" for char in self._bare)

    def after(self, text: str) -> str | None:
        """What follows the phrase in ``text``, perhaps nothing; None where the text does not begin with the phrase."""
        best, end = 0.0, 0
        words = list(_WORD.finditer(text))
        for first in range(min(2, len(words))):
            for last in range(first, len(words)):
                heard = _bare(text[words[first].start() : words[last].end()])
                if len(heard) > 2 * len(self._bare):
                    break
                if self._chinese and len(heard) != len(self._bare):
                    continue
                alike = difflib.SequenceMatcher(None, self._bare, heard, autojunk=False).ratio()
                if alike > best:
                    best, end = alike, words[last].end()
        if best < (_ALIKE_ZH if self._chinese else _ALIKE):
            return None
        return re.sub(r"^[\W_]+", "", text[end:])


def _bare(text: str) -> str:
    """Letters and digits only, small."""
    return "".join(char for char in unicodedata.normalize("NFKC", text).casefold() if char.isalnum())
