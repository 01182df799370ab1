"""Says how long a text is to the ear, and where a sentence may be cut when it is too long to wait for or to speak."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from voice_agent.text.character_classes import CLOSERS, HAN, KANA
from voice_agent.text.protected import MoreText, knowledge, token_before

_LETTERS_PER_WORD = 12
_UNIT = re.compile(rf"(?P<wide>[{HAN}{KANA}])|[^\W{HAN}{KANA}][^\s{HAN}{KANA}]{{0,{_LETTERS_PER_WORD - 1}}}")
# What cannot be spoken alone, so that no cut may stand before it: combining marks are found by their category.
_JOINERS = "\u200d\ufe0e\ufe0f" + "".join(map(chr, range(0x1F3FB, 0x1F400)))

CLAUSE_MARKS = ",;:，；：—"
_AFTER_CLAUSE = re.compile(f"[{CLAUSE_MARKS}]{{1,8}}[{CLOSERS}\"']{{0,4}}")
_SUFFIX = re.compile(r"\s?([A-Za-z]{0,4})")

_STRONG_CLAUSE = re.compile("[;:；：—]")
_COMMA = re.compile("[,，]")
_ELLIPSIS = re.compile(rf"(?:…+|[.…]{{3,}}(?=[\s{HAN}])|[。！？]+)[{CLOSERS}]*(?![{CLOSERS}…。！？—])")
_BLANKS = tuple(
    re.compile(pattern)
    for pattern in (
        r"、(?!\d)|(?<![.!?\s])\s+(?=(?:and|or|but|because|which|that|so|when|while|if|where|who|with|for|to)\s)",
        r"(?<![.!?\s\d])\s+(?!\d)",
        r"(?<![.!?\s])\s+",
        rf"(?<=[{HAN}{KANA}])(?=[{HAN}{KANA}])",
    )
)
_SCHEMES = ("http", "https", "ftp", "mailto", "file")


@dataclass(frozen=True, slots=True)
class Length:
    """A length in both languages at once: reached when the shares of words and of Chinese characters add up to one."""

    words: int
    chars: int

    def reached_at(self, text: str) -> int | None:
        """Where in the text this length is full (end of that word or character), or ``None`` if the text is shorter.

        A token without blanks counts one word for each 12 characters begun, so that a URL has a length too.
        """
        match = self._unit_at(text, self.words * self.chars)
        return match and match.end()

    def overflow_at(self, text: str) -> int | None:
        """Where the first word or character begins that no longer fits, or ``None`` if the text is not longer."""
        match = self._unit_at(text, self.words * self.chars + 1)
        return match and match.start()

    def within(self, other: Length) -> bool:
        return self.words <= other.words and self.chars <= other.chars

    def _unit_at(self, text: str, full: int) -> re.Match[str] | None:
        if len(text) < min(self.words, self.chars):
            return None
        total = 0
        for match in _UNIT.finditer(text):
            total += self.words if match["wide"] else self.chars
            if total >= full:
                return match
        return None


def clause_end(text: str, at: int, final: bool) -> int | None:
    """Where a clause that closes with the mark ``text[at]`` ends, or ``None`` where the mark belongs to a number, time,
    date, address or name. Raises ``MoreText`` while that is open.
    """
    match = _AFTER_CLAUSE.match(text, at)
    assert match is not None
    end = match.end()
    if end + 1 >= len(text) and not final:
        raise MoreText
    after, then = text[end : end + 1], text[end + 1 : end + 2]
    ascii_mark = text[at] in ",;:"
    if ascii_mark and not after.isspace():
        return None
    if text[at - 1 : at].isdigit() and (after.isdigit() or (ascii_mark and then.isdigit())):
        return None
    if text[at] == "," and then.isupper():
        suffix = _SUFFIX.match(text, end)
        assert suffix is not None
        word = suffix.group(1)
        if suffix.end() >= len(text) and not final and any(known.startswith(word) for known in knowledge().name_suffixes):
            raise MoreText
        if word in knowledge().name_suffixes:
            return None
    return end


def best_cut(text: str, limit: int) -> int:
    """Where to cut a text that is longer than ``limit`` characters.

    Behind the best mark in the last two thirds of what fits, else between words, else between Chinese characters, else
    anywhere that does not tear a character apart.
    """
    low = max(limit // 3, 1)

    def last(places: Iterator[int]) -> int | None:
        return max((at for at in places if low < at <= limit and not _inside_title(text, at)), default=None)

    for marks in (_ELLIPSIS, _STRONG_CLAUSE, _COMMA):
        found = marks.finditer(text, low, limit)
        best = last(match.end() if marks is _ELLIPSIS else clause_end(text, match.start(), True) or 0 for match in found)
        if best:
            return best
    for blanks in _BLANKS:
        best = last(match.end() for match in blanks.finditer(text, low, min(limit + 1, len(text))))
        if best:
            return best
    return whole_character(text, limit)


def last_clause_end(text: str) -> int | None:
    """Where the last clause ends of an open sentence to which nothing is added for a while."""
    best = None
    for match in re.finditer(f"[{CLAUSE_MARKS}]", text):
        at = match.start()
        settled = text[at + 1 :].strip() != "" or not (text[at - 1 : at].isdigit() or token_before(text, at) in _SCHEMES)
        end = clause_end(text + " ", at, True) if settled else None
        best = end or best
    return best and min(best, len(text))


def _inside_title(text: str, at: int) -> bool:
    return text.rfind("《", 0, at) > text.rfind("》", 0, at)


def whole_character(text: str, at: int) -> int:
    """The last place not behind ``at``, at most 32 characters before it, that tears no grapheme or surrogate pair."""
    for place in range(at, max(at - 32, 0), -1):
        if place >= len(text):
            return place
        before, after = text[place - 1], text[place]
        torn = unicodedata.combining(after) or after in _JOINERS or before == "\u200d" or "\udc00" <= after <= "\udfff"
        if not torn:
            return place
    return at
