"""Joins what is left of the text after markup has gone: blanks, paragraphs and blocks without a letter or digit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from tts_engine.text.language import is_han
from tts_engine.types import Run, Tag
from voice_agent.text.pieces import Boundary, Item, Kind

_TAIL_CHARS = 48
_ASLEEP_CHARS = 256
_WAITING_TAGS = 64
_TAG_COUNTS_AS = 4
_SPOKEN = re.compile(r"[^\W_]")
_CLINGING = frozenset(",.!?;:)]}%…，。！？；：、）】」』》〉”’")
_WIDE_SCRIPTS = "\u2e80"
_LATIN_WORD = re.compile(r"[A-Za-z]+")
_SENTENCE_START = re.compile(r"[。！？!?\n]|[.]\s")


class Output:
    """Takes text, blanks, newlines, drops, tags and boundaries in order, and gives items.

    * A blank is held until the next character shows whether it stays: not before a mark when something between them
      went, and never twice.
    * A block (between boundaries or blank lines) begins to be given with its first letter or digit; without one it is
      dropped. Its leading marks go if they are more than 256.
    """

    def __init__(self, skip: Callable[[str, str, int, int, str], None]) -> None:
        self._skip = skip
        self.reset()

    def reset(self) -> None:
        """Forget everything."""
        self.items: list[Item] = []
        self.tail = ""
        self.line_empty = True
        self._last = "\n"
        self._kind: Kind | None = None
        self._said = False
        self._blank: Run | None = None
        self._waiting: list[Tag] = []
        self._dropped = False
        self._gap: int | None = None
        self._awake = False
        self._asleep: list[Item] = []
        self._asleep_chars = 0

    @property
    def flowing(self) -> bool:
        """In mid-line and mid-block, and nothing went just before: plain text can pass as it is."""
        return self._awake and not self.line_empty and not self._dropped

    @property
    def blank_held(self) -> bool:
        return self._blank is not None

    def take(self) -> list[Item]:
        """What can be given now."""
        items, self.items = self.items, []
        return items

    def text(self, runs: Iterable[Run]) -> None:
        """Text that is spoken."""
        for run in runs:
            if self._blank is not None or self._dropped:
                self._settle(run.text[0])
            self.line_empty = False
            self._said = True
            self._push_text(run)
            self.tail = (self.tail + run.text[-_TAIL_CHARS:])[-_TAIL_CHARS:]

    def blank(self, run: Run) -> None:
        """Whitespace within a line (one character)."""
        if self._blank is None and not self._last.isspace():
            self._blank = run

    def newline(self, run: Run) -> None:
        """The end of a line; the second one in a row ends the block."""
        if not self.line_empty:
            self.line_empty = True
            self._blank = run
        elif self._blank is not None:
            self._settle("")
            self._push_text(run)
            self._end_block()

    def dropped(self, start: int, *, seen: bool = False) -> None:
        """Something went at raw offset ``start``. ``seen``: it stood like a blank between the words beside it."""
        self._dropped = True
        if seen and self._gap is None and not self.line_empty:
            self._gap = start

    def tag(self, tag: Tag) -> None:
        """A tag takes its place behind the text so far."""
        if self._blank is not None:
            self._waiting.append(tag)
            self._dropped = True
            if len(self._waiting) > _WAITING_TAGS:
                self._settle("")
        elif self._asleep:
            self._asleep.append(tag)
            self._asleep_chars += _TAG_COUNTS_AS
        else:
            self.items.append(tag)

    def begin_block(self, kind: Kind | None, reason: str) -> None:
        """A block of markup begins or ends here, which needs no boundary if nothing was said since the last one."""
        if self._said or kind != self._kind:
            self.boundary(Boundary(kind, reason))

    def boundary(self, boundary: Boundary) -> None:
        """Pass a boundary on; a block ends with it."""
        self._settle("")
        self._end_block()
        self.items.append(boundary)
        self._kind = boundary.kind
        self._said = False

    def flush(self) -> None:
        """The end of the text: trailing blanks go, and so does a last block without a letter or digit."""
        self._blank = None
        self._settle("")
        self._end_block()

    def language(self) -> str:
        """The language of the sentence so far: "zh", "en", or "" if there is no letter in it yet."""
        return language_of(_SENTENCE_START.split(self.tail)[-1])

    def _settle(self, following: str) -> None:
        """Decide about the held blank before ``following`` (empty: a boundary)."""
        if self._blank is not None:
            if not (self._dropped and following in _CLINGING):
                self._push_text(self._blank)
                self.tail += self._blank.text
        elif self._gap is not None and following and self._needs_blank(following):
            self._push_text(Run(" ", self._gap, self._gap))
        self._blank, self._dropped, self._gap = None, False, None
        waiting, self._waiting = self._waiting, []
        for tag in waiting:
            self.tag(tag)

    def _needs_blank(self, following: str) -> bool:
        before = self.tail[-1:]
        if not following.isalnum() or not before or before.isspace() or before in "([{\"'“‘/-":
            return False
        return before < _WIDE_SCRIPTS and following < _WIDE_SCRIPTS

    def _push_text(self, run: Run) -> None:
        self._last = run.text[-1]
        if self._awake:
            self.items.append(run)
            return
        spoken = _SPOKEN.search(run.text)
        self._asleep_chars += len(run.text) if spoken is None else spoken.start()
        if self._asleep_chars > _ASLEEP_CHARS:
            self._drop_asleep()
            if spoken is not None and spoken.start() and run.verbatim:
                run = Run(run.text[spoken.start() :], run.start + spoken.start(), run.end, run.literal)
        if spoken is not None:
            self.items += self._asleep
            self.items.append(run)
            self._asleep = []
            self._awake = True
        elif self._asleep_chars <= _ASLEEP_CHARS:
            self._asleep.append(run)

    def _end_block(self) -> None:
        if not self._awake:
            self._drop_asleep()
        self._awake = False
        self._asleep_chars = 0
        self.line_empty = True
        if not self.tail.endswith("\n"):
            self.tail += "\n"

    def _drop_asleep(self) -> None:
        """Drop the marks that wait for a letter; tags between them stay."""
        runs = [item for item in self._asleep if isinstance(item, Run)]
        marks = "".join(run.text for run in runs).strip()
        if marks:
            self._skip("marks", "no letter or digit", runs[0].start, runs[-1].end, marks)
        self.items += [item for item in self._asleep if not isinstance(item, Run)]
        self._asleep = []


def language_of(text: str) -> str:
    """Chinese ("zh") if the text has at least as many Chinese characters as Latin words, else "en"; "" with neither."""
    han = sum(map(is_han, text))
    latin = len(_LATIN_WORD.findall(text))
    return "" if not han + latin else "zh" if han >= latin else "en"
