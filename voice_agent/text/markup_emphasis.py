"""Decides which asterisks, underscores and tildes are emphasis, and which are mathematics, globs and names.

CommonMark's flanking rules (section 6.2), made stricter between Latin letters and digits (``x**2``, ``2*3``) and looser
beside Chinese characters and marks, where the rules fail (``**注意：**请``).
"""

from __future__ import annotations

import re

from voice_agent.text.markup_code import CodeSpan, code_span, run_end
from voice_agent.text.regions import Verdict

STAR_CHARS = 64
UNDERSCORE_CHARS = 160
_MARKS_DEEP = 8
_WIDE_SCRIPTS = "\u2e80"
_WIDE_QUOTES = frozenset("“”‘’…—·")
_NOT_OPENED = frozenset(".,;:!?)]}/\\|=%。，、；：！？）】」』》>")
_CLOSING_BRACKETS = frozenset(")]}")
_WORD_OPENERS = frozenset("\"'“‘([{（【「『《$#<`-+~¥€£@&*_")
_MARKS_AND_CODE = {mark: re.compile(rf"\{mark}+|`+|\\.|\n", re.DOTALL) for mark in "*_~"}
_LINE_START = re.compile(r"[ \t]*(.?)", re.DOTALL)
_BLOCK_MARKS = "-*+>#|`~\n"
_PRODUCT = re.compile(r"[=＝≈]|等于")
_PAIRS = frozenset(('""', "''", "()", "[]", "{}", "“”", "‘’", "「」", "（）"))
_DUNDER = re.compile(r"__([a-z]+)__")
_DUNDER_NAMES = (
    "init name main file doc all version str repr call len iter next enter exit eq ne lt le gt ge hash bool "
    "del new dict class slots module annotations getattr setattr getitem setitem delitem contains add sub mul "
    "truediv floordiv mod pow path import future pycache qualname bases mro subclasses index int float bytes "
    "format author"
)
_DUNDERS = frozenset(_DUNDER_NAMES.split())


def can_open(mark: str, length: int, before: str, after: str) -> bool:
    """Whether a run of ``length`` marks between two characters ("" at an end) can begin emphasis."""
    if not after or after.isspace() or before + after in _PAIRS:
        return False
    if mark == "_":
        return not before.isalnum() and after not in _NOT_OPENED
    if length == 1 and before in _CLOSING_BRACKETS:
        return False
    if after.isalnum():
        return not before.isalnum() or _is_wide(before) or _is_wide(after)
    if after in _NOT_OPENED and not (after == "." and length > 1):
        return False
    return not before.isalnum() or _is_wide(before)


def can_close(mark: str, length: int, before: str, after: str) -> bool:
    """Whether a run of ``length`` marks between two characters can end emphasis that is open."""
    if not before or before.isspace() or before + after in _PAIRS:
        return False
    if mark == "_":
        return not after.isalnum()
    if not after.isalnum():
        return True
    if before.isalnum():
        return _is_wide(before) or _is_wide(after) or (length > 1 and before.isalpha() and after.isalpha())
    return length > 1 or _is_wide(after) or _is_wide(before)


def is_opened(text: str, start: int, before: str, context: str, final: bool) -> bool | None:
    """Whether the run at ``start`` is emphasis: something closes it; None while that is open.

    ``context``: some text before it. Behind a bound of characters (64, or 160 for underscores) a run of asterisks in
    front of a word is taken as emphasis, and a run of underscores is not.
    """
    mark, end = text[start], run_end(text, start)
    limit = end + (UNDERSCORE_CHARS if mark == "_" else STAR_CHARS)
    after = text[end : end + 1]
    needed = end - start
    position = end
    while (found := _MARKS_AND_CODE[mark].search(text, position, limit)) is not None:
        position = found.end()
        first = found.group()[0]
        if first == "\n":
            line = _LINE_START.match(text, position, limit)
            assert line is not None
            if not line[1]:
                return None if len(text) < limit and not final else False
            if line[1] in _BLOCK_MARKS or line[1].isdecimal():
                return False
        elif first == "`":
            span = code_span(text, found.start(), final)
            if span is Verdict.MORE:
                return None
            if isinstance(span, CodeSpan):
                position = span.end
        elif first == mark:
            stop = run_end(text, found.start())
            if stop == len(text) and not final:
                return None
            length, position = stop - found.start(), stop
            left, right = text[found.start() - 1], text[stop : stop + 1]
            if mark == "~" and length != 2:
                continue
            if can_close(mark, length, left, right):
                needed -= length
                if needed <= 0:
                    return not _is_product(text, start, stop, before, right, context)
            elif can_open(mark, length, left, right):
                needed += length
                if needed > _MARKS_DEEP:
                    return False
    if len(text) < limit:
        return False if final else None
    return mark != "_" and _begins_word(before, after)


def dunder_end(text: str, start: int) -> int | None:
    """Where a Python name such as ``__init__`` at ``start`` ends; other words in double underscores are bold."""
    name = _DUNDER.match(text, start)
    return name.end() if name is not None and name[1] in _DUNDERS else None


def _begins_word(before: str, after: str) -> bool:
    if before and not before.isspace() and before not in _WORD_OPENERS and not _is_wide(before):
        return False
    return after.isalnum() or after in _WORD_OPENERS


def _is_product(text: str, start: int, end: int, before: str, after: str, context: str) -> bool:
    """``长*宽*高`` behind an equals sign: single asterisks between characters are a multiplication."""
    if end - start < 3 or text[start : start + 2] == "**" or not (before.isalnum() and after.isalnum()):
        return False
    return _PRODUCT.search(context) is not None


def _is_wide(character: str) -> bool:
    """Whether a character is Chinese, a mark that stands between Chinese characters, or of another wide script."""
    return character >= _WIDE_SCRIPTS or character in _WIDE_QUOTES
