"""Finds code in markdown: fenced blocks, closed or not, and inline code."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from voice_agent.text.regions import Advance, Opening, RegionKind, Verdict

CODE_SPAN_CHARS = 256
FENCE_INFO_CHARS = 200
RUN_CHARS = 64


class CodeSpan(NamedTuple):
    """Window offsets of an inline code span: its text, and where the closing backticks end."""

    content_start: int
    content_end: int
    end: int


_BACKTICKS = re.compile(r"`+")
_LINE_PREFIX = re.compile(r"(?:[ \t>]|[-*+•][ \t]|\d{1,3}[.)][ \t])*")
_LINE_PREFIX_START = re.compile(_LINE_PREFIX.pattern + r"(?:[-*+•]|\d{1,3}[.)]?)?")
_LINE_PREFIX_CHARS = 64
_FENCE_LINE = re.compile(r"[ \t>]{0,64}(?P<run>`{1,256}|~{1,256})?(?P<info>[^`\n]{0,200})")
_MARKDOWN = frozenset({"markdown", "md"})


def is_line_prefix(line: str) -> bool:
    """Whether a block may still begin after this much of a line: indentation, quote marks, bullets."""
    return _LINE_PREFIX.fullmatch(line) is not None


def may_become_line_prefix(line: str) -> bool:
    """Whether more text can make a line prefix of it; not if it is over 64 characters long."""
    return len(line) <= _LINE_PREFIX_CHARS and _LINE_PREFIX_START.fullmatch(line) is not None


def run_end(text: str, start: int) -> int:
    """Where the run of ``text[start]`` ends."""
    mark, end = text[start], start + 1
    while end < len(text) and text[end] == mark:
        end += 1
    return end


@dataclass
class Fence:
    """A fenced code block (CommonMark 4.5; closed at any indentation, since lists indent them).

    ``anywhere``: it began behind text, so it may also end behind text. Inside a ``markdown`` fence, fences nest.
    """

    mark: str
    length: int
    anywhere: bool = False
    nests: bool = False
    depth: int = 0
    line_start: bool = True
    kind: RegionKind = "code"

    def advance(self, text: str, start: int, final: bool) -> Advance:
        if self.anywhere:
            return self._advance_anywhere(text, start, final)
        position = start
        while position < len(text):
            if self.line_start:
                line = _FENCE_LINE.match(text, position)
                assert line is not None
                if line.end() == len(text) and not final and self._may_close(line):
                    return Advance(position, position, False)
                ends = line.end() == len(text) or text[line.end()] == "\n"
                if ends and self._is_ours(line):
                    if not line["info"].strip():
                        if self.depth == 0:
                            return Advance(position, line.end("run"), True)
                        self.depth -= 1
                    elif self.nests:
                        self.depth += 1
            newline = text.find("\n", position)
            self.line_start = newline >= 0
            position = newline + 1 if newline >= 0 else len(text)
        return Advance(position, position, final)

    def _is_ours(self, line: re.Match[str]) -> bool:
        run = line["run"]
        return run is not None and run[0] == self.mark and len(run) >= self.length and _is_short(line)

    def _may_close(self, line: re.Match[str]) -> bool:
        """Whether a line that is not complete yet can still turn out to be a fence of ours."""
        if not _is_short(line):
            return False
        if line["run"] is None:
            return not line["info"].strip(" \t>`~")
        return self.nests or not line["info"].strip()

    def _advance_anywhere(self, text: str, start: int, final: bool) -> Advance:
        for run in _BACKTICKS.finditer(text, start):
            if run.end() == len(text) and not final and run.end() - run.start() < RUN_CHARS:
                return Advance(run.start(), run.start(), False)
            if run.end() - run.start() >= self.length:
                return Advance(run.start(), min(run.end(), run.start() + RUN_CHARS), True)
        return Advance(len(text), len(text), final)


def _is_short(line: re.Match[str]) -> bool:
    """Longer lines are content, so that no fence has to be waited for without a bound."""
    return line.end() - line.start() < FENCE_INFO_CHARS


def open_fence(text: str, start: int, line_empty: bool, final: bool) -> Opening | Verdict:
    """Whether the run of backticks or tildes at ``start`` opens a fenced block.

    Behind text (``line_empty`` False) three backticks that their own line does not close open one too: LLMs write
    "Run this: ```sh" and go on in the next line.
    """
    mark, end = text[start], run_end(text, start)
    length = end - start
    if length > RUN_CHARS:
        return Verdict.NO
    if end == len(text) and not final:
        return Verdict.MORE
    if length < 3 or (mark == "~" and not line_empty):
        return Verdict.NO
    newline = text.find("\n", end)
    info = text[end : newline if newline >= 0 else len(text)]
    if mark == "`" and "`" in info[:FENCE_INFO_CHARS]:
        return Verdict.NO
    if newline < 0 and not final and len(info) < FENCE_INFO_CHARS:
        return Verdict.MORE
    stop = newline + 1 if newline >= 0 else len(text)
    if len(info) > FENCE_INFO_CHARS:
        stop = end + FENCE_INFO_CHARS
    return Opening(
        stop - start,
        Fence(
            mark,
            length,
            anywhere=not line_empty,
            nests=info.strip().lower() in _MARKDOWN,
            line_start=newline >= 0 and len(info) <= FENCE_INFO_CHARS,
        ),
    )


def code_span(text: str, start: int, final: bool) -> CodeSpan | Verdict:
    """The inline code that the backticks at ``start`` open: closed by as many, in the same line (CommonMark 6.1).

    One blank at both ends is padding. Backticks before a blank do not pair with ones that open code before a word.
    """
    opened = run_end(text, start)
    length = opened - start
    if length > RUN_CHARS:
        return Verdict.NO
    if opened == len(text):
        return Verdict.NO if final else Verdict.MORE
    limit = opened + CODE_SPAN_CHARS
    newline = text.find("\n", opened, limit)
    stop = min(limit, len(text)) if newline < 0 else newline
    for run in _BACKTICKS.finditer(text, opened, stop):
        if run.end() == len(text) and not final:
            return Verdict.MORE
        if run.end() - run.start() == length and text[run.end() : run.end() + 1] != "`":
            content = text[opened : run.start()]
            if content[:1] == " " and text[run.end() : run.end() + 1].isalnum():
                return Verdict.NO
            padded = len(content) > 2 and content[0] == content[-1] == " " and not content.isspace()
            return CodeSpan(opened + padded, run.start() - padded, run.end())
    if newline < 0 and len(text) < limit and not final:
        return Verdict.MORE
    return Verdict.NO
