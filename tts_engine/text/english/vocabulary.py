"""The word lists of English reading, from data/words_en.json, loaded at the first use."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

TABLE = Path(__file__).parent.parent / "data" / "words_en.json"


@dataclass(frozen=True)
class Vocabulary:
    """The lists by their names in the file; what is written there as one string of words is a set here."""

    spelled: frozenset[str]
    spoken: frozenset[str]
    short_words: frozenset[str]
    brands: frozenset[str]
    letters_of: dict[str, str]
    abbreviations: dict[str, str]
    dotless: frozenset[str]
    titles: frozenset[str]
    numbered: dict[str, str]
    saints: frozenset[str]
    regnal: frozenset[str]
    roman_after: frozenset[str]
    versioned: frozenset[str]
    identifier: frozenset[str]
    identifier_joins: frozenset[str]
    phone: frozenset[str]
    numbered_by_pairs: frozenset[str]
    states: dict[str, str]
    unsafe_states: frozenset[str]
    extensions: dict[str, str]
    looks_plain: frozenset[str]
    calendar: dict[str, str]
    starters: frozenset[str]
    function_words: frozenset[str]
    determiners: frozenset[str]
    not_plural: frozenset[str]
    plurals: frozenset[str]
    calendar_short: frozenset[str]
    before_ratio: frozenset[str]
    before_date: frozenset[str]
    before_year: frozenset[str]
    before_count: frozenset[str]
    emergency: frozenset[str]
    dialing: frozenset[str]
    royal_titles: frozenset[str]
    roman_certain: frozenset[str]
    either_or: frozenset[str]
    before_saint: frozenset[str]
    interjections: frozenset[str]
    also_words: frozenset[str]
    after_k: frozenset[str]
    before_lettered: frozenset[str]
    signs: dict[str, str]
    greek: dict[str, str]
    onsets: frozenset[str]
    codas: frozenset[str]
    capital_only: frozenset[str]
    counted: frozenset[str]
    roman_after_lower: frozenset[str]
    after_first: frozenset[str]

    @cached_property
    def special(self) -> frozenset[str]:
        """The words, in lower case, that look plain but may be a short form."""
        short = self.abbreviations.keys() | self.numbered.keys() | self.calendar.keys()
        return frozenset(short) | self.dotless | self.looks_plain


@cache
def vocabulary() -> Vocabulary:
    """The word lists, which are the same for the life of the process."""
    data: dict[str, Any] = json.loads(TABLE.read_text(encoding="utf-8"))
    lists: dict[str, Any] = {key: frozenset(value.split()) if isinstance(value, str) else value for key, value in data.items()}
    return Vocabulary(**lists)
