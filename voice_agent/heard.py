"""Knows which characters of the LLM's text were heard, from the words' times and the sink's count of heard samples.

A word (English: up to the next blank; Chinese: one character, a number as one) counts as heard when half of it has
sounded, so a cut inside a word is wrong by half a word at most. Silence at the edges of a word's time is no part of it: the
engine's durations run on into pauses. Marks that close a word (punctuation, quotes, emphasis)
belong to it, opening ones to the word that follows. What is left out of speech (code, emoji, links) counts with the
next word that is heard, and at the end with the last one.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field

from tts_engine.text.language import is_han
from tts_engine.types import AudioChunk, Utterance, WordTime, raw_span
from voice_agent.sounding import Sounding

_OPENING = "([{<（【「『《〈“‘«¿¡#@$€£¥&"
_EITHER = "*_`~\"'"
"""Marks that open and close: they close a word when they stand for the second time."""
_JOINING = frozenset("-'’:&@_+/%°\\=~$€£¥")
_LONGEST_JOINT = 2
_LONGEST_CLOSING = 40
_LOOK_BACK = 400


class RawText:
    """All that an LLM has written so far: appending and reading a stretch cost the same however long it is."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._starts: list[int] = []
        self._length = 0

    def append(self, text: str) -> None:
        if text:
            self._parts.append(text)
            self._starts.append(self._length)
            self._length += len(text)

    def __len__(self) -> int:
        return self._length

    def __str__(self) -> str:
        return "".join(self._parts)

    def between(self, start: int, end: int) -> str:
        """The characters from ``start`` up to ``end``, as far as there are any."""
        start, end = max(start, 0), min(end, self._length)
        if start >= end:
            return ""
        first = bisect_right(self._starts, start) - 1
        behind = bisect_right(self._starts, end - 1)
        offset = self._starts[first]
        return "".join(self._parts[first:behind])[start - offset : end - offset]


