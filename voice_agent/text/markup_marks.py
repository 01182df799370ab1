"""Reads the marks inside lines: emphasis, code, links, citations, tags, entities, emoji and URLs."""

from __future__ import annotations

import re
from bisect import insort
from collections.abc import Callable

from tts_engine.types import Run
from voice_agent.text import emoji
from voice_agent.text.markup_blocks import BLANK_CHARACTERS
from voice_agent.text.markup_code import code_span, open_fence, run_end
from voice_agent.text.markup_emphasis import can_close, can_open, dunder_end, is_opened
from voice_agent.text.markup_hidden import open_hidden
from voice_agent.text.markup_inline import (
    URL_CHARS,
    URL_START,
    Angle,
    read_angle,
    read_entity,
    read_link,
    read_wide_citation,
    url_end,
    url_tail,
)
from voice_agent.text.markup_lines import LineReader
from voice_agent.text.markup_output import language_of
from voice_agent.text.markup_page import Page
from voice_agent.text.regions import Element, Opening, Verdict
from voice_agent.text.tag_syntax import read_bracket

BOX = "\u2500-\u259f"
IMAGE_BEFORE = re.compile(r"[\s(\[>*_|\"'“:：,，。.、]")
_STACK_DEPTH = 32
_LONG_RUN = 3
_URL_CONTEXT_CHARS = 16
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_CITATION_END = re.compile(f"{emoji.CITATION_END}|(?=\n)")
_HEADING_TAGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_MID_LINE_TAGS = frozenset({"br", "td", "th", "hr", "summary", "dt", "dd", "option", "center", "legend"})
_LETTER = re.compile(r"[^\W\d_]")
_MAIL = "mailto:"


