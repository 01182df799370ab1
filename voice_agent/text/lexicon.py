"""The words that a mood is heard by: sentiment_en.yaml and sentiment_zh.yaml, compiled for one pass over a text.

A text is read as *units*: an English word, one Chinese character, a number, or a mark. An entry of the lexicon is a run
of units; of all entries that begin at a unit the longest wins.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tts_engine.text.language import HAN, is_han
from voice_agent.errors import ConfigError
from voice_agent.prompts import Section

Label = Literal["urgent", "positive", "negative", "apology", "neutral"]

GRADES: dict[Label, tuple[str, ...]] = {
    "urgent": ("strong", "weak", "shout", "hasty", "soon"),
    "positive": ("strong", "weak", "personal"),
    "negative": ("strong", "weak", "personal"),
    "apology": ("strong", "weak", "own"),
}
"""The groups of words of each mood; what they mean is told in sentiment_en.yaml."""

ROLES = (
    *("neutral", "mention", "negators", "intensifiers", "softeners", "contrast", "conditional", "past", "asks"),
    *("commands", "must", "openers", "first_person", "second_person", "third_person"),
)
"""The groups of words that are no mood themselves but change what the words around them mean."""

FINAL_MARKS = frozenset(".!?…。！？\n")
CLAUSE_MARKS = frozenset(",;:—–，；：、()（）")

_UNIT = re.compile(
    rf"[A-Za-zÀ-ɏ]+(?:['’][A-Za-z]+)*|[{HAN}]|\d+(?:[.,:]\d+)*"
    r"|\.(?=[\s\"”’')\]]|$)|[!?…,;:—–，；：、()（）。！？\n\"“”「」『』《》]"
)


@dataclass(frozen=True, slots=True)
class Entry:
    """What one run of units means: a mood in a grade, and the roles it plays for its neighbours."""

    units: tuple[str, ...]
    label: Label | None
    grades: frozenset[str]
    roles: frozenset[str]


@dataclass(frozen=True, slots=True)
class Lexicon:
    """``entries``: by first unit, the longest first. ``compounds``: what makes a name of the word before it."""

    entries: dict[str, list[Entry]]
    compounds: frozenset[tuple[str, ...]]

    def find(self, units: list[str], index: int) -> Entry | None:
        """The longest entry at ``units[index]``."""
        for entry in self.entries.get(units[index], ()):
            length = len(entry.units)
            if length == 1 or tuple(units[index : index + length]) == entry.units:
                return entry
        return None

    def is_compound(self, units: list[str], index: int) -> bool:
        """Whether a word that makes a name of the one before it stands at ``units[index]``."""
        return any(tuple(units[index : index + length]) in self.compounds for length in (1, 2, 3))


def split_units(text: str) -> tuple[list[str], list[int]]:
    """The units of a text, in lower case, and where each begins."""
    units: list[str] = []
    starts: list[int] = []
    for match in _UNIT.finditer(text):
        units.append(match.group().lower().replace("’", "'"))
        starts.append(match.start())
    return units, starts


def read_lexicon(section: Section) -> Lexicon:
    """Compiles a sentiment_*.yaml; the builder for ``prompts.load``."""
    whole = Section(section.values, section.where, (*GRADES, *ROLES, "compounds"))
    labels: dict[tuple[str, ...], tuple[Label, set[str]]] = {}
    roles: dict[tuple[str, ...], set[str]] = {}
    for label, grades in GRADES.items():
        group = whole.section(label, grades)
        for grade in grades:
            for phrase in group.words(grade):
                for units in _forms(phrase):
                    known, known_grades = labels.setdefault(units, (label, set()))
                    if known != label:
                        raise ConfigError(f"{group.at(grade)}: {phrase!r} stands under {known} already; keep one")
                    known_grades.add(grade)
    for role in ROLES:
        for phrase in whole.words(role):
            for units in _forms(phrase):
                roles.setdefault(units, set()).add(role)
    for units in labels.keys() | roles.keys():
        if len(units) > 1 and "commands" in roles.get(units[:1], ()):
            roles.setdefault(units, set()).add("commands")
    entries: dict[str, list[Entry]] = {}
    for units in sorted(labels.keys() | roles.keys(), key=len, reverse=True):
        mood, marks = labels.get(units, (None, set()))
        entry = Entry(units, mood, frozenset(marks), frozenset(roles.get(units, ())))
        entries.setdefault(units[0], []).append(entry)
    return Lexicon(entries, frozenset(units for phrase in whole.words("compounds") for units in _forms(phrase)))


def _forms(phrase: str) -> list[tuple[str, ...]]:
    """The runs of units that an entry stands for: itself, or with ``~`` its forms ("let~ down": lets down, …)."""
    if "~" not in phrase:
        units = tuple(phrase) if all(map(is_han, phrase)) else tuple(split_units(phrase)[0])
        return [units] if units else []
    before, _, after = phrase.partition("~")
    head, _, word = before.rpartition(" ")
    return [units for form in _inflected(word) for units in _forms(f"{head} {form}{after}")]


def _inflected(word: str) -> tuple[str, ...]:
    if word.endswith("e"):
        return word, f"{word}s", f"{word}d", f"{word[:-1]}ing"
    if word.endswith("y") and word[-2:-1] not in "aeiou":
        return word, f"{word[:-1]}ies", f"{word[:-1]}ied", f"{word}ing"
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word, f"{word}es", f"{word}ed", f"{word}ing"
    return word, f"{word}s", f"{word}ed", f"{word}ing"
