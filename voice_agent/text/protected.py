"""Decides whether the mark behind a word belongs to it (title, initial, abbreviation, brand) or ends a sentence.

Where the answer depends on text that is not there yet, ``MoreText`` is raised. An answer, once given, is the same for
every continuation of the text: that is what makes the splitter independent of chunking.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from voice_agent.text.character_classes import CLOSERS, OPENERS, STRONG, WIDE


class MoreText(Exception):  # noqa: N818 - a signal inside the splitter, never an error
    """The decision depends on characters that have not arrived."""


TOKEN_WINDOW = 64
"""Characters that are looked at before a dot: a longer token is no abbreviation."""

WORD_WINDOW = 24
"""Letters of the following word that are looked at. With blanks and opening marks before it: at most 31 characters."""

_TOKEN_BACK = re.compile(rf"[^\s\"',;:，；：、—–/\-…{STRONG}{CLOSERS}{OPENERS}{WIDE}]*")
_WORD_BACK = re.compile(r"\s?([^\W\d_]{1,24})")
_FOLLOWING = re.compile(rf"\s{{0,4}}[\"'{OPENERS}]{{0,2}}([^\W\d_{WIDE}]{{0,{WORD_WINDOW}}})")
_INITIALISM = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]|(?:[A-Z][a-z]?\.)+[A-Z][a-z]{0,2}")
_LIST_LABEL = re.compile(
    r"\s*[(（]?(?:[-*+•]\s)?\s*(?:\d{1,3}|[０-９]{1,3}|[A-Za-z]|[ivx]{1,4}|[IVX]{1,4}|[一二三四五六七八九十]{1,3})"
)
_ROMAN = re.compile(r"[IVXLC]+")
_SHORT_NUMBER = re.compile(r"\d{1,2}")


class Words:
    """A set of words where capitals in the list are binding and small letters are not."""

    def __init__(self, listed: str) -> None:
        words = listed.split()
        self._any_case = frozenset(word for word in words if word == word.lower())
        self._as_written = frozenset(words) | frozenset(word.upper() for word in words if len(word) > 1)

    def __contains__(self, word: str) -> bool:
        return word in self._as_written or word.lower() in self._any_case


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The tables of ``abbreviations.toml``."""

    never_end: Words
    saint: str
    before_number: Words
    before_label: frozenset[str]
    months: frozenset[str]
    may_end: Words
    may_end_before_opener: Words
    units: frozenset[str]
    clock: Words
    clock_followers: frozenset[str]
    lettered: frozenset[str]
    list_labels: frozenset[str]
    openers: frozenset[str]
    name_suffixes: tuple[str, ...]
    brands: dict[str, frozenset[str]]


@lru_cache(maxsize=1)
def knowledge() -> Knowledge:
    """Reads the tables, once, when the first sentence needs them."""
    import tomllib

    table: dict[str, Any] = tomllib.loads(Path(__file__).with_name("abbreviations.toml").read_text(encoding="utf-8"))

    def words(key: str) -> frozenset[str]:
        return frozenset(table[key].split())

    return Knowledge(
        never_end=Words(table["never_end"]),
        saint=table["saint_or_street"],
        before_number=Words(table["before_number"]),
        before_label=words("before_label"),
        months=words("months"),
        may_end=Words(table["may_end"]),
        may_end_before_opener=Words(table["may_end_before_opener"]),
        units=words("units"),
        clock=Words(table["clock"]),
        clock_followers=words("clock_followers"),
        lettered=words("lettered"),
        list_labels=words("list_labels"),
        openers=words("openers"),
        name_suffixes=tuple(table["name_suffixes"].split()),
        brands={brand: frozenset(after.split()) for brand, after in table["brands"].items()},
    )


@dataclass(frozen=True, slots=True)
class Following:
    """What stands behind a mark: the first character that is no blank or opening mark, and the word that it begins.

    ``first`` is empty at the end of the text. ``opener``: the word is one that usually opens a sentence.
    """

    first: str
    word: str
    opener: bool


def first_following(text: str, at: int, final: bool) -> str:
    """The first character behind ``at`` that is no blank or opening mark; empty at the end of the text."""
    match = _FOLLOWING.match(text, at)
    assert match is not None
    begin = match.start(1)
    if begin >= len(text) and not final:
        raise MoreText
    return text[begin : begin + 1]


