"""The symbols of the voice, and what English needs to know of them: vowels, consonants and moving a word's stress."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

PRIMARY: Final = "ˈ"
SECONDARY: Final = "ˌ"
VOWELS: Final = frozenset("AIOQWYaiuæɑɒɔəɛɜɪʊʌᵻɐᵊ")
"""English vowel symbols; ``A I O Q W Y`` are diphthongs, ``ᵊ`` is the vowel of a syllabic consonant."""
CONSONANTS: Final = frozenset("bdfhjklmnpstvwzðŋɡɹɾʃʒʤʧθTʔ")

_TABLE = Path(__file__).parent.parent / "voices" / "embedded" / "phonemes.json"
_NEVER_STRESSED = frozenset("ɐᵊ")
_LONG = frozenset("AIOQWYʤʧ")


@cache
def symbol_ids() -> MappingProxyType[str, int]:
    """Symbol to id in the voice's embedding, read once from the voice's table. Id 0 opens and closes a sentence."""
    table: dict[str, int] = json.loads(_TABLE.read_text(encoding="utf-8"))
    return MappingProxyType(table)


def weight(phonemes: str) -> int:
    """How heavy a part of a compound is: its symbols, diphthongs and affricates counted twice."""
    return sum(2 if symbol in _LONG else 1 for symbol in phonemes)


def demoted(phonemes: str) -> str:
    """Primary stress becomes secondary; what was secondary loses its mark."""
    if PRIMARY not in phonemes:
        return phonemes
    return phonemes.replace(SECONDARY, "").replace(PRIMARY, SECONDARY)


def with_secondary(phonemes: str) -> str:
    """At least secondary stress: a word that has none gets it on its first vowel."""
    if PRIMARY in phonemes or SECONDARY in phonemes:
        return phonemes
    return _marked(phonemes, SECONDARY)


def with_primary(phonemes: str) -> str:
    """At least primary stress: secondary is raised; a word that has no stress gets it on its first vowel."""
    if PRIMARY in phonemes:
        return phonemes
    if SECONDARY in phonemes:
        return phonemes.replace(SECONDARY, PRIMARY)
    return _marked(phonemes, PRIMARY)


def _marked(phonemes: str, mark: str) -> str:
    for index, symbol in enumerate(phonemes):
        if symbol in VOWELS and symbol not in _NEVER_STRESSED:
            return phonemes[:index] + mark + phonemes[index:]
    return phonemes
