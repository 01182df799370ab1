"""Turns an LLM's text into text that can be spoken: markup, code, reasoning, tool calls, emoji and link targets go.

Streaming: plain text passes at once, and a mark is held only until it is decided, within a bound of characters. What
comes out depends on the characters alone, never on how they were cut. The cleaner adds no punctuation.
"""

from __future__ import annotations

import re

from tts_engine.types import Run, Tag
from voice_agent.text import emoji
from voice_agent.text.markup_blocks import BLANKS
from voice_agent.text.markup_inline import MAY_BECOME_URL, URL_START
from voice_agent.text.markup_lines import LineReader
from voice_agent.text.markup_marks import BOX, IMAGE_BEFORE, MarkReader
from voice_agent.text.markup_page import Page
from voice_agent.text.markup_window import LITERAL
from voice_agent.text.pieces import Item
from voice_agent.text.speakable_policy import Skipped, SpeakablePolicy

__all__ = ["Cleaner", "Skipped", "SpeakablePolicy"]

_ASCII_MARKS = r"\t\n\r\x00-\x08\x0b-\x1f\x7f`*_~\[<&\\!#|"
_ASCII_SPECIAL = re.compile(f"[{_ASCII_MARKS}]")
_SPECIAL = re.compile(
    f"[{_ASCII_MARKS}{BLANKS[1:]}◁【［{BOX}{emoji.EMOJI}{emoji.SELECTORS}{emoji.INVISIBLE}{emoji.CITATION_START}{LITERAL}]"
)
_MAY_HOLD = frozenset(" !0123456789hHtTpPsS:/fFwW.\ufe0f©®‼⁉™ℹ↔↕↖↗↘↙↩↪Ⓜ▪▫▶◀㊗㊙")
_HELD_CHARS = 9
_SELECTORS = "\ufe0f\u20e3"
_DEFAULT_POLICY = SpeakablePolicy()


