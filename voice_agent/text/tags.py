"""Reads the prosody tags out of an LLM's text stream, as fields; text keeps its raw offsets, and no tag is left in it.

Tags inside code, reasoning and tool calls are text, and so are escaped ones. Anything that began as a tag and cannot be
read is dropped with a warning: better silence than a spoken tag.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tts_engine.types import Mark, Run, Tag, TagName
from voice_agent.text.markup_code import code_span, is_line_prefix, may_become_line_prefix, open_fence, run_end
from voice_agent.text.markup_hidden import open_hidden, open_json
from voice_agent.text.pieces import Boundary, Item
from voice_agent.text.regions import Opening, Region, Verdict
from voice_agent.text.tag_syntax import CHATTTS_BASE, CHATTTS_STEP, LIMITS, Dialect, Written, read_bracket, read_element

__all__ = ["Dialect", "TagReader", "TagWarning", "render"]

_SPECIAL = re.compile(r"[\[<\\`~{［【◁]")
_ESCAPABLE = "[]<>()`~{\\［【◁"
_DEFAULTS: dict[TagName, float] = {"speed": 1.0, "pitch": 0.0, "volume": 1.0}
_WARNINGS = 64
_STACK_DEPTH = 64
_EXCERPT_CHARS = 60


@dataclass(frozen=True, slots=True)
class TagWarning:
    """A tag that was dropped or clamped: what was written at ``[start, end)`` of the raw text, and why."""

    reason: str
    excerpt: str
    start: int
    end: int


class TagReader:
    """Incremental: any cut of a text gives the same text, offsets and tags.

    ``dialect`` "chattts" reads ``[speed_5]`` as a ChatTTS level (0.6 + 0.08 x level). At most 1100 characters are held.
    """

    def __init__(self, dialect: Dialect = "sayline") -> None:
        self._dialect = dialect
        self.reset()

    def reset(self) -> None:
        """Start over with a new stream: raw offsets count from 0 again."""
        self._held = ""
        self._raw = 0
        self._items: list[Item] = []
        self._run_start: int | None = None
        self._run_end = 0
        self._warnings: deque[TagWarning] = deque(maxlen=_WARNINGS)
        self._values = dict(_DEFAULTS)
        self._stack: list[tuple[tuple[TagName, float], ...]] = []
        self._too_deep = 0
        self._start_message()

    def _start_message(self) -> None:
        self._region: Region | None = None
        self._line: str | None = ""
        self._last = self._long_run = ""

    def feed(self, item: str | Boundary) -> list[Item]:
        """Take the next text of the stream, or a boundary, which closes whatever is open and is passed on."""
        if isinstance(item, Boundary):
            return [*self.flush(), item]
        if not self._held and self._region is None and _SPECIAL.search(item) is None:
            if not item:
                return []
            start = self._raw
            self._raw += len(item)
            self._passed(item)
            return [Run(item, start, self._raw)]
        self._held += item
        self._read(final=False)
        return self._take()

    def flush(self) -> list[Item]:
        """End the message: what is still held is decided, and open code or reasoning ends here."""
        self._read(final=True)
        self._start_message()
        return self._take()

    def take_warnings(self) -> list[TagWarning]:
        """What was dropped or clamped since the last call, the latest 64."""
        taken = list(self._warnings)
        self._warnings.clear()
        return taken

    def _take(self) -> list[Item]:
        items, self._items = self._items, []
        return items

    def _read(self, final: bool) -> None:
        position = 0
        text = self._held
        while position < len(text):
            if self._region is not None:
                step = self._region.advance(text, position, final)
                self._emit(text, position, step.end)
                position = step.end
                if step.closed:
                    self._region = None
                else:
                    break
                continue
            special = _SPECIAL.search(text, position)
            stop = special.start() if special is not None else len(text)
            self._emit(text, position, stop)
            position = stop
            if special is None:
                break
            end = self._read_special(text, position, final)
            if end is None:
                break
            position = end
        self._end_run(text)
        self._held = text[position:]
        self._raw += position

    def _read_special(self, text: str, start: int, final: bool) -> int | None:
        """Handle the character at ``start``; the offset to go on from, or None to wait for more text."""
        mark = text[start]
        if mark == "\\":
            return self._read_escape(text, start, final)
        if mark in "`~":
            return self._read_code(text, start, final)
        if mark in "{[" and self._is_line_start():
            opening = open_json(text, start, final)
            if opening is not Verdict.NO:
                return self._open(text, start, opening)
        if mark in "<[◁":
            opening = open_hidden(text, start, final)
            if opening is not Verdict.NO:
                return self._open(text, start, opening)
        written: Written | Verdict = Verdict.NO
        if mark == "<":
            written = read_element(text, start, final)
        elif mark in "[［【":
            written = read_bracket(text, start, self._dialect, final)
        if written is Verdict.MORE:
            return None
        if isinstance(written, Written):
            self._apply(written, text, start)
            return start + written.length
        return self._emit(text, start, start + 1)

    def _open(self, text: str, start: int, opening: Opening | Verdict) -> int | None:
        if not isinstance(opening, Opening):
            return None
        self._region = opening.region
        return self._emit(text, start, start + opening.length)

    def _read_escape(self, text: str, start: int, final: bool) -> int | None:
        if start + 1 == len(text):
            return self._emit(text, start, start + 1) if final else None
        if text[start + 1] in _ESCAPABLE:
            self._end_run(text)
            self._items.append(Run(text[start + 1], self._raw + start + 1, self._raw + start + 2, literal=True))
            self._passed(text[start + 1])
        else:
            self._emit(text, start, start + 2)
        return start + 2

    def _read_code(self, text: str, start: int, final: bool) -> int | None:
        end = run_end(text, start)
        if start == 0 and self._long_run == self._last == text[0]:
            return self._literal_run(text, start, end)
        fence = open_fence(text, start, self._is_line_start(), final)
        if fence is not Verdict.NO:
            return self._open(text, start, fence)
        if text[start] == "`":
            span = code_span(text, start, final)
            if span is Verdict.MORE:
                return None
            if not isinstance(span, Verdict):
                return self._emit(text, start, span.end)
        return self._literal_run(text, start, end)

    def _is_line_start(self) -> bool:
        return self._line is not None and is_line_prefix(self._line)

    def _literal_run(self, text: str, start: int, end: int) -> int:
        """Marks in a row that are text; the rest of the row, if it is still to come, is text too."""
        self._long_run = text[start] if end == len(text) else ""
        return self._emit(text, start, end)

    def _emit(self, text: str, start: int, end: int) -> int:
        """Give text as it is; what stands side by side in the window becomes one run."""
        if end > start:
            if self._run_start is None:
                self._run_start = start
            self._run_end = end
            self._passed(text[start:end])
        return end

    def _end_run(self, text: str) -> None:
        if self._run_start is not None:
            start, end = self._run_start, self._run_end
            self._items.append(Run(text[start:end], self._raw + start, self._raw + end))
            self._run_start = None

    def _passed(self, text: str) -> None:
        """Keep the start of the current line while a block may still begin in it, and the last character."""
        self._last = text[-1]
        newline = text.rfind("\n")
        if newline >= 0:
            line = text[newline + 1 :]
        elif self._line is not None:
            line = self._line + text
        else:
            return
        self._line = line if may_become_line_prefix(line) else None

    def _apply(self, written: Written, text: str, start: int) -> None:
        self._end_run(text)
        first, last = self._raw + start, self._raw + start + written.length
        if written.problem:
            self._warn(f"dropped, {written.problem}", text, start, written.length)
        if written.form == "close":
            for name, value in self._close(text, start, written.length):
                self._values[name] = value
                self._items.append(Tag(name, value, first, last))
            return
        if written.form == "open":
            self._push(tuple((name, self._values[name]) for name, _ in written.settings))
        for name, value in written.settings:
            low, high = LIMITS[name]
            clamped = min(max(value, low), high)
            if clamped != value:
                self._warn(f"{name} {value:g} clamped to {clamped:g}", text, start, written.length)
            if name in self._values:
                self._values[name] = clamped
            self._items.append(Tag(name, clamped, first, last))

    def _push(self, before: tuple[tuple[TagName, float], ...]) -> None:
        if len(self._stack) < _STACK_DEPTH:
            self._stack.append(before)
        else:
            self._too_deep += 1

    def _close(self, text: str, start: int, length: int) -> tuple[tuple[TagName, float], ...]:
        if self._too_deep:
            self._too_deep -= 1
            return ()
        if not self._stack:
            self._warn("dropped, nothing is open", text, start, length)
            return ()
        return self._stack.pop()

    def _warn(self, reason: str, text: str, start: int, length: int) -> None:
        excerpt = text[start : start + min(length, _EXCERPT_CHARS)]
        self._warnings.append(TagWarning(reason, excerpt, self._raw + start, self._raw + start + length))


_CHATTTS_LEVELS = 9
_CHATTTS_PAUSES = ((325.0, "[lbreak]"), (75.0, "[uv_break]"))
_ESCAPES = str.maketrans({character: "\\" + character for character in _ESCAPABLE})


def render(text: str, marks: Sequence[Mark], dialect: Dialect = "sayline") -> str:
    """Write ``marks`` (in order) into ``text`` as tags, for engines that take them as text.

    "sayline" escapes what would read as a tag, so that :class:`TagReader` gives back the text and the marks.
    "chattts" has speed levels and two lengths of pause; pitch, volume and very short breaks cannot be written, and
    brackets of the text become blanks, since ChatTTS reads all of them as tokens.
    """
    if dialect == "chattts":
        return _interleave(text.replace("[", " ").replace("]", " "), marks, _chattts)
    plain = _interleave(text, marks, _sayline)
    if not any(character in text for character in _ESCAPABLE) or _reads_back(plain, text, marks):
        return plain
    return _interleave(text, marks, _sayline, escape=True)


def _interleave(text: str, marks: Sequence[Mark], write: Callable[[Tag], str], escape: bool = False) -> str:
    parts: list[str] = []
    position = 0
    for mark in marks:
        parts += (text[position : mark.index].translate(_ESCAPES if escape else {}), write(mark.tag))
        position = mark.index
    parts.append(text[position:].translate(_ESCAPES if escape else {}))
    return "".join(parts)


def _reads_back(written: str, text: str, marks: Sequence[Mark]) -> bool:
    reader = TagReader()
    length, places, parts = 0, [], []
    for item in reader.feed(written) + reader.flush():
        if isinstance(item, Run):
            parts.append(item.text)
            length += len(item.text)
        elif isinstance(item, Tag):
            places.append(length)
    return places == [mark.index for mark in marks] and "".join(parts) == text


def _sayline(tag: Tag) -> str:
    number = f"{tag.value:.6f}".rstrip("0").rstrip(".")
    return f"[{tag.name}_{'+' if tag.name == 'pitch' and tag.value > 0 else ''}{number}]"


def _chattts(tag: Tag) -> str:
    if tag.name == "speed":
        level = round((tag.value - CHATTTS_BASE) / CHATTTS_STEP)
        return f"[speed_{min(max(level, 0), _CHATTTS_LEVELS)}]"
    if tag.name == "break":
        return next((token for shortest, token in _CHATTTS_PAUSES if tag.value >= shortest), "")
    return ""
