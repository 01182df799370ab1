"""Mixed text to spoken tokens: English and Chinese stretches, each by its own normaliser, numbers by their context."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from tts_engine.text.language import HAN, LATIN, detect_language
from tts_engine.text.tokens import Token
from tts_engine.types import Language

ENGLISH = re.compile(
    f"(?<![\\w@./:-])[{LATIN}](?:[^{HAN}\u3001-\u301f\uff01-\uff0f\uff1a-\uff1f。\n]{{0,2000}}[{LATIN}\\d.!?)\"'%])?"
)
"""A stretch that begins with a Latin letter and holds no Chinese."""
CLAUSE_WORDS = frozenset({
    "a", "about", "am", "an", "and", "are", "as", "at", "be", "been", "but", "by", "can", "can't", "could", "did",
    "didn't", "do", "does", "doesn't", "don't", "for", "from", "get", "go", "had", "has", "have", "he", "hello",
    "her", "here", "hi", "him", "his", "how", "i", "i'll", "i'm", "i've", "if", "in", "is", "it", "it's", "its",
    "let", "let's", "may", "me", "must", "my", "no", "not", "of", "on", "or", "our", "please", "she", "should",
    "thank", "thanks", "that", "that's", "the", "their", "them", "there", "these", "they", "this", "those", "to",
    "us", "was", "we", "were", "what", "when", "which", "who", "why", "will", "with", "won't", "would", "yes",
    "you", "you're", "your",
})  # fmt: skip
"""Words that make an English stretch a clause, whose numbers are then read in English."""
WORD = re.compile(f"[{LATIN}]+(?:['’][{LATIN}]+)?")
HAN_CHARACTER = re.compile(f"[{HAN}]")
CHINESE = re.compile(f"[{HAN}](?:[{HAN}，。！？；：、“”‘’（）《》…—]*[{HAN}。！？”’》）])?")


def normalize(text: str, language: Language | None = None) -> list[Token]:
    """The spoken tokens of a sentence, in order; spans are offsets in ``text``.

    ``language`` says in which language the sentence is built; None: by the text.
    """
    if (language or _matrix(text)) == "zh":
        return list(_chinese(text))
    return list(_english(text))


def _matrix(text: str) -> Language:
    """The language that a sentence is built in: English if it has an English clause and more words than characters."""
    if detect_language(text) == "en":
        return "en"
    words = [word.replace("’", "'").lower() for word in WORD.findall(text)]
    clause = sum(word in CLAUSE_WORDS for word in words) >= 2
    return "en" if clause and len(words) > len(HAN_CHARACTER.findall(text)) else "zh"


def _chinese(text: str) -> Iterator[Token]:
    """A Chinese sentence: English clauses in it go to the English side, and so do its single English words."""
    from tts_engine.text.normalize_zh import normalize_zh

    place = 0
    for match in ENGLISH.finditer(text):
        if _is_clause(match[0]):
            yield from _with_english_words(normalize_zh(text[place : match.start()], place))
            yield from _read_english(match[0], match.start())
            place = match.end()
    yield from _with_english_words(normalize_zh(text[place:], place))


def _with_english_words(tokens: list[Token]) -> Iterator[Token]:
    """The tokens, with each English word as the English side speaks it (acronyms letter by letter)."""

    for token in tokens:
        if token.language == "zh" or len(token.text) == 1:
            yield token
            continue
        for word in _read_english(token.text, token.start):
            yield replace(word, end=min(word.end, token.end), start=min(word.start, token.end))


def _is_clause(stretch: str) -> bool:
    """Whether an English stretch is a clause, not names: it has three words or more, one of them a function word."""
    words = WORD.findall(stretch)
    return len(words) >= 3 and any(word.replace("’", "'").lower() in CLAUSE_WORDS for word in words)


def _english(text: str) -> Iterator[Token]:
    """An English sentence; Chinese stretches in it go to the Chinese side."""
    from tts_engine.text.normalize_zh import normalize_zh

    place = 0
    for match in CHINESE.finditer(text):
        yield from _read_english(text[place : match.start()], place)
        yield from normalize_zh(match[0], match.start())
        place = match.end()
    yield from _read_english(text[place:], place)


def _read_english(text: str, start: int) -> list[Token]:
    """English text by the English side, which asks the lexicon whether unusual spellings are words."""
    from tts_engine.text.inflection_en import is_word
    from tts_engine.text.normalize_en import normalize_en

    return normalize_en(text, start, is_word=is_word)
