"""Holds the part of a stream that is not decided yet, with the raw place of every character and the tags in it."""

from __future__ import annotations

from tts_engine.types import Run, Tag, slice_runs

LITERAL = "\ufdd0"
"""Stands in ``Window.text`` for a character that is no markup; a noncharacter, so no text needs it for itself."""


class Window:
    """``text`` is where markup is looked for: literal runs show as ``LITERAL`` in it. Indexes count from its start."""

    def __init__(self) -> None:
        self.text = ""
        self.tags: list[tuple[int, Tag]] = []
        self._runs: list[Run] = []

    def append(self, run: Run) -> None:
        """Add a run behind the text."""
        last = self._runs[-1] if self._runs else None
        if last and last.end == run.start and last.literal == run.literal and last.verbatim and run.verbatim:
            self._runs[-1] = Run(last.text + run.text, last.start, run.end, run.literal)
        else:
            self._runs.append(run)
        self.text += LITERAL * len(run.text) if run.literal else run.text.replace(LITERAL, "\ufffd")

    def append_tag(self, tag: Tag) -> None:
        """Add a tag behind the text."""
        self.tags.append((len(self.text), tag))

    def slice(self, start: int, end: int) -> tuple[Run, ...]:
        """The runs of ``text[start:end]``, with the literal characters back in their places."""
        if len(self._runs) == 1:
            run = self._runs[0]
            if run.end - run.start == len(run.text):
                first = run.start
                return (Run(run.text[start:end], first + start, first + end, run.literal),)
        return slice_runs(self._runs, start, end)

    def raw_start(self, index: int) -> int:
        """The raw offset of the character at ``index`` (at the end of the text: behind the last one)."""
        for run in self._runs:
            if index < len(run.text):
                return run.start + index if run.verbatim else run.start
            index -= len(run.text)
        return self._runs[-1].end if self._runs else 0

    def raw_end(self, index: int) -> int:
        """The raw offset behind the character that ends at ``index``, which is over 0."""
        for run in self._runs:
            if index <= len(run.text):
                return run.start + index if run.verbatim else run.end
            index -= len(run.text)
        return self._runs[-1].end

    def trim(self, end: int) -> None:
        """Forget the first ``end`` characters; their tags have to be taken before."""
        if end == 0:
            return
        self._runs = list(self.slice(end, len(self.text))) if end < len(self.text) else []
        self.text = self.text[end:]
        if self.tags:
            self.tags = [(index - end, tag) for index, tag in self.tags]
