"""Guesses when the words of a sentence sound, for engines that do not tell: evenly, by how long the words are."""

from __future__ import annotations

import re

from tts_engine.text.language import HAN, is_han
from tts_engine.types import WordTime

_WORD = re.compile(rf"[{HAN}]|[^\W{HAN}]+(?:['’][^\W_]+)*")
_CHINESE_S = 0.22  # a character at speed 1
_LETTER_S = 0.065


class WordEstimate:
    """Word times that come out while the length of the audio is still unknown.

    Words are placed at a usual rate of speech; those that are left when the audio ends are put at its end. So the times
    are right at the start of a sentence and may be off by a word or more towards its end.
    """

    def __init__(self, text: str, speed: float) -> None:
        """``speed``: factor on the rate of speech."""
        self._speed = speed
        self._words = [(match.start(), match.end()) for match in _WORD.finditer(text)]
        self._lengths_s = [_CHINESE_S if is_han(text[start]) else _LETTER_S * (end - start + 1) for start, end in self._words]
        self._given = 0
        self._place_s = 0.0
        self._before = 0

    @property
    def total(self) -> int:
        """How many words there are; a text without any has nothing to say."""
        return len(self._words)

    def begin(self, samples: int) -> None:
        """The speech begins ``samples`` samples into the audio."""
        self._before = samples

    def until(self, samples: int, sample_rate: int, *, last: bool) -> tuple[WordTime, ...]:
        """The words that begin before sample ``samples`` and were not given yet; all of them with ``last``."""
        out = []
        while self._given < len(self._words):
            length_s = self._lengths_s[self._given] / self._speed
            start = self._before + round(self._place_s * sample_rate)
            if start >= samples and not last:
                break
            end = self._before + round((self._place_s + length_s) * sample_rate)
            out.append(WordTime(*self._words[self._given], min(start, samples), min(end, samples) if last else end))
            self._place_s += length_s
            self._given += 1
        return tuple(out)
