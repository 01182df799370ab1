"""Keeps text that is not settled yet, with the raw place of each character and the tags between them."""

from __future__ import annotations

from dataclasses import dataclass

from tts_engine.types import Mark, Run, Tag

_NEWLINES_ARE_BLANKS = {ord(c): " " for c in "\n\r\u2028\u2029"}


@dataclass(slots=True)
class _Span:
    """A stretch of the buffer that begins at ``at`` (counted from the start of the stream) and its raw span."""

    at: int
    start: int
    end: int
    literal: bool
    verbatim: bool


class RunBuffer:
    """Text that grows at its end and is taken from its front. Neighbouring verbatim runs become one."""

    def __init__(self) -> None:
        self.text = ""
        self._base = 0
        self._spans: list[_Span] = []
        self._tags: list[tuple[int, Tag]] = []

    def append(self, run: Run) -> None:
        length = len(run.text)
        if not length:
            return
        verbatim = run.end - run.start == length
        last = self._spans[-1] if self._spans else None
        if last and last.verbatim and verbatim and last.end == run.start and last.literal == run.literal:
            last.end = run.end
        else:
            self._spans.append(_Span(self._base + len(self.text), run.start, run.end, run.literal, verbatim))
        self.text += run.text

    def append_raw(self, text: str, start: int) -> None:
        """Appends text that is raw itself, from raw offset ``start`` on."""
        last = self._spans[-1] if self._spans else None
        if last and last.verbatim and last.end == start and not last.literal:
            last.end += len(text)
            self.text += text
        else:
            self.append(Run(text, start, start + len(text)))

    def append_tag(self, tag: Tag) -> None:
        self._tags.append((self._base + len(self.text), tag))

    @property
    def has_tags(self) -> bool:
        return bool(self._tags)

    def take(self, end: int, *, all_tags: bool = False) -> tuple[str, tuple[Run, ...], tuple[Mark, ...]]:
        """Takes the first ``end`` characters: their text without whitespace at its ends, its runs, and the tags in it.

        A tag belongs to the text that follows it: one behind the last character stays, unless ``all_tags`` is set.
        """
        part = self.text[:end]
        low = len(part) - len(part.lstrip())
        high = max(len(part.rstrip()), low)
        runs = self._slice(low, high)
        last = len(self._tags) if all_tags else self._tags_before(high)
        marks = tuple(Mark(min(max(at - self._base - low, 0), high - low), tag) for at, tag in self._tags[:last])
        del self._tags[:last]
        self._drop(end)
        return "".join(run.text for run in runs), runs, marks

    def drop_blanks(self, end: int) -> int:
        """Drops whitespace from the front, up to ``end``; returns how many characters that were."""
        if not self.text[:1].isspace():
            return 0
        part = self.text[:end]
        blanks = len(part) - len(part.lstrip())
        self._drop(blanks)
        return blanks

    def _tags_before(self, end: int) -> int:
        return sum(at - self._base < end for at, _ in self._tags)

    def _slice(self, low: int, high: int) -> tuple[Run, ...]:
        runs = []
        for index, span in enumerate(self._spans):
            begin = span.at - self._base
            stop = self._spans[index + 1].at - self._base if index + 1 < len(self._spans) else len(self.text)
            first, last = max(begin, low), min(stop, high)
            if first >= last:
                continue
            text = self.text[first:last].translate(_NEWLINES_ARE_BLANKS)
            if span.verbatim:
                runs.append(Run(text, span.start + first - begin, span.start + last - begin, span.literal))
            else:
                runs.append(Run(text, span.start, span.end, span.literal))
        return tuple(runs)

    def _drop(self, end: int) -> None:
        if end >= len(self.text):
            self._base += len(self.text)
            self.text = ""
            self._spans.clear()
            return
        self._base += end
        self.text = self.text[end:]
        keep = 0
        while keep + 1 < len(self._spans) and self._spans[keep + 1].at <= self._base:
            keep += 1
        del self._spans[:keep]
        first = self._spans[0]
        if first.at < self._base:
            if first.verbatim:
                first.start += self._base - first.at
            first.at = self._base