@dataclass(slots=True)
class HeardWord:
    """One word on the sink's line of samples: its raw span, its span in the utterance's text, and when it sounds.

    ``times``: first sample and the one behind the last of each spoken word that makes it up ("3.14" is four).
    """

    start: int
    end: int
    utterance: Utterance
    text_start: int
    text_end: int
    times: list[tuple[int, int]]
    digits: bool = False  # a Chinese number

    @property
    def start_sample(self) -> int:
        return self.times[0][0]

    @property
    def end_sample(self) -> int:
        return self.times[-1][1]

    @property
    def heard_sample(self) -> int:
        """The word counts as heard when so many samples have been heard."""
        first = self.times[-1] if self.by_digit else self.times[0]
        return (first[0] + self.times[-1][1] + 1) // 2

    @property
    def by_digit(self) -> bool:
        """Each of its characters is a spoken word, and counts by itself."""
        return self.digits and len(self.times) == self.end - self.start

    def heard_end(self, sample: int) -> int:
        """The raw end of what is heard of a word that counts as not heard: digits count one by one."""
        if not self.by_digit:
            return self.start
        return self.start + sum((low + high + 1) // 2 <= sample for low, high in self.times)

    @property
    def shown(self) -> str:
        """The word as a caption: what is spoken, with the marks that close it."""
        text, stop = self.utterance.text, self.text_end
        while stop < len(text) and not text[stop].isspace() and not text[stop].isalnum() and text[stop] not in _OPENING:
            stop += 1
        return text[self.text_start : stop]


@dataclass(slots=True)
class HeardText:
    """The record of one turn. ``planned``, ``add`` and ``finish`` write it, the other methods may be asked at any time.

    Samples are numbered as the sink's playhead numbers them.
    """

    raw: RawText
    words: list[HeardWord] = field(default_factory=list)
    ends: list[tuple[int, int]] = field(default_factory=list)
    """(sample behind its last one, index) of each utterance that is written whole."""
    sample: int = 0
    """How many samples have been heard, of all that the sink has played."""
    _last_planned: int = -1
    _finished: bool = False
    _spoken: Utterance | None = None
    """The utterance whose packets come; where it sounds, and the number of its first sample."""
    _sounding: Sounding = field(default_factory=lambda: Sounding(1))
    _first_sample: int = 0
    _running: list[tuple[HeardWord, int]] = field(default_factory=list)
    """Spoken words (by their place in ``HeardWord.times``) whose last samples have not come yet."""

    def planned(self, utterance: Utterance) -> None:
        """An utterance will be spoken."""
        self._last_planned = utterance.index

    def finish(self) -> None:
        """The stream has ended: no more utterances will come."""
        self._finished = True

    def add(self, chunk: AudioChunk, at: int) -> None:
        """A packet goes to the sink; ``at`` is the number of its first sample there."""
        utterance = chunk.utterance
        if utterance.index < 0:
            return  # a filler: it is no part of the text
        start = at - chunk.start_sample
        if utterance is not self._spoken:
            self._end_words(all_came=True)  # of one that failed halfway
            self._spoken, self._sounding, self._first_sample = utterance, Sounding(chunk.format.sample_rate), at
        self._sounding.feed(chunk.samples)
        for word in chunk.words:
            self._add_word(utterance, word, start)
        if chunk.last:
            end = at + len(chunk.samples)
            if end > start and not (self.words and self.words[-1].utterance is utterance):
                # The engine told no word times: the sentence counts as one word.
                self._add_word(utterance, WordTime(0, len(utterance.text), 0, end - start), start)
            self.ends.append((end, utterance.index))
        self._end_words(all_came=chunk.last)

    @property
    def text(self) -> str:
        """The text that was heard so far."""
        return self.heard(self.sample)

    def heard_end(self, sample: int) -> int:
        """The raw offset up to which the text was heard when ``sample`` samples had been heard."""
        if self._complete(sample):
            return len(self.raw)
        count = self.heard_words(sample)
        if count < len(self.words):
            inside = self.words[count].heard_end(sample)
            if inside > self.words[count].start:
                return inside
        if count == 0:
            return 0
        word = self.words[count - 1]
        limit = self.words[count].start if count < len(self.words) else len(self.raw)
        return self._closed(word, limit)

    def heard(self, sample: int) -> str:
        """The text that was heard when ``sample`` samples had been heard."""
        return self.raw.between(0, self.heard_end(sample))

    def heard_words(self, sample: int) -> int:
        """How many of ``words`` count as heard."""
        return bisect_right(self.words, sample, key=lambda word: word.heard_sample)

    def _complete(self, sample: int) -> bool:
        """Everything that could be said was heard, so what could not be said counts too."""
        if not self._finished:
            return False
        if self._last_planned < 0:
            return True
        return bool(self.ends) and self.ends[-1][1] == self._last_planned and sample >= self.ends[-1][0]

    def _add_word(self, utterance: Utterance, time: WordTime, start: int) -> None:
        raw_start, raw_end = raw_span(utterance.runs, time.start, time.end)
        first, low, high = self._first_sample, start + time.start_sample, start + time.end_sample
        times = (first + self._sounding.begins(low - first, high - first), high)
        by_character = any(map(is_han, utterance.text))
        last = self.words[-1] if self.words else None
        if last is not None and last.utterance is utterance and self._joins(last, raw_start, by_character):
            last.start, last.end = min(last.start, raw_start), max(last.end, raw_end)
            last.text_start, last.text_end = min(last.text_start, time.start), max(last.text_end, time.end)
            last.times.append(times)
            self._running.append((last, len(last.times) - 1))
            return
        text = utterance.text[time.start : time.end]
        digits = by_character and text.isdecimal() and len(text) == raw_end - raw_start
        self.words.append(HeardWord(raw_start, raw_end, utterance, time.start, time.end, [times], digits))
        self._running.append((self.words[-1], 0))

    def _end_words(self, *, all_came: bool) -> None:
        """Ends words where they fall silent. Their middle comes earlier at most: what counted as heard still does."""
        first, running = self._first_sample, []
        for word, place in self._running:
            low, high = word.times[place]
            if all_came or high - first <= self._sounding.samples:
                word.times[place] = (low, first + self._sounding.ends(low - first, high - first))
            else:
                running.append((word, place))
        self._running = running

    def _joins(self, last: HeardWord, raw_start: int, by_character: bool) -> bool:
        """A spoken word belongs to the word before: one number, or no blank between them in English."""
        if raw_start < last.end:
            return True
        if by_character or raw_start - last.end > _LONGEST_JOINT:
            return False
        return all(char in _JOINING for char in self.raw.between(last.end, raw_start))

    def _closed(self, word: HeardWord, limit: int) -> int:
        """The end of a word with the marks that close it, at most ``limit``."""
        behind = self.raw.between(word.end, min(limit, word.end + _LONGEST_CLOSING) + 1)
        count, most = 0, min(len(behind), limit - word.end)
        while count < most and not behind[count].isspace() and not behind[count].isalnum():
            count += 1
        if count < len(behind) and not behind[count].isspace():
            count -= _opening_marks(self.raw.between(word.end - _LOOK_BACK, word.end), behind[:count])
        return word.end + count


def _opening_marks(before: str, marks: str) -> int:
    """How many of the marks that stand right before a word open it."""
    left = len(marks)
    while left:
        mark = marks[left - 1]
        run = len(marks[:left]) - len(marks[:left].rstrip(mark))
        if mark in _EITHER and len(re.findall(re.escape(mark) + "+", before + marks[: left - run])) % 2 == 0:
            left -= run
        elif mark in _OPENING:
            left -= 1
        else:
            break
    return len(marks) - left
