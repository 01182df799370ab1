"""Tells what block of markdown a line begins: CommonMark's and GFM's blocks, read the way LLMs write them.

Looks only at the start of a line, and holds no line of prose longer than its first characters.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from voice_agent.text.regions import Verdict

LINE_CHARS = 256


class BlockKind(Enum):
    """What the line, or the part of it that was looked at, is."""

    PROSE = "prose"
    BLANKS = "blanks"
    QUOTE = "quote"
    HEADING = "heading"
    BULLET = "bullet"
    NUMBER = "number"
    RULE = "rule"
    TABLE_RULE = "table rule"
    TABLE_ROW = "table row"
    LINK_DEFINITION = "link definition"
    FOOTNOTE = "footnote"


class Block(NamedTuple):
    """``length`` characters are the block's mark and go (0: what follows is looked at as text)."""

    kind: BlockKind
    length: int


_PROSE = Block(BlockKind.PROSE, 0)

BLANKS = " \t\r\x0b\x0c\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
BLANK_CHARACTERS = frozenset(
    " \t\r\x0b\x0c\x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
)
_BLANKS = re.compile(f"[{BLANKS}]+")
_HEADING = re.compile(r"(#{1,6})([ \t]+|(?=[\n\r])|(?<=##)(?=[^\W_]))")
_BULLET = re.compile(r"(?:[-*+][ \t]{1,8}|[•‣⁃◦▪▫●○■□▶►·・➤➜][ \t]{0,8})(?:\[[ xX]\][ \t]{1,8})?")
_BULLET_START = re.compile(r"(?:[-*+][ \t]{1,8}|[•‣⁃◦▪▫●○■□▶►·・➤➜][ \t]{0,8})(?:\[(?:[ xX](?:\])?)?)?\Z")
_LOOSE_BULLETS = "●○■□▶►·・▪▫"
_NUMBER = re.compile(r"(?:\d{1,3}[.)](?=[ \t])|\d{1,3}、|[(（]\d{1,3}[)）])")
_NUMBER_START = re.compile(r"(?:\d{1,3}[.)]?|[(（]\d{0,3}[)）]?)\Z")
_RULE_MARKS = r"-*_=+|:—–―‐\u2500-\u259f \t\r"
_RULE = re.compile(f"[{_RULE_MARKS}]+")
PIPES = "|│┃║｜"
_ROW_CELLS = re.compile(f"[{PIPES}]")
_LINE = re.compile(rf"[^\n]{{0,{LINE_CHARS}}}")
_DEFINITION = re.compile(r"\[[^\[\]\n^][^\[\]\n]{0,100}\]:[ \t]{0,8}(?P<target>\S{1,150})(?:[ \t]+[\"'(].*)?[ \t\r]*\Z")
_DEFINITION_START = re.compile(
    r"\[(?:[^\[\]\n^][^\[\]\n]{0,100}(?:\](?::[ \t]{0,8}(?:\S{0,150}(?:[ \t]+(?:[\"'(].*)?)?)?)?)?)?\Z"
)
_TARGET = re.compile(r"<|#|/|\.{1,2}/|[a-z][a-z0-9+.-]*:|www\.|[\w-]+(?:\.[\w-]+)+", re.IGNORECASE)
_FOOTNOTE = re.compile(r"\[\^[^\[\]\s]{1,32}\]:")
_FOOTNOTE_START = re.compile(r"\[(?:\^(?:[^\[\]\s]{1,32}\]?)?)?\Z")


def read_block(text: str, start: int, in_table: bool, final: bool) -> Block | Verdict:
    """What begins at ``start``, which is the start of a line, or behind quote marks and bullets in it.

    ``in_table``: the line before was a table row, so a line with a cell border is another one.
    """
    mark = text[start]
    if mark in BLANK_CHARACTERS:
        blanks = _BLANKS.match(text, start)
        assert blanks is not None
        return Block(BlockKind.BLANKS, blanks.end() - start)
    if mark == ">":
        return _quote(text, start, final)
    if mark == "#":
        return _heading(text, start, final)
    if mark in PIPES:
        return _table_row(text, start, in_table, final)
    if mark == "[":
        return _definition(text, start, final)
    if mark.isdecimal() or mark in "(（":
        return _number(text, start, in_table, final)
    if _RULE.match(mark):
        rule = _rule(text, start, final)
        if rule is not None:
            return rule
    if _BULLET_START.match(text, start) and not final:
        return Verdict.MORE
    bullet = _BULLET.match(text, start)
    if bullet is not None and (mark not in _LOOSE_BULLETS or len(bullet.group()) > 1):
        return Block(BlockKind.BULLET, bullet.end() - start)
    if mark in "-*+" and start + 1 == len(text) and not final:
        return Verdict.MORE
    return _pipe_row(text, start, final) if in_table else _PROSE


