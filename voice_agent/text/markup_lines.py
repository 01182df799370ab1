"""Reads how lines begin and end: headings, lists, quotes, tables, rules and definitions become boundaries or go."""

from __future__ import annotations

import re
from typing import Literal

from tts_engine.types import Run
from voice_agent.text import emoji
from voice_agent.text.markup_blocks import PIPES, Block, BlockKind, read_block
from voice_agent.text.markup_hidden import open_json
from voice_agent.text.markup_page import Page
from voice_agent.text.regions import Element, Opening, Verdict

_HEADING_END = re.compile(r"#{1,64}[ \t\r]{0,64}(?=\n|\Z)")
_ROW_END = re.compile(rf"[{PIPES}][ \t\r]{{0,64}}(?=\n|\Z)")
_REST_OF_LINE = re.compile(r"(?=\n)")


class LineReader:
    """Handles one position at a time: gives the place to go on from, or None to wait for more text."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self.reset()

    def reset(self) -> None:
        """Start a new message."""
        self._indent = 0
        self._in_table = False
        self._cells = False

    def newline(self, position: int, final: bool) -> int:
        """The end of a line; of a block, if the line is empty or a heading."""
        page = self._page
        output = page.output
        if output.line_empty:
            page.opened.clear()
            if page.kind == "list_item":
                page.ended, page.kind = "list", None
        if page.kind == "heading":
            page.ended, page.kind = "heading", None
        output.newline(page.window.slice(position, position + 1)[0])
        page.line_start, page.item_line = True, False
        self._indent, self._cells = 0, False
        return position + 1

    def begin(self, position: int, final: bool) -> int | None:
        """What a line begins with. Prose is left where it is, with ``line_start`` of the page cleared."""
        page = self._page
        text = page.window.text
        mark = text[position]
        if mark == "\n":
            return self.newline(position, final)
        if mark.isalpha() and not self._in_table:
            page.line_start = False
            self._begin_prose(mark)
            return position
        if not final and emoji.MAY_BECOME_EMOJI.match(text, position):
            return None
        if self._goes_unseen(position):
            page.line_start = False
            return position
        if mark in "{[":
            opening = open_json(text, position, final)
            if opening is not Verdict.NO:
                return page.open(position, opening) if isinstance(opening, Opening) else None
        block = read_block(text, position, self._in_table, final)
        if isinstance(block, Verdict):
            return None
        end = position + block.length
        if block.kind in (BlockKind.BLANKS, BlockKind.QUOTE):
            self._indent += block.length
            if block.kind is BlockKind.BLANKS:
                page.blank(position)
            return end
        if block.kind in (BlockKind.TABLE_ROW, BlockKind.TABLE_RULE):
            return self._table_line(position, block)
        if self._in_table:
            self._in_table = False
            page.ended = page.ended or "table"
        if block.kind is BlockKind.LINK_DEFINITION:
            return page.leave_out(position, end, "link", block.kind.value)
        if block.kind in (BlockKind.RULE, BlockKind.FOOTNOTE):
            page.begin_block(None, block.kind.value)
            if block.kind is BlockKind.FOOTNOTE and page.policy.footnote == "skip":
                self._skip_line(position, "footnote")
            return end
        page.line_start = False
        if block.kind is BlockKind.HEADING:
            page.begin_block("heading", "heading")
        elif block.kind is BlockKind.PROSE:
            self._begin_prose(mark)
        else:
            page.begin_block("list_item", "list")
            page.item_line = True
            page.line_start = block.kind is BlockKind.BULLET
        return end

    def _goes_unseen(self, position: int) -> bool:
        """Whether a character goes that leaves the line as if it had not begun."""
        text = self._page.window.text
        if emoji.SEQUENCE.match(text, position):
            return self._page.policy.emoji == "skip"
        return text[position] == emoji.CITATION_START or emoji.IS_INVISIBLE.match(text, position) is not None

    def _begin_prose(self, first: str) -> None:
        """A line of prose begins a block of its own behind a heading, a list, a table or code.

        Below a list item, an indented line or one that begins with a small letter still belongs to the item.
        """
        page = self._page
        left_list = page.kind == "list_item" and not page.item_line and self._indent < 2 and not first.islower()
        if page.ended or left_list:
            page.begin_block(None, page.ended or "list")

    def _skip_line(self, position: int, kind: Literal["footnote", "table"]) -> None:
        self._page.open(position, Opening(0, Element(kind, _REST_OF_LINE)))

    def _table_line(self, position: int, block: Block) -> int:
        page = self._page
        first, self._in_table = not self._in_table, True
        reads = page.policy.table == "read"
        if first or reads:
            page.begin_block(None, "table")
        if first and page.policy.table == "mention":
            page.mention("table", position)
        if block.kind is BlockKind.TABLE_RULE:
            return position + block.length
        if not reads:
            self._skip_line(position, "table")
            return position
        page.line_start, self._cells = False, True
        return position + (page.window.text[position] in PIPES)

    def bar(self, position: int, final: bool) -> int | None:
        """A vertical bar; the border of a cell of a table that is read becomes a comma."""
        page = self._page
        if not self._cells:
            return page.say(position, position + 1)
        end = _ROW_END.match(page.window.text, position)
        if end is not None:
            return None if end.end() == len(page.window.text) and not final else end.end()
        place = page.window.raw_start(position)
        page.output.dropped(place)
        page.output.text((Run(", ", place, place + 1),))
        return position + 1

    def closing_hashes(self, position: int, final: bool) -> int | None:
        """A number sign; behind a heading's text they go, up to the end of the line."""
        page = self._page
        if page.kind == "heading" and page.character_before(position).isspace():
            end = _HEADING_END.match(page.window.text, position)
            if end is not None:
                return None if end.end() == len(page.window.text) and not final else end.end()
        return page.say(position, position + 1)
