"""The word lists that the heteronym rules look at, from data: function words by kind, cues of senses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

_TABLE = Path(__file__).parent / "data" / "heteronyms_en.json"


@dataclass(frozen=True, slots=True)
class Sense:
    """The rarer sense of a word: words that show it right before it, right after it, or near it."""

    before: frozenset[str]
    after: frozenset[str]
    around: frozenset[str]


@dataclass(frozen=True, slots=True)
class WordLists:
    """The word lists, as the data file has them, and the three that are made of others."""

    determiners: frozenset[str]
    numbers: frozenset[str]
    modals: frozenset[str]
    do: frozenset[str]
    be: frozenset[str]
    have: frozenset[str]
    plural_subjects: frozenset[str]
    singular_subjects: frozenset[str]
    objects: frozenset[str]
    prepositions: frozenset[str]
    particles: frozenset[str]
    skipped: frozenset[str]
    """Adverbs that stand between a word and what decides about it."""
    conjunctions: frozenset[str]
    degrees: frozenset[str]
    adjectives: frozenset[str]
    adjectives_by_default: frozenset[str]
    adjective_endings: tuple[str, ...]
    broadcasts: frozenset[str]
    """Before these, "live" is the opposite of recorded, or of dead; ``broadcasting`` stand before it."""
    broadcasting: frozenset[str]
    small_things: tuple[str, ...]
    """Endings of what can be minute."""
    nouns_before_to: frozenset[str]
    """After these, "to" is a preposition: a noun follows."""
    past_cues: frozenset[str]
    clause_verbs: frozenset[str]
    """After these, "that" joins a clause."""
    telling_verbs: frozenset[str]
    pointing_verbs: frozenset[str]
    pointed_at: frozenset[str]
    finite: frozenset[str]
    subject_starts: frozenset[str]
    question_words: frozenset[str]
    along: frozenset[str]
    reporting: frozenset[str]
    pauses: frozenset[str]
    weak_followers: frozenset[str]
    senses: Mapping[str, Sense]
    verb_followers: frozenset[str]
    sure_verb_followers: frozenset[str]
    after_noun: frozenset[str]


@cache
def lists() -> WordLists:
    """The word lists, read at the first use."""
    raw: dict[str, Any] = json.loads(_TABLE.read_text(encoding="utf-8"))
    senses = {
        word: Sense(**{place: frozenset(cues.split()) for place, cues in sense.items()})
        for word, sense in raw.pop("senses").items()
    }
    tuples = {field.name for field in fields(WordLists) if field.type == "tuple[str, ...]"}
    given: dict[str, Any] = {
        name: tuple(text.split()) if name in tuples else frozenset(text.split()) for name, text in raw.items()
    }
    followers = given["determiners"] | given["objects"] | given["particles"]
    closed = ("pauses", "prepositions", "finite", "modals", "conjunctions", "subject_starts")
    return WordLists(
        **given,
        senses=senses,
        verb_followers=followers,
        sure_verb_followers=followers - given["weak_followers"],
        after_noun=frozenset().union(*(given[name] for name in closed)) | followers | {"to", "that", "which"},
    )
