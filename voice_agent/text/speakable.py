"""Turns an LLM's text into text that can be spoken: markup, code, reasoning, tool calls, emoji and link targets go.

Streaming: plain text passes at once, and a mark is held only until it is decided, within a bound of characters. What
comes out depends on the characters alone, never on how they were cut. The cleaner adds no punctuation.
"""

from __future__ import annotations

import re
from bisect import insort
from collections import deque
from dataclasses import dataclass, fields
from typing import Literal, get_args, get_type_hints

from tts_engine.errors import InputError
from tts_engine.types import Run, Tag
from voice_agent.text import emoji
from voice_agent.text.markup_blocks import BLANKS, Block, BlockKind, read_block
from voice_agent.text.markup_emphasis import can_close, can_open, dunder_end, is_opened
from voice_agent.text.markup_inline import (
    MAY_BECOME_URL,
    URL_CHARS,
    URL_START,
    URL_STOPS,
    Angle,
    read_angle,
    read_entity,
    read_link,
    read_wide_citation,
    url_end,
)
from voice_agent.text.markup_output import Output, language_of
from voice_agent.text.markup_window import Window
from voice_agent.text.pieces import Item, Kind
from voice_agent.text.regions import (
    Element,
    Opening,
    Region,
    Verdict,
    code_span,
    open_fence,
    open_hidden,
    open_json,
    run_end,
)

__all__ = ["Cleaner", "Skipped", "SpeakablePolicy"]

_SKIPPED = 256
_EXCERPT_CHARS = 60
_STACK_DEPTH = 32
_LONG_RUN = 3
_URL_CONTEXT_CHARS = 16