def following(text: str, at: int, final: bool) -> Following:
    """Reads the word behind ``at``. ``final``: nothing comes after the text."""
    match = _FOLLOWING.match(text, at)
    assert match is not None
    word, stop = match.group(1), match.end()
    if stop >= len(text) and not final:
        raise MoreText
    after = text[stop : stop + 1]
    if not word:
        return Following(after, "", False)
    known = knowledge().openers
    if len(word) == 1 and after == ".":
        opener = False
    else:
        opener = word in known or (after in ("'", "’") and f"{word}'" in known)
    return Following(word[0], word, opener)


def token_before(text: str, at: int) -> str:
    """The word-like stretch that ends at ``at``, without opening marks; empty where a blank or a mark stands there."""
    match = _TOKEN_BACK.match(text[max(0, at - TOKEN_WINDOW) : at][::-1])
    assert match is not None
    return match.group()[::-1]


def _word_before(text: str, at: int) -> str:
    match = _WORD_BACK.match(text[max(0, at - 26) : at][::-1])
    return match.group(1)[::-1] if match else ""


def is_list_number(text: str, at: int) -> bool:
    """Whether the dot at ``at`` belongs to a list number: "1." at the start, "…: 1.", or the next one of a list."""
    if _LIST_LABEL.fullmatch(text, 0, at):
        return True
    token = token_before(text, at)
    if not _SHORT_NUMBER.fullmatch(token):
        return False
    before = text[max(0, at - len(token) - 12) : at - len(token)].strip()
    if before.endswith((":", "：")):
        return int(token) <= 1
    if before.endswith((";", "；")):
        return True
    if before in knowledge().list_labels and text[: at - len(token)].strip() == before:
        return True
    number = int(token)
    return number > 1 and re.search(rf"(?:^|[\s:：;；]){number - 1}[.．]\s", text[:at]) is not None


def dot_ends(text: str, at: int, stop: int, final: bool) -> bool:
    """Whether the single dot at ``at`` may end a sentence. ``stop``: where the closing marks behind it end."""
    if is_list_number(text, at):
        return False
    token = token_before(text, at)
    if not token or token.isdigit():
        return True
    known = knowledge()
    if len(token) == 1 and token.isupper():
        after = following(text, stop, final)
        if _word_before(text, at - 1).lower() in known.lettered:
            return not after.first or after.first.isupper()
        return after.opener or not after.first
    if token in known.never_end:
        return False
    if token == known.saint:
        return _word_before(text, at - len(token))[:1].isupper() and _opens(text, stop, final)
    if (token in known.before_number or token in known.before_label) and _numbered(token, text, stop, final):
        return False
    if token in known.clock:
        after = following(text, stop, final)
        return not after.first or (after.first.isupper() and after.word not in known.clock_followers)
    if token in known.months:
        after = following(text, stop, final)
        return not after.first or (after.first.isupper() and after.word not in known.months)
    if token in known.may_end:
        if token in known.units and not text[: at - len(token)].rstrip()[-1:].isdigit():
            return True
        after = following(text, stop, final)
        title_or_acronym = len(after.word) > 1 and after.word.isupper()
        return not after.first or after.opener or (after.first.isupper() and not title_or_acronym)
    if token in known.may_end_before_opener or _INITIALISM.fullmatch(token):
        return _opens(text, stop, final)
    return True


def _opens(text: str, stop: int, final: bool) -> bool:
    after = following(text, stop, final)
    return after.opener or not after.first


def _numbered(token: str, text: str, stop: int, final: bool) -> bool:
    first = first_following(text, stop, final)
    if first.isdigit() or first in ("#", "+", "№"):
        return True
    if token not in knowledge().before_label or not first.isupper():
        return False
    after = following(text, stop, final)
    return not after.opener and after.word.isupper() and (len(after.word) == 1 or bool(_ROMAN.fullmatch(after.word)))


def brand_goes_on(text: str, at: int, stop: int, final: bool) -> bool:
    """Whether the mark at ``at`` belongs to a brand name and the sentence goes on behind it."""
    after_names = knowledge().brands.get(f"{token_before(text, at)}{text[at:stop]}")
    if after_names is None:
        return False
    after = following(text, stop, final)
    if not after.word:
        return after.first != ""
    return not after.opener and ("*" in after_names or after.word in after_names or after.first.islower())
