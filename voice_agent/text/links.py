"""Finds the ends of markdown link targets and bare URLs in a window of the stream."""

from __future__ import annotations

import re

from voice_agent.text.regions import Verdict

TARGET_CHARS = 512
_TARGET_DEPTH = 8
_TARGET_STOP = re.compile(r"[\s()\\<]")
_TITLE = re.compile(r"""\s{1,8}(?:"[^"\n]{0,200}"|'[^'\n]{0,200}'|\([^()\n]{0,200}\))?[ \t]{0,8}\)""")
_TITLE_START = re.compile(
    r"""\s{1,8}(?:"[^"\n]{0,200}(?:"[ \t]{0,8})?|'[^'\n]{0,200}(?:'[ \t]{0,8})?|\([^()\n]{0,200}(?:\)[ \t]{0,8})?)?\Z"""
)
_ANGLE = re.compile(r"[^<>\n]{0,500}")


def link_target_end(text: str, start: int, final: bool) -> int | Verdict:
    """Where ``(target "title")`` that begins at ``start`` ends (CommonMark 6.3), or that it is none.

    A stream that ends inside a target that has begun gives the end of the text.
    """
    position = start + 1
    while position < len(text) and text[position] in " \t" and position < start + 8:
        position += 1
    if position < len(text) and text[position] == "<":
        angle = _ANGLE.match(text, position + 1)
        assert angle is not None
        position = angle.end()
        if position < len(text):
            if text[position] != ">":
                return Verdict.NO
            return _target_close(text, position + 1, final)
        return _cut(text, start, position, final)
    depth = 0
    while True:
        stop = _TARGET_STOP.search(text, position)
        if stop is None:
            return _cut(text, start, len(text), final)
        position = stop.start()
        if position - start >= TARGET_CHARS or text[position] == "<" or depth > _TARGET_DEPTH:
            return Verdict.NO
        if text[position] == "(":
            depth += 1
        elif text[position] == ")":
            if depth == 0:
                return position + 1
            depth -= 1
        elif text[position] == "\\":
            position += 1
        else:
            return Verdict.NO if depth else _target_close(text, position, final)
        position += 1


def _target_close(text: str, position: int, final: bool) -> int | Verdict:
    if text[position : position + 1] == ")":
        return position + 1
    title = _TITLE.match(text, position)
    if title is not None:
        return title.end()
    if position == len(text) or _TITLE_START.match(text, position):
        return len(text) if final else Verdict.MORE
    return Verdict.NO


def _cut(text: str, start: int, end: int, final: bool) -> int | Verdict:
    if final:
        return len(text)
    return Verdict.MORE if end - start < TARGET_CHARS else Verdict.NO