def _quote(text: str, start: int, final: bool) -> Block | Verdict:
    """``>`` is a quote mark, but not before a number or in ``>=``."""
    if start + 1 == len(text):
        return Block(BlockKind.QUOTE, 1) if final else Verdict.MORE
    following = text[start + 1]
    return _PROSE if following.isdecimal() or following == "=" else Block(BlockKind.QUOTE, 1)


def _heading(text: str, start: int, final: bool) -> Block | Verdict:
    end = start
    while end < len(text) and text[end] == "#" and end - start < 7:
        end += 1
    if end == len(text) and end - start < 7:
        return Block(BlockKind.HEADING, end - start) if final else Verdict.MORE
    heading = _HEADING.match(text, start)
    return Block(BlockKind.HEADING, len(heading.group())) if heading is not None else _PROSE


def _number(text: str, start: int, in_table: bool, final: bool) -> Block | Verdict:
    if _NUMBER.match(text, start):
        return Block(BlockKind.NUMBER, 0)
    if not final and _NUMBER_START.match(text, start):
        return Verdict.MORE
    return _pipe_row(text, start, final) if in_table else _PROSE


def _rule(text: str, start: int, final: bool) -> Block | Verdict | None:
    """A line of nothing but line-drawing marks; None if it is none. One of ``- * +`` alone is an empty bullet."""
    found = _RULE.match(text, start, start + LINE_CHARS)
    assert found is not None
    end, marks = found.end(), found.group().rstrip(" \t\r")
    if end == len(text) and len(found.group()) < LINE_CHARS and not final:
        return Verdict.MORE
    whole = end == len(text) or text[end] == "\n" or len(found.group()) == LINE_CHARS
    if whole and (len(marks) > 1 or marks in "-*+"):
        return Block(BlockKind.TABLE_RULE if "|" in marks else BlockKind.RULE, end - start)
    return None


def _table_row(text: str, start: int, in_table: bool, final: bool) -> Block | Verdict:
    """``| a | b |``; ``|x| = 5`` is prose: no blank behind the bar, and no bar at the end."""
    line = _line(text, start, final)
    if line is None:
        return Verdict.MORE
    if _RULE.fullmatch(line):
        return Block(BlockKind.TABLE_RULE, len(line))
    bars = len(_ROW_CELLS.findall(line))
    closed = line.rstrip()[-1] in PIPES
    padded = line[1:2].isspace()
    if in_table or (bars > 2 and closed) or (bars > 1 and padded) or len(line) == LINE_CHARS:
        return Block(BlockKind.TABLE_ROW, 0)
    return _PROSE


def _pipe_row(text: str, start: int, final: bool) -> Block | Verdict:
    """A line below a table row that has no border at its start."""
    line = _line(text, start, final)
    if line is None:
        return Verdict.MORE
    return Block(BlockKind.TABLE_ROW, 0) if _ROW_CELLS.search(line) else _PROSE


def _line(text: str, start: int, final: bool) -> str | None:
    """The rest of the line, at most ``LINE_CHARS`` of it; None while it is not complete."""
    found = _LINE.match(text, start)
    assert found is not None
    if found.end() == len(text) and len(found.group()) < LINE_CHARS and not final:
        return None
    return found.group()


def _definition(text: str, start: int, final: bool) -> Block | Verdict:
    """``[label]: target`` with something like an address as its target, or ``[^mark]:``."""
    footnote = _FOOTNOTE.match(text, start)
    if footnote is not None:
        return Block(BlockKind.FOOTNOTE, len(footnote.group()))
    line = _LINE.match(text, start)
    assert line is not None
    if line.end() == len(text) and len(line.group()) < LINE_CHARS and not final:
        if _FOOTNOTE_START.match(text, start) or _DEFINITION_START.match(text, start):
            return Verdict.MORE
        return _PROSE
    definition = _DEFINITION.match(line.group())
    if definition is not None and _TARGET.match(definition["target"]):
        return Block(BlockKind.LINK_DEFINITION, len(line.group()))
    return _PROSE
