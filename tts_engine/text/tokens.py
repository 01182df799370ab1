"""What the front end works on: spoken words and marks, each with the span of text that it stands for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tts_engine.types import Language


@dataclass(frozen=True, slots=True)
class Token:
    """One spoken word, or one punctuation mark.

    ``text`` is the spoken form: no digits or signs are left in a word ("three", "percent", "两"). ``start`` and ``end`` are
    the span in the text that it stands for; several words of one number share its span. ``space`` says that a blank stands
    before it. ``spell`` means: read the letters one by one ("A P I" is one token "API" with ``spell``, or three tokens "A",
    "P", "I" — a normaliser gives the second form). ``phonemes`` fixes the pronunciation (user lexicon).
    ``source`` is the text as written where a reader needs it to decide (case, dots); empty when equal to ``text``.
    """

    text: str
    start: int
    end: int
    kind: Literal["word", "mark"] = "word"
    language: Language = "en"
    space: bool = True
    spell: bool = False
    phonemes: str | None = None
    source: str = ""


@dataclass(frozen=True, slots=True)
class Pronounced:
    """A token with its phonemes, as symbols of the voice's table. ``space``: a blank symbol stands before it.

    ``phonemes`` is empty where the token is silent or its sound is already part of a neighbour (the 儿 of 花儿).
    """

    token: Token
    phonemes: str
    space: bool
