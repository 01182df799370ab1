"""The state of a text whose markup is read: what is undecided, what is open, and where the speakable rest goes."""

from __future__ import annotations

import re
from collections import deque

from tts_engine.types import Run
from voice_agent.text import emoji
from voice_agent.text.markup_blocks import BLANK_CHARACTERS, BLANKS
from voice_agent.text.markup_output import Output, language_of
from voice_agent.text.markup_window import Window
from voice_agent.text.pieces import Kind
from voice_agent.text.regions import Opening, Region
from voice_agent.text.speakable_policy import Skipped, SpeakablePolicy

_SKIPPED = 256
_EXCERPT_CHARS = 60
_SPACES = re.compile(" +")
_CODE_MARK = re.compile(f"[\n{BLANKS}{emoji.INVISIBLE}]")
_WORDS = {
    "url": {"en": "link", "zh": "链接"},
    "code": {"en": "code", "zh": "代码"},
    "table": {"en": "table", "zh": "表格"},
}


class Page:
    """Shared by the readers of lines and marks. Indexes are those of ``window``.

    ``kind`` is the block that is being read, ``ended`` why the block before it is over (a boundary is due before the
    next prose). ``opened`` are emphasis marks and their lengths, ``drops`` parts further on that are known to go.
    """

    def __init__(self, policy: SpeakablePolicy) -> None:
        self.policy = policy
        self.reset()

    def reset(self) -> None:
        """Start a new stream."""
        self.skipped: deque[Skipped] = deque(maxlen=_SKIPPED)
        self.output = Output(self.log)
        self.start_message()

    def start_message(self) -> None:
        """Start a new message of the stream: nothing is open."""
        self.window = Window()
        self.before = ""
        self.kind: Kind | None = None
        self.ended = ""
        self.line_start = True
        self.item_line = False
        self.opened: list[tuple[str, int]] = []
        self.drops: list[tuple[int, int, str]] = []
        self.region: Region | None = None
        self._region_start = 0
        self._excerpt = ""

    def end_message(self) -> None:
        """What is open ends here."""
        if self.region is not None:
            self._log_region(self.window.raw_start(0))
        self.output.flush()
        self.start_message()

    def trim(self, position: int) -> None:
        """Forget what is decided."""
        if position:
            self.before = self.window.text[position - 1]
            self.window.trim(position)
            self.drops = [(start - position, end - position, rule) for start, end, rule in self.drops]

    def character_before(self, position: int) -> str:
        """The character of the text in front of ``position``, markup or not; "" at the start."""
        return self.window.text[position - 1] if position else self.before

    # Output.

    def say(self, start: int, end: int) -> int:
        """Give ``[start, end)`` as it stands."""
        self.output.text(self.window.slice(start, end))
        return end

    def say_plain(self, start: int, end: int) -> None:
        """Give text without marks; blanks in a row become one."""
        text, window, output = self.window.text, self.window, self.output
        while start < end:
            if text[start] == " ":
                output.blank(window.slice(start, start + 1)[0])
                start += 1
                if start < end and text[start] == " ":
                    spaces = _SPACES.match(text, start, end)
                    assert spaces is not None
                    start = spaces.end()
                continue
            stop = text.find("  ", start, end)
            if stop < 0:
                stop = end - 1 if text[end - 1] == " " else end
            output.text(window.slice(start, stop))
            start = stop

    def say_code(self, start: int, end: int) -> None:
        """Give text as it stands; only its blanks and invisible characters are treated like those of prose."""
        text = self.window.text
        while start < end:
            self.give_tags(start)
            stop = min(end, self.window.tags[0][0]) if self.window.tags else end
            mark = _CODE_MARK.search(text, start, stop)
            stop = mark.start() if mark is not None else stop
            if stop > start:
                start = self.say(start, stop)
            elif text[start] == "\n":
                self.output.newline(self.window.slice(start, start + 1)[0])
                start += 1
            else:
                start = self.blank(start) if text[start] in BLANK_CHARACTERS else start + 1

    def say_word(self, what: str, language: str, start: int, end: int) -> None:
        """Give a word in place of the raw span."""
        self.output.text((Run(_WORDS[what][language], start, end),))

    def mention(self, what: str, position: int) -> None:
        """Say that there is something, in the language of the text so far."""
        place = self.window.raw_start(position)
        self.say_word(what, self.output.language() or language_of(self.output.tail) or "en", place, place)
        self.ended = what

    def blank(self, position: int) -> int:
        """The whitespace character at ``position``."""
        self.output.blank(self.window.slice(position, position + 1)[0])
        return position + 1

    def leave_out(self, start: int, end: int, kind: str, rule: str, *, seen: bool = False) -> int:
        """Drop ``[start, end)`` and log it. ``seen``: it stood like a blank between its neighbours."""
        first, last = self.window.raw_start(start), self.window.raw_end(end)
        self.log(kind, rule, first, last, self.window.text[start : min(end, start + _EXCERPT_CHARS)])
        self.output.dropped(first, seen=seen)
        return end

    def log(self, kind: str, rule: str, start: int, end: int, text: str) -> None:
        """Note what was left out. Emoji in a row, which may come in pieces, are one entry."""
        last = self.skipped[-1] if self.skipped else None
        if last is not None and last.kind == kind == "emoji" and last.end == start:
            start, text = self.skipped.pop().start, last.excerpt + text
        self.skipped.append(Skipped(kind, rule, start, end, text[:_EXCERPT_CHARS]))

    def begin_block(self, kind: Kind | None, reason: str) -> None:
        """A block of markup begins; what was said before it ends here, full stop or not."""
        self.output.begin_block(kind, reason)
        self.kind, self.ended = kind, ""
        self.opened.clear()

    def give_tags(self, position: int) -> None:
        """Pass on the tags up to ``position``."""
        tags = self.window.tags
        while tags and tags[0][0] <= position:
            self.output.tag(tags.pop(0)[1])

    # Regions.

    def open(self, position: int, opening: Opening) -> int:
        """A stretch that is no prose begins."""
        kind = opening.region.kind
        if kind == "code":
            self.begin_block("code" if self.policy.code == "read" else None, "code")
            if self.policy.code == "mention":
                self.mention("code", position)
        elif kind in ("reasoning", "tool call"):
            self.begin_block(None, kind)
        self.region = opening.region
        self._region_start = self.window.raw_start(position)
        self._excerpt = self.window.text[position : position + min(opening.length, _EXCERPT_CHARS)]
        return position + opening.length

    def advance(self, position: int, final: bool) -> int:
        """Take what belongs to the open region; tags in it have no effect."""
        assert self.region is not None
        text, reads = self.window.text, self.reads_region()
        step = self.region.advance(text, position, final)
        if reads:
            self.say_code(position, step.content_end)
        else:
            self._excerpt += text[position : min(step.end, position + _EXCERPT_CHARS - len(self._excerpt))]
            self.window.tags[:] = [(index, tag) for index, tag in self.window.tags if index > step.end]
        if step.closed:
            if not reads:
                self._log_region(self.window.raw_start(step.end))
            elif self.kind == "code":
                self.ended, self.kind = "code", None
            self.region = None
            self.line_start = self.output.line_empty
        return step.end

    def reads_region(self) -> bool:
        """Whether the content of the open region is spoken."""
        assert self.region is not None
        kind, policy = self.region.kind, self.policy
        return (kind == "code" and policy.code == "read") or (kind == "url" and policy.url == "read")

    def _log_region(self, end: int) -> None:
        assert self.region is not None
        if not self.reads_region():
            self.log(self.region.kind, "block", self._region_start, end, self._excerpt)