class MarkReader:
    """Handles one mark at a time: gives the place to go on from, or None to wait for more text."""

    def __init__(self, page: Page, lines: LineReader) -> None:
        self._page = page
        self._lines = lines
        self._long_run = ""
        self._handlers: dict[str, Callable[[int, bool], int | None]] = {
            "\n": lines.newline,
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
            "|": lines.bar,
            "【": self._wide_bracket,
            "［": self._tag,
            "◁": self._triangle,
        }

    def reset(self) -> None:
        """Start a new message."""
        self._long_run = ""

    def handle(self, position: int, final: bool) -> int | None:
        """Whatever begins at ``position``."""
        character = self._page.window.text[position]
        resumes = position == 0 and self._long_run == self._page.before == character
        self._long_run = ""
        if resumes:
            return self._literal_run(position, run_end(self._page.window.text, position))
        handler = self._handlers.get(character)
        if handler is not None:
            return handler(position, final)
        if character in BLANK_CHARACTERS:
            return self._page.blank(position)
        return self._emoji(position, final)

    def _say_mark(self, position: int) -> int:
        return self._page.say(position, position + 1)

    def _literal_run(self, position: int, end: int) -> int:
        """Marks in a row that are text; the rest of the row, if it is still to come, is text too."""
        text = self._page.window.text
        self._long_run = text[position] if end == len(text) else ""
        return self._page.say(position, end)

    def _escape(self, position: int, final: bool) -> int | None:
        following = self._page.window.text[position + 1 : position + 2]
        if not following and not final:
            return None
        if following and following in _PUNCTUATION:
            return self._page.say(position + 1, position + 2)
        return position + 1 if following == "\n" else self._say_mark(position)

    def _hash(self, position: int, final: bool) -> int | None:
        keycap = self._keycap(position, final)
        return self._lines.closing_hashes(position, final) if keycap is Verdict.NO else _place(keycap)

    # Code and emphasis.

    def _code(self, position: int, final: bool) -> int | None:
        page = self._page
        text = page.window.text
        fence = open_fence(text, position, page.output.line_empty, final)
        if isinstance(fence, Opening):
            return page.open(position, fence)
        span = code_span(text, position, final)
        if fence is Verdict.MORE or span is Verdict.MORE:
            return None
        if isinstance(span, Verdict):
            return self._literal_run(position, run_end(text, position))
        page.say_code(span.content_start, span.content_end)
        return span.end

    def _emphasis(self, position: int, final: bool) -> int | None:
        page = self._page
        text = page.window.text
        mark, end = text[position], run_end(text, position)
        if mark == "~" and page.output.line_empty:
            fence = open_fence(text, position, True, final)
            if fence is not Verdict.NO:
                return page.open(position, fence) if isinstance(fence, Opening) else None
        if mark == "*":
            keycap = self._keycap(position, final)
            if keycap is not Verdict.NO:
                return _place(keycap)
        length = end - position
        if length > _LONG_RUN:
            return self._literal_run(position, end)
        if end == len(text) and not final:
            return None
        if mark == "~" and length != 2:
            return page.say(position, end)
        before, after = page.character_before(position), text[end : end + 1]
        if can_close(mark, length, before, after):
            closed = self._close_emphasis(mark, length)
            if closed:
                return end if closed == length else page.say(position + closed, end)
        if can_open(mark, length, before, after):
            opened = is_opened(text, position, before, page.output.tail, final)
            if opened is None:
                return None
            if opened:
                name = dunder_end(text, position)
                if name is not None:
                    return page.say(position, name)
                if len(page.opened) < _STACK_DEPTH:
                    page.opened.append((mark, length))
                return end
        return page.say(position, end)

    def _close_emphasis(self, mark: str, length: int) -> int:
        """How many marks of a closing run close something that is open."""
        opened = self._page.opened
        closed = 0
        while closed < length:
            index = next((i for i in range(len(opened) - 1, -1, -1) if opened[i][0] == mark), None)
            if index is None:
                break
            open_length = opened[index][1]
            used = min(open_length, length - closed)
            closed += used
            del opened[index:]
            if used < open_length:
                opened.append((mark, open_length - used))
        return closed

    # Brackets.

    def _image(self, position: int, final: bool) -> int | None:
        page = self._page
        text = page.window.text
        before = page.character_before(position)
        if before and not IMAGE_BEFORE.match(before):
            return self._say_mark(position)
        if position + 1 == len(text) and not final:
            return None
        link = read_link(text, position + 1, "", final) if text[position + 1 : position + 2] == "[" else Verdict.NO
        if link is Verdict.MORE:
            return None
        if isinstance(link, Verdict) or link.rule != "link target":
            return self._say_mark(position)
        if page.policy.image == "skip" or link.label_start == link.label_end:
            return page.leave_out(position, link.end, "image", "image", seen=True)
        insort(page.drops, (link.label_end, link.end, "image target"))
        return position + 2

    def _bracket(self, position: int, final: bool) -> int | None:
        page = self._page
        text = page.window.text
        opening = open_hidden(text, position, final)
        if opening is not Verdict.NO:
            return page.open(position, opening) if isinstance(opening, Opening) else None
        context = page.output.tail if not page.character_before(position).isspace() else ""
        link = read_link(text, position, context, final)
        if link is Verdict.MORE:
            return None
        if isinstance(link, Verdict):
            return self._tag(position, final)
        if link.rule == "citation" and page.policy.citation == "read":
            return self._say_mark(position)
        if link.label_start < link.label_end:
            insort(page.drops, (link.label_end, link.end, link.rule))
            return position + 1
        return page.leave_out(position, link.end, "token" if link.rule == "special token" else "citation", link.rule)

    def _wide_bracket(self, position: int, final: bool) -> int | None:
        citation = read_wide_citation(self._page.window.text, position, final)
        if citation is Verdict.MORE:
            return None
        if isinstance(citation, Verdict):
            return self._tag(position, final)
        if self._page.policy.citation == "read":
            return self._say_mark(position)
        return self._page.leave_out(position, citation, "citation", "citation")

    def _tag(self, position: int, final: bool) -> int | None:
        """A bracket that is no link: a prosody tag goes, even if it came together only when another tag went."""
        written = read_bracket(self._page.window.text, position, "sayline", final)
        if isinstance(written, Verdict):
            return None if written is Verdict.MORE else self._say_mark(position)
        return self._page.leave_out(position, position + written.length, "tag", "stray tag")

    def _triangle(self, position: int, final: bool) -> int | None:
        opening = open_hidden(self._page.window.text, position, final)
        if opening is Verdict.NO:
            return self._say_mark(position)
        return self._page.open(position, opening) if isinstance(opening, Opening) else None

    # HTML, entities.

    def _angle(self, position: int, final: bool) -> int | None:
        page = self._page
        text = page.window.text
        opening = open_hidden(text, position, final)
        if opening is not Verdict.NO:
            return page.open(position, opening) if isinstance(opening, Opening) else None
        angle = read_angle(text, position, page.character_before(position), final)
        if isinstance(angle, Verdict):
            return None if angle is Verdict.MORE else self._say_mark(position)
        end = position + angle.length
        if angle.rule == "address":
            if "://" in text[position:end]:
                return self._say_url(position + 1, end - 1, end, final)
            page.say(position + 1 + len(_MAIL) * text.startswith(_MAIL, position + 1), end - 1)
            return end
        page.leave_out(position, end, "token" if angle.rule == "special token" else "html", angle.rule)
        if angle.is_block:
            self._block_tag(position, angle)
        page.line_start = page.line_start or page.output.line_empty
        return end

    def _block_tag(self, position: int, angle: Angle) -> None:
        page = self._page
        place = page.window.raw_start(position)
        page.output.blank(Run(" ", place, place))
        if angle.name in _HEADING_TAGS and not angle.closing:
            page.begin_block("heading", "html")
        elif angle.name == "li" and not angle.closing:
            page.begin_block("list_item", "html")
        elif angle.name not in _MID_LINE_TAGS:
            page.begin_block(None, "html")

    def _entity(self, position: int, final: bool) -> int | None:
        page = self._page
        entity = read_entity(page.window.text, position, final)
        if isinstance(entity, Verdict):
            return None if entity is Verdict.MORE else self._say_mark(position)
        decoded, end = entity
        start, stop = page.window.raw_start(position), page.window.raw_end(end)
        if decoded.isspace():
            page.output.blank(Run(" ", start, stop))
        elif emoji.SEQUENCE.fullmatch(decoded) and page.policy.emoji == "skip":
            page.leave_out(position, end, "emoji", "entity", seen=True)
        elif not decoded or emoji.IS_INVISIBLE.search(decoded):
            page.leave_out(position, end, "html", "entity")
        else:
            page.output.text((Run(decoded, start, stop, literal=True),))
        return end

    # URLs and emoji.

    def url(self, position: int, final: bool) -> int | None:
        """A bare URL, or what looks like the beginning of one."""
        page = self._page
        text = page.window.text
        start = URL_START.match(text, position)
        assert start is not None
        if start.end() == len(text):
            return page.say(position, start.end()) if final else None
        end = url_end(text, position, final)
        if isinstance(end, Verdict):
            return None
        step = self._say_url(position, end, end, final)
        if step is not None and end - position == URL_CHARS:
            page.open(end, Opening(0, url_tail()))
        return step

    def _say_url(self, start: int, end: int, go_on: int, final: bool) -> int | None:
        page = self._page
        if page.policy.url == "read":
            page.say(start, end)
        elif page.policy.url == "skip":
            page.leave_out(start, end, "url", "skipped", seen=True)
        else:
            language = self._url_language(go_on, final)
            if language is None:
                return None
            first, last = page.window.raw_start(start), page.window.raw_end(end)
            page.log("url", "said as a word", first, last, page.window.text[start:end])
            page.say_word("url", language, first, last)
        return go_on

    def _url_language(self, end: int, final: bool) -> str | None:
        """The language of the sentence around a URL: what stands before it, else the first letter behind it."""
        page = self._page
        language = page.output.language()
        if language:
            return language
        text = page.window.text
        letter = _LETTER.search(text, end, end + _URL_CONTEXT_CHARS)
        if letter is None and len(text) < end + _URL_CONTEXT_CHARS and not final:
            return None
        following = language_of(letter.group()) if letter is not None else ""
        return following or language_of(page.output.tail) or "en"

    def _keycap(self, position: int, final: bool) -> int | Verdict:
        """Where an emoji that begins with a digit, ``#`` or ``*`` ends, after it has gone."""
        text = self._page.window.text
        if emoji.SEQUENCE.match(text, position):
            return self._drop_emoji(position)
        return Verdict.MORE if not final and emoji.MAY_BECOME_EMOJI.match(text, position) else Verdict.NO

    def _emoji(self, position: int, final: bool) -> int | None:
        keycap = self._keycap(position, final)
        return self._symbol(position) if keycap is Verdict.NO else _place(keycap)

    def _drop_emoji(self, position: int) -> int:
        page = self._page
        found = emoji.SEQUENCE.match(page.window.text, position)
        assert found is not None
        if page.policy.emoji == "read":
            return page.say(position, found.end())
        if page.output.line_empty and page.output.tail and not page.item_line and page.kind != "heading":
            page.ended = page.ended or "emoji"
        page.leave_out(position, found.end(), "emoji", "emoji", seen=True)
        page.line_start = page.line_start or page.output.line_empty
        return found.end()

    def _symbol(self, position: int) -> int:
        """A character that is no emoji: one without a shape or a line-drawing one goes, any other is text."""
        page = self._page
        text = page.window.text
        if text[position] == emoji.CITATION_START:
            return page.open(position, Opening(1, Element("citation", _CITATION_END)))
        if emoji.IS_INVISIBLE.match(text[position]):
            page.line_start = page.line_start or page.output.line_empty
            return position + 1
        if BOX[0] <= text[position] <= BOX[-1]:
            page.output.dropped(page.window.raw_start(position), seen=True)
            return position + 1
        return self._say_mark(position)


def _place(found: int | Verdict) -> int | None:
    return None if isinstance(found, Verdict) else found