class Cleaner:
    """Incremental: feed text (raw offsets are counted here) or the items of a :class:`TagReader`.

    Gives runs, tags in their places, and a boundary wherever a block of markup begins or ends.
    """

    def __init__(self, policy: SpeakablePolicy = _DEFAULT_POLICY) -> None:
        self._raw = 0
        self._page = Page(policy)
        self._lines = LineReader(self._page)
        self._marks = MarkReader(self._page, self._lines)

    def reset(self) -> None:
        """Start over with a new stream: raw offsets count from 0 again, the log is emptied."""
        self._raw = 0
        self._page.reset()
        self._lines.reset()
        self._marks.reset()

    def feed(self, item: str | Item) -> list[Item]:
        """Take the next text or item of the stream and give what is decided."""
        if isinstance(item, str):
            item = Run(item, self._raw, self._raw + len(item))
            self._raw = item.end
        page = self._page
        if isinstance(item, Run):
            if item.text and not self._passes(item):
                page.window.append(item)
                self._scan(final=False)
        elif isinstance(item, Tag):
            if page.region is None or page.reads_region():
                page.window.append_tag(item)
                self._scan(final=False)
        else:
            self._end_message()
            page.output.boundary(item)
        return page.output.take()

    def flush(self) -> list[Item]:
        """End the text: what is held is decided, and what is open ends here."""
        self._end_message()
        return self._page.output.take()

    def take_skipped(self) -> list[Skipped]:
        """What was left out since the last call, and why: the latest 256."""
        taken = list(self._page.skipped)
        self._page.skipped.clear()
        return taken

    def _end_message(self) -> None:
        self._scan(final=True)
        self._page.end_message()
        self._lines.reset()
        self._marks.reset()

    def _passes(self, run: Run) -> bool:
        """Give a run that is plain text in the middle of plain text; False if it has to be looked at closely."""
        text, page = run.text, self._page
        output = page.output
        if page.window.text or page.line_start or page.region is not None or run.literal or not output.flowing:
            return False
        if (_ASCII_SPECIAL if text.isascii() else _SPECIAL).search(text) is not None or "  " in text:
            return False
        if _may_have_url(text) or (text[0] == " " and output.blank_held):
            return False
        last = text[-1]
        if last in _MAY_HOLD:
            if last == " ":
                if len(text) == 1 or not run.verbatim:
                    return False
                output.text((Run(text[:-1], run.start, run.end - 1),))
                output.blank(Run(last, run.end - 1, run.end))
                page.before = last
                return True
            if self._held_chars(text):
                return False
        output.text((run,))
        page.before = last
        return True

    def _held_chars(self, text: str) -> int:
        """How many characters at the end of plain text wait for the next one: what may become a URL, emoji or image."""
        tail = (self._page.before + text)[-_HELD_CHARS:]
        for pattern in (MAY_BECOME_URL, emoji.MAY_BECOME_EMOJI):
            found = pattern.search(tail)
            if found is not None:
                return min(len(found.group()), len(text))
        return int(tail[-1] == "!" and (len(tail) == 1 or IMAGE_BEFORE.match(tail[-2]) is not None))

    def _scan(self, final: bool) -> None:
        """Decide as much of the window as can be decided, and forget it."""
        page, lines, marks = self._page, self._lines, self._marks
        text, tags, drops = page.window.text, page.window.tags, page.drops
        special = _ASCII_SPECIAL if text.isascii() else _SPECIAL
        length = len(text)
        url_at = self._next_url(0) if _may_have_url(text) else length
        hold_from = length if final or not text or text[-1] not in _MAY_HOLD else length - self._held_chars(text)
        position = 0
        while True:
            if tags:
                page.give_tags(position)
            if position >= length:
                break
            if page.region is not None:
                position = page.advance(position, final)
                if page.region is not None:
                    break
                continue
            if drops and drops[0][0] <= position:
                _, end, rule = drops.pop(0)
                if end > position:
                    position = page.leave_out(position, end, "link", rule)
                continue
            step: int | None
            if page.line_start:
                step = lines.begin(position, final)
                if step is None:
                    break
                if step > position or page.line_start:
                    position = step
                    continue
            if url_at < position:
                url_at = self._next_url(position)
            found = special.search(text, position)
            stop = length if found is None else found.start()
            if url_at < stop:
                stop = url_at
            if tags or drops or (stop < length and text[stop] in _SELECTORS):
                stop = self._plain_end(position, stop, final)
            if stop > position:
                if hold_from < stop:
                    if hold_from > position:
                        page.say_plain(position, hold_from)
                        position = hold_from
                    break
                page.say_plain(position, stop)
                position = stop
                continue
            step = marks.url(position, final) if url_at == position else marks.handle(position, final)
            if step is None:
                break
            position = step
        page.trim(position)

    def _plain_end(self, position: int, end: int, final: bool) -> int:
        """Where plain text ends that would end at ``end``: before a keycap's digit, a part that goes, or a tag."""
        page = self._page
        text = page.window.text
        if position < end < len(text) and text[end] in _SELECTORS:
            keycap = emoji.SEQUENCE.match(text, end - 1)
            if keycap is not None or (not final and emoji.MAY_BECOME_EMOJI.match(text, end - 1)):
                end -= 1
        if page.drops:
            end = min(end, page.drops[0][0])
        if page.window.tags:
            end = min(end, page.window.tags[0][0])
        return end

    def _next_url(self, start: int) -> int:
        """Where the next bare URL begins; behind the end of the text if there is none."""
        text, before = self._page.window.text, self._page.before
        url = URL_START.search(text, start)
        if url is not None and url.start() == 0 and before.isascii() and before.isalnum():
            url = URL_START.search(text, 1)
        return len(text) if url is None else url.start()


def _may_have_url(text: str) -> bool:
    return "://" in text or "ww" in text or "WW" in text
