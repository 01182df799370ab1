"""How far phonemes are from a reference: edits between symbols, summed over sentences."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.edits import edits
from tts_engine.text.tokens import Pronounced

STRESS = str.maketrans("", "", "ˈˌ")
STRESS_AND_BLANKS = str.maketrans("", "", "ˈˌ ")


@dataclass(frozen=True, slots=True)
class Reference:
    """A sentence and the phonemes that it should have."""

    language: str
    text: str
    phonemes: str


@dataclass(frozen=True, slots=True)
class Scored:
    """A sentence, what it got, and the edits from there to the reference."""

    reference: Reference
    phonemes: str
    edits: int


def read_references(path: Path) -> list[Reference]:
    """The sentences of a JSON-lines file with ``lang``, ``text`` and ``phonemes``."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [Reference(row["lang"], row["text"], row["phonemes"]) for row in rows]


def joined(spoken: Iterable[Pronounced]) -> str:
    """The phonemes of a sentence as the voice reads them, blanks included."""
    return "".join((" " if item.space else "") + item.phonemes for item in spoken).strip()


def score(references: Iterable[Reference], pronounce: Callable[[str], str]) -> list[Scored]:
    """Each reference beside what ``pronounce`` makes of its text."""
    scored = []
    for reference in references:
        got = pronounce(reference.text)
        scored.append(Scored(reference, got, edits(got, reference.phonemes)))
    return scored


def symbol_error_rate(scored: Iterable[Scored], without: dict[int, int | None] | None = None) -> float:
    """Edits over reference symbols; ``without`` (a translation table) takes symbols out of both sides first."""
    wrong = symbols = 0
    for item in scored:
        if without is None:
            wrong += item.edits
            symbols += len(item.reference.phonemes)
        else:
            expected = item.reference.phonemes.translate(without)
            wrong += edits(item.phonemes.translate(without), expected)
            symbols += len(expected)
    return wrong / max(symbols, 1)