_ASCII_MARKS = r"\t\n\r\x00-\x08\x0b-\x1f\x7f`*_~\[<&\\!#|"
_BOX = "\u2500-\u259f"
_ASCII_SPECIAL = re.compile(f"[{_ASCII_MARKS}]")
_SPECIAL = re.compile(
    f"[{_ASCII_MARKS}{BLANKS[1:]}◁【{_BOX}{emoji.EMOJI}{emoji.SELECTORS}{emoji.INVISIBLE}]".replace(
        "\ufdd0-\ufdef", "\ufdd1-\ufdef"
    )
)
_BLANK = re.compile(f"[{BLANKS}]")
_BOX_CHARACTER = re.compile(f"[{_BOX}]")
_SPACES = re.compile(" +")
_INVISIBLE = re.compile(f"[{emoji.INVISIBLE}{emoji.SELECTORS}]+")
_CODE_PART = re.compile(f"\n|[{BLANKS}]|[{emoji.INVISIBLE}]+|[^\n{BLANKS}{emoji.INVISIBLE}]+")
_MAY_HOLD = frozenset(" !0123456789hHtTpPsS:/fFwW.\ufe0f©®‼⁉™ℹ↔↕↖↗↘↙↩↪Ⓜ▪▫▶◀㊗㊙")
_IMAGE_BEFORE = re.compile(r"[\s(\[>*_|\"'“:：,，。.、]")
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_HEADING_END = re.compile(r"#{1,64}[ \t\r]{0,64}(?=\n|\Z)")
_ROW_END = re.compile(r"[|│┃║｜][ \t\r]{0,64}(?=\n|\Z)")
_REST_OF_LINE = re.compile(r"(?=\n)")
_PRIVATE_CITATION = re.compile("\ue201|(?=\n)")
_HEADING_TAGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_MID_LINE_TAGS = frozenset({"br", "td", "th", "hr", "summary", "dt", "dd", "option", "center", "legend"})
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True, slots=True)
class SpeakablePolicy:
    """What is done with each kind of text that is not prose.

    ``url``: "link" says "link" ("链接" in a Chinese sentence), "read" leaves it for the normaliser. ``code`` and ``table``:
    "read" says the content (a table row by row), "mention" says that there is one. ``image``: "read" says its description.
    ``emoji``, ``citation`` and ``footnote``: "read" leaves them as they are. What is not read goes to the log. Reasoning and
    tool calls are never read.
    """

    url: Literal["link", "skip", "read"] = "link"
    code: Literal["skip", "read", "mention"] = "skip"
    table: Literal["skip", "read", "mention"] = "skip"
    image: Literal["read", "skip"] = "read"
    emoji: Literal["skip", "read"] = "skip"
    citation: Literal["skip", "read"] = "skip"
    footnote: Literal["skip", "read"] = "skip"

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for field in fields(self):
            allowed = get_args(hints[field.name])
            if getattr(self, field.name) not in allowed:
                raise InputError(
                    f"policy {field.name!r} cannot be {getattr(self, field.name)!r}: use one of {', '.join(allowed)}"
                )


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something that was left out: its ``kind``, the ``rule`` that found it, its raw span and how it begins."""

    kind: str
    rule: str
    start: int
    end: int
    excerpt: str


_DEFAULT_POLICY = SpeakablePolicy()
_WORDS = {
    "url": {"en": "link", "zh": "链接"},
    "code": {"en": "code", "zh": "代码"},
    "table": {"en": "table", "zh": "表格"},
}


class Cleaner:
    """Incremental: feed text (raw offsets are counted here) or the items of a :class:`TagReader`.

    Gives runs, tags in their places, and a boundary wherever a block of markup begins or ends.
    """

    def __init__(self, policy: SpeakablePolicy = _DEFAULT_POLICY) -> None:
        self._policy = policy
        self._handlers = {
            "\n": self._newline,
            "\\": self._escape,
            "`": self._code,
            "*": self._emphasis,
            "_": self._emphasis,
            "~": self._emphasis,
            "[": self._bracket,
            "!": self._image,
            "<": self._angle,
            "&": self._entity,
            "#": self._hash,
            "|": self._bar,
            "【": self._wide_bracket,
            "◁": self._triangle,
        }
        self.reset()

    def reset(self) -> None:
        """Start over with a new stream: raw offsets count from 0 again, the log is emptied."""
        self._raw = 0
        self._skipped: deque[Skipped] = deque(maxlen=_SKIPPED)
        self._output = Output(self._log)
        self._start_message()

    def _start_message(self) -> None:
        self._window = Window()
        self._before = ""
        self._region: Region | None = None
        self._region_start = 0
        self._region_rule = ""
        self._excerpt = ""
        self._kind: Kind | None = None
        self._ended = ""
        self._line_start = True
        self._indent = 0
        self._item_line = False
        self._in_table = False
        self._cells = False
        self._opened: list[tuple[str, int]] = []
        self._drops: list[tuple[int, int, str]] = []
        self._long_run = self._resumed_run = ""

    def feed(self, item: str | Item) -> list[Item]:
        """Take the next text or item of the stream and give what is decided."""
        if isinstance(item, str):
            item = Run(item, self._raw, self._raw + len(item))
            self._raw = item.end
        if isinstance(item, Run):
            if not item.text:
                return []
            if self._passes(item):
                return self._output.take()
            self._window.append(item)
            self._scan(final=False)
        elif isinstance(item, Tag):
            if self._region is None or self._reads_region():
                self._window.append_tag(item)
                self._scan(final=False)
        else:
            self._end_message()
            self._output.boundary(item)
        return self._output.take()

    def flush(self) -> list[Item]:
        """End the text: what is held is decided, and what is open ends here."""
        self._end_message()
        return self._output.take()

    def take_skipped(self) -> list[Skipped]:
        """What was left out since the last call, and why: the latest 256."""
        taken = list(self._skipped)
        self._skipped.clear()
        return taken

    def _end_message(self) -> None:
        self._scan(final=True)
        if self._region is not None:
            self._log_region(self._window.raw_start(0))
        self._output.flush()
        self._start_message()

    # -------------------------------------------------------------------------------------------------------- the scan

    def _passes(self, run: Run) -> bool:
        """Give a run that is plain text in the middle of plain text; False if it has to be looked at closely."""
        text, output = run.text, self._output
        if self._window.text or self._line_start or self._region is not None or run.literal or not output.flowing:
            return False
        if (_ASCII_SPECIAL if text.isascii() else _SPECIAL).search(text) is not None or "  " in text:
            return False
        if "://" in text or "ww" in text or "WW" in text or (text[0] == " " and output.blank_held):
            return False
        last = text[-1]
        if last in _MAY_HOLD:
            if last == " ":
                if len(text) == 1 or not run.verbatim:
                    return False
                output.text((Run(text[:-1], run.start, run.end - 1),))
                output.blank(Run(last, run.end - 1, run.end))
                self._before = last
                return True
            if self._held_chars(text):
                return False
        output.text((run,))
        self._before = last
        return True

    def _held_chars(self, text: str) -> int:
        """How many characters at the end of plain text wait for the next one: what may become a URL, emoji or image."""
        tail = (self._before + text)[-9:]
        for pattern in (MAY_BECOME_URL, emoji.MAY_BECOME_EMOJI):
            found = pattern.search(tail)
            if found is not None:
                return min(len(found.group()), len(text))
        return int(tail[-1] == "!" and (len(tail) == 1 or _IMAGE_BEFORE.match(tail[-2]) is not None))

    def _scan(self, final: bool) -> None:
        window = self._window
        text = window.text
        special = _ASCII_SPECIAL if text.isascii() else _SPECIAL
        has_url = "://" in text or "ww" in text or "WW" in text
        self._resumed_run, self._long_run = self._long_run, ""
        position = 0
        while True:
            if window.tags:
                self._give_tags(position)
            if position >= len(text):
                break
            if self._region is not None:
                position = self._advance(position, final)
                if self._region is not None:
                    break
                continue
            if self._drops and self._drops[0][0] <= position:
                start, position, rule = self._drops.pop(0)
                self._leave_out(start, position, "link", rule)
                continue
            if self._line_start:
                step = self._begin_line(position, final)
                if step is None:
                    break
                if step > position or self._line_start:
                    position = step
                    continue
            found = special.search(text, position)
            stop = self._plain_stop(position, found.start() if found is not None else len(text), has_url, final)
            if stop > position:
                held = self._held_chars(text) if stop == len(text) and not final else 0
                self._plain(position, stop - held)
                position = stop - held
                if held:
                    break
                continue
            step = self._special(position, has_url, final)
            if step is None:
                break
            position = step
        self._trim(position)

    def _trim(self, position: int) -> None:
        if position:
            self._before = self._window.text[position - 1]
            self._window.trim(position)
            self._drops = [(start - position, end - position, rule) for start, end, rule in self._drops]

    def _plain_stop(self, position: int, stop: int, has_url: bool, final: bool) -> int:
        """Where plain text ends: before a mark, a keycap's digit, a URL, a part that goes, or a tag."""
        text = self._window.text
        if stop < len(text) and text[stop] in "\ufe0f\u20e3" and stop > position:
            keycap = emoji.SEQUENCE.match(text, stop - 1)
            if keycap is not None or (not final and emoji.MAY_BECOME_EMOJI.match(text, stop - 1)):
                stop -= 1
        if has_url:
            url = self._next_url(position, stop + 8)
            stop = min(stop, url if url is not None else stop)
        if self._drops:
            stop = min(stop, self._drops[0][0])
        if self._window.tags:
            stop = min(stop, self._window.tags[0][0])
        return stop

    def _next_url(self, position: int, end: int) -> int | None:
        text = self._window.text
        url = URL_START.search(text, position, end)
        if url is not None and url.start() == 0 and self._before.isascii() and self._before.isalnum():
            url = URL_START.search(text, 1, end)
        return None if url is None else url.start()

    def _plain(self, start: int, end: int) -> None:
        """Give text without marks; blanks in a row become one."""
        text, window, output = self._window.text, self._window, self._output
        while start < end:
            if text[start] == " ":
                output.blank(window.slice(start, start + 1)[0])
                spaces = _SPACES.match(text, start, end)
                assert spaces is not None
                start = spaces.end()
                continue
            stop = text.find("  ", start, end)
            if stop < 0:
                stop = end - 1 if text[end - 1] == " " else end
            output.text(window.slice(start, stop))
            start = stop

    def _special(self, position: int, has_url: bool, final: bool) -> int | None:
        """Handle what begins at ``position``; the place to go on from, or None to wait for more text."""
        text = self._window.text
        character = text[position]
        if has_url and self._next_url(position, position + 9) == position:
            return self._url(position, final)
        handler = self._handlers.get(character)
        if handler is not None:
            return handler(position, final)
        if _BLANK.match(character):
            self._output.blank(self._window.slice(position, position + 1)[0])
            return position + 1
        return self._emoji(position, final)

    def _give_tags(self, position: int) -> None:
        tags = self._window.tags
        while tags and tags[0][0] <= position:
            self._output.tag(tags.pop(0)[1])

    def _say(self, start: int, end: int) -> int:
        self._output.text(self._window.slice(start, end))
        return end

    def _leave_out(self, start: int, end: int, kind: str, rule: str, *, seen: bool = False) -> int:
        """Drop ``[start, end)`` and log it. ``seen``: it stood like a blank between its neighbours."""
        first, last = self._window.raw_start(start), self._window.raw_end(end)
        self._log(kind, rule, first, last, self._window.text[start : min(end, start + _EXCERPT_CHARS)])
        self._output.dropped(first, seen=seen)
        return end

    def _log(self, kind: str, rule: str, start: int, end: int, text: str) -> None:
        last = self._skipped[-1] if self._skipped else None
        if last is not None and last.kind == kind == "emoji" and last.end == start:
            start, text = self._skipped.pop().start, last.excerpt + text
        self._skipped.append(Skipped(kind, rule, start, end, text[:_EXCERPT_CHARS]))

    # ---------------------------------------------------------------------------------------------------------- regions

    def _open(self, position: int, opening: Opening) -> int:
        """Code, reasoning and the like begin: what was said before them ends there."""
        kind = opening.region.kind
        if kind == "code":
            self._begin_block("code" if self._policy.code == "read" else None, "code")
            if self._policy.code == "mention":
                self._mention("code", position)
        elif kind in ("reasoning", "tool call"):
            self._begin_block(None, kind)
        self._region, self._region_rule = opening.region, kind
        self._region_start = self._window.raw_start(position)
        self._excerpt = self._window.text[position : position + min(opening.length, _EXCERPT_CHARS)]
        return position + opening.length

    def _advance(self, position: int, final: bool) -> int:
        assert self._region is not None
        text = self._window.text
        step = self._region.advance(text, position, final)
        if self._reads_region():
            self._say_code(position, step.content_end)
        else:
            self._excerpt += text[position : min(step.end, position + _EXCERPT_CHARS - len(self._excerpt))]
            self._window.tags = [(index, tag) for index, tag in self._window.tags if index > step.end]
        if step.closed:
            if not self._reads_region():
                self._log_region(self._window.raw_start(step.end))
            elif self._kind == "code":
                self._ended, self._kind = "code", None
            self._region = None
            self._line_start = self._output.line_empty
        return step.end

    def _log_region(self, end: int) -> None:
        assert self._region is not None
        self._log(self._region.kind, self._region_rule, self._region_start, end, self._excerpt)

    def _reads_region(self) -> bool:
        assert self._region is not None
        kind = self._region.kind
        return (kind == "code" and self._policy.code == "read") or (kind == "url" and self._policy.url == "read")

    def _say_code(self, start: int, end: int) -> None:
        """Give text as it stands; only its blanks and invisible characters are treated like those of prose."""
        for part in _CODE_PART.finditer(self._window.text, start, end):
            runs = self._window.slice(part.start(), part.end())
            if part.group() == "\n":
                self._output.newline(runs[0])
            elif _BLANK.match(part.group()):
                self._output.blank(runs[0])
            elif not _INVISIBLE.match(part.group()):
                self._output.text(runs)

    def _mention(self, what: str, position: int) -> None:
        place = self._window.raw_start(position)
        word = _WORDS[what][self._output.language() or language_of(self._output.tail) or "en"]
        self._output.text((Run(word, place, place),))
        self._ended = what

    def _begin_block(self, kind: Kind | None, reason: str) -> None:
        self._output.begin_block(kind, reason)
        self._kind, self._ended = kind, ""
        self._opened.clear()

    # ------------------------------------------------------------------------------------------------------------ lines

    def _newline(self, position: int, final: bool) -> int:
        if self._output.line_empty:
            self._opened.clear()
            if self._kind == "list_item":
                self._ended, self._kind = "list", None
        if self._kind == "heading":
            self._ended, self._kind = "heading", None
        self._output.newline(self._window.slice(position, position + 1)[0])
        self._line_start, self._indent = True, 0
        self._item_line = self._cells = False
        return position + 1

    def _begin_line(self, position: int, final: bool) -> int | None:
        """Handle what a line begins with. Prose is left where it is, with ``_line_start`` cleared."""
        text = self._window.text
        mark = text[position]
        if mark == "\n":
            return self._newline(position, final)
        if mark in "{[":
            opening = open_json(text, position, final)
            if opening is not Verdict.NO:
                return self._open(position, opening) if isinstance(opening, Opening) else None
        block = read_block(text, position, self._in_table, final)
        if isinstance(block, Verdict):
            return None
        if block.kind in (BlockKind.BLANKS, BlockKind.QUOTE):
            self._indent += block.length
            return position + block.length
        if block.kind in (BlockKind.TABLE_ROW, BlockKind.TABLE_RULE):
            return self._table_line(position, block)
        if self._in_table:
            self._in_table = False
            if self._policy.table == "read":
                self._ended = "table"
        if block.kind in (BlockKind.RULE, BlockKind.LINK_DEFINITION, BlockKind.FOOTNOTE):
            return self._line_that_goes(position, block)
        self._line_start = False
        if block.kind is BlockKind.HEADING:
            self._begin_block("heading", "heading")
        elif block.kind is BlockKind.PROSE:
            self._begin_prose(mark)
        else:
            self._begin_block("list_item", "list")
            self._item_line = True
            self._line_start = block.kind is BlockKind.BULLET
        return position + block.length

    def _begin_prose(self, mark: str) -> None:
        """A line of prose begins a new block behind a heading, a list, a table or code."""
        left_list = self._kind == "list_item" and not self._item_line and self._indent < 2 and not mark.islower()
        if self._ended or left_list:
            self._begin_block(None, self._ended or "list")

    def _line_that_goes(self, position: int, block: Block) -> int:
        end = position + block.length
        if block.kind is BlockKind.FOOTNOTE:
            self._begin_block(None, "footnote")
            if self._policy.footnote == "read":
                return end
            self._skip_line(position, "footnote")
            return end
        if block.kind is BlockKind.RULE:
            self._begin_block(None, "rule")
            self._output.dropped(self._window.raw_start(position))
            return end
        return self._leave_out(position, end, "link", block.kind.value)

    def _skip_line(self, position: int, kind: Literal["footnote", "table"]) -> None:
        self._open(position, Opening(0, Element(kind, _REST_OF_LINE)))

    def _table_line(self, position: int, block: Block) -> int:
        first, self._in_table = not self._in_table, True
        read = self._policy.table == "read"
        if first or read:
            self._begin_block(None, "table")
        if first and self._policy.table == "mention":
            self._mention("table", position)
        if block.kind is BlockKind.TABLE_RULE:
            self._output.dropped(self._window.raw_start(position))
            return position + block.length
        if not read:
            self._skip_line(position, "table")
            return position
        self._line_start, self._cells = False, True
        return position + (self._window.text[position] in "|│┃║｜")

    def _bar(self, position: int, final: bool) -> int | None:
        """The border of a table cell is read as a comma."""
        if not self._cells:
            return self._say(position, position + 1)
        end = _ROW_END.match(self._window.text, position)
        if end is not None:
            if end.end() == len(self._window.text) and not final:
                return None
            return end.end()
        place = self._window.raw_start(position)
        self._output.dropped(place)
        self._output.text((Run(", ", place, place + 1),))
        return position + 1

    def _hash(self, position: int, final: bool) -> int | None:
        text = self._window.text
        keycap = self._keycap(position, final)
        if keycap is not None:
            return keycap if keycap else None
        if self._kind == "heading" and self._character_before(position).isspace():
            end = _HEADING_END.match(text, position)
            if end is not None:
                return None if end.end() == len(text) and not final else end.end()
        return self._say(position, position + 1)

    # ----------------------------------------------------------------------------------------------------- inline marks

    def _character_before(self, position: int) -> str:
        return self._window.text[position - 1] if position else self._before

    def _escape(self, position: int, final: bool) -> int | None:
        following = self._window.text[position + 1 : position + 2]
        if not following and not final:
            return None
        if following and following in _PUNCTUATION:
            return self._say(position + 1, position + 2)
        return position + 1 if following == "\n" else self._say(position, position + 1)

    def _literal_run(self, position: int, end: int) -> int:
        """Marks in a row that are text; the rest of the row, if it is still to come, is text too."""
        if end == len(self._window.text):
            self._long_run = self._window.text[position]
        return self._say(position, end)

    def _code(self, position: int, final: bool) -> int | None:
        text = self._window.text
        if position == 0 and self._resumed_run == text[0]:
            return self._literal_run(position, run_end(text, position))
        fence = open_fence(text, position, self._output.line_empty, final)
        if isinstance(fence, Opening):
            return self._open(position, fence)
        span = code_span(text, position, final)
        if fence is Verdict.MORE or span is Verdict.MORE:
            return None
        if isinstance(span, Verdict):
            return self._literal_run(position, run_end(text, position))
        self._say_code(span.content_start, span.content_end)
        return span.end

    def _emphasis(self, position: int, final: bool) -> int | None:
        text = self._window.text
        mark, end = text[position], run_end(text, position)
        if position == 0 and self._resumed_run == mark:
            return self._literal_run(position, end)
        if mark == "~" and self._output.line_empty:
            fence = open_fence(text, position, True, final)
            if fence is not Verdict.NO:
                return self._open(position, fence) if isinstance(fence, Opening) else None
        if mark == "*":
            keycap = self._keycap(position, final)
            if keycap is not None:
                return keycap if keycap else None
        length = end - position
        if length > _LONG_RUN:
            return self._literal_run(position, end)
        if end == len(text) and not final:
            return None
        if mark == "~" and length != 2:
            return self._say(position, end)
        before, after = self._character_before(position), text[end : end + 1]
        if can_close(mark, length, before, after):
            closed = self._close_emphasis(mark, length)
            if closed:
                return end if closed == length else self._say(position + closed, end)
        if can_open(mark, length, before, after):
            opened = is_opened(text, position, before, self._output.tail, final)
            if opened is None:
                return None
            if opened:
                name = dunder_end(text, position)
                if name is not None:
                    return self._say(position, name)
                if len(self._opened) < _STACK_DEPTH:
                    self._opened.append((mark, length))
                return end
        return self._say(position, end)

    def _close_emphasis(self, mark: str, length: int) -> int:
        """How many marks of a closing run close something that is open."""
        closed = 0
        while closed < length:
            index = next((i for i in range(len(self._opened) - 1, -1, -1) if self._opened[i][0] == mark), None)
            if index is None:
                break
            open_length = self._opened[index][1]
            used = min(open_length, length - closed)
            closed += used
            del self._opened[index:]
            if used < open_length:
                self._opened.append((mark, open_length - used))
        return closed

    def _image(self, position: int, final: bool) -> int | None:
        text = self._window.text
        before = self._character_before(position)
        if before and not _IMAGE_BEFORE.match(before):
            return self._say(position, position + 1)
        if position + 1 == len(text):
            return self._say(position, position + 1) if final else None
        if text[position + 1] != "[":
            return self._say(position, position + 1)
        link = read_link(text, position + 1, "", final)
        if link is Verdict.MORE:
            return None
        if isinstance(link, Verdict) or link.rule != "link target":
            return self._say(position, position + 1)
        if self._policy.image == "skip":
            return self._leave_out(position, link.end, "image", "image", seen=True)
        insort(self._drops, (link.label_end, link.end, "image target"))
        return position + 2

    def _bracket(self, position: int, final: bool) -> int | None:
        text = self._window.text
        opening = open_hidden(text, position, final)
        if opening is not Verdict.NO:
            return self._open(position, opening) if isinstance(opening, Opening) else None
        context = self._output.tail if not self._character_before(position).isspace() else ""
        link = read_link(text, position, context, final)
        if link is Verdict.MORE:
            return None
        if isinstance(link, Verdict) or (link.rule == "citation" and self._policy.citation == "read"):
            return self._say(position, position + 1)
        if link.label_start < link.label_end:
            insort(self._drops, (link.label_end, link.end, link.rule))
            return position + 1
        return self._leave_out(position, link.end, "token" if link.rule == "special token" else "citation", link.rule)

    def _wide_bracket(self, position: int, final: bool) -> int | None:
        citation = read_wide_citation(self._window.text, position, final)
        if citation is Verdict.MORE:
            return None
        if isinstance(citation, Verdict) or self._policy.citation == "read":
            return self._say(position, position + 1)
        return self._leave_out(position, citation, "citation", "citation")

    def _triangle(self, position: int, final: bool) -> int | None:
        opening = open_hidden(self._window.text, position, final)
        if opening is Verdict.NO:
            return self._say(position, position + 1)
        return self._open(position, opening) if isinstance(opening, Opening) else None

    def _angle(self, position: int, final: bool) -> int | None:
        text = self._window.text
        opening = open_hidden(text, position, final)
        if opening is not Verdict.NO:
            return self._open(position, opening) if isinstance(opening, Opening) else None
        angle = read_angle(text, position, self._character_before(position), final)
        if angle is Verdict.MORE:
            return None
        if isinstance(angle, Verdict):
            return self._say(position, position + 1)
        end = position + angle.length
        if angle.rule == "address":
            if "://" in text[position:end]:
                return self._say_url(position + 1, end - 1, end, final)
            return self._say(position + 1, end - 1) + 1
        self._leave_out(position, end, "token" if angle.rule == "special token" else "html", angle.rule)
        if angle.is_block:
            self._block_tag(position, angle)
        if self._output.line_empty:
            self._line_start = True
        return end

    def _block_tag(self, position: int, angle: Angle) -> None:
        place = self._window.raw_start(position)
        self._output.blank(Run(" ", place, place))
        if angle.name in _HEADING_TAGS and not angle.closing:
            self._begin_block("heading", "html")
        elif angle.name == "li" and not angle.closing:
            self._begin_block("list_item", "html")
        elif angle.name not in _MID_LINE_TAGS:
            self._begin_block(None, "html")

    def _entity(self, position: int, final: bool) -> int | None:
        entity = read_entity(self._window.text, position, final)
        if entity is Verdict.MORE:
            return None
        if isinstance(entity, Verdict):
            return self._say(position, position + 1)
        decoded, end = entity
        place = self._window.raw_start(position), self._window.raw_end(end)
        if decoded.isspace():
            self._output.blank(Run(" ", *place))
        elif emoji.SEQUENCE.fullmatch(decoded) or _INVISIBLE.search(decoded):
            self._leave_out(position, end, "emoji", "entity", seen=True)
        else:
            self._output.text((Run(decoded, *place, literal=True),))
        return end

    # --------------------------------------------------------------------------------------------------- URLs and emoji

    def _url(self, position: int, final: bool) -> int | None:
        text = self._window.text
        start = URL_START.match(text, position)
        if start is None:
            return self._say(position, position + 1)
        if start.end() == len(text):
            return self._say(position, start.end()) if final else None
        end = url_end(text, position, final)
        if isinstance(end, Verdict):
            return None
        step = self._say_url(position, end, end, final)
        if step is not None and end - position == URL_CHARS:
            self._open(end, Opening(0, Element("url", URL_STOPS)))
        return step

    def _say_url(self, start: int, end: int, go_on: int, final: bool) -> int | None:
        if self._policy.url == "read":
            self._say(start, end)
            return go_on
        if self._policy.url == "link":
            language = self._url_language(go_on, final)
            if language is None:
                return None
            word = _WORDS["url"][language]
            self._output.text((Run(word, self._window.raw_start(start), self._window.raw_end(end)),))
            self._log(
                "url",
                "said as a word",
                self._window.raw_start(start),
                self._window.raw_end(end),
                self._window.text[start:end],
            )
            return go_on
        self._leave_out(start, end, "url", "skipped", seen=True)
        return go_on

    def _url_language(self, end: int, final: bool) -> str | None:
        """The language of the sentence around a URL: what stands before it, else the first letter behind it."""
        language = self._output.language()
        if language:
            return language
        text = self._window.text
        letter = _LETTER.search(text, end, end + _URL_CONTEXT_CHARS)
        if letter is None and len(text) < end + _URL_CONTEXT_CHARS and not final:
            return None
        following = language_of(letter.group()) if letter is not None else ""
        return following or language_of(self._output.tail) or "en"

    def _keycap(self, position: int, final: bool) -> int | None:
        """Where a keycap emoji that begins with a digit, ``#`` or ``*`` ends; 0 while that is open, None if it is none."""
        text = self._window.text
        found = emoji.SEQUENCE.match(text, position)
        if found is not None:
            return self._emoji(position, final)
        return 0 if not final and emoji.MAY_BECOME_EMOJI.match(text, position) else None

    def _emoji(self, position: int, final: bool) -> int | None:
        text = self._window.text
        found = emoji.SEQUENCE.match(text, position)
        if found is None:
            if not final and emoji.MAY_BECOME_EMOJI.match(text, position):
                return None
            return self._symbol(position)
        if self._policy.emoji == "read":
            return self._say(position, found.end())
        if self._output.line_empty and self._output.tail and not self._item_line and self._kind != "heading":
            self._ended = "emoji"
        self._leave_out(position, found.end(), "emoji", "emoji", seen=True)
        self._line_start = self._line_start or self._output.line_empty
        return found.end()

    def _symbol(self, position: int) -> int:
        """A character that is no emoji: one without a shape or a line-drawing one goes, any other is text."""
        text = self._window.text
        if text[position] == "\ue200":
            return self._open(position, Opening(1, Element("citation", _PRIVATE_CITATION)))
        invisible = _INVISIBLE.match(text, position)
        if invisible is not None:
            return invisible.end()
        if _BOX_CHARACTER.match(text[position]):
            self._output.dropped(self._window.raw_start(position), seen=True)
            return position + 1
        return self._say(position, position + 1)
