"""The state of one reading: the text, the tokens said so far, and what stands around a place.

A reader is a function ``(scan, at) -> int | None``: it looks at the text from ``at``, says its words and returns where
it stopped, or returns None and has said nothing. Each reader looks a bounded distance ahead and back, or takes what it
has looked at, so a reading takes linear time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Protocol

from tts_engine.text.english.vocabulary import vocabulary
from tts_engine.text.tokens import Token

REACH = 48
"""How many characters of context a reader looks at."""

_CONTEXT = re.compile(r"[A-Za-z][A-Za-z']*|\d+|[^\sA-Za-z]")
_NEXT_WORD = re.compile(r"[ \u00a0]{0,2}([A-Za-z][A-Za-z']*)")
_CLOSERS = " \t\r\n\"'”’)]»*_"


class Reader(Protocol):
    """Reads what begins at ``at``: the end of what was read, or None."""

    def __call__(self, scan: Scan, at: int, /) -> int | None: ...


class Scan:
    """One reading of one text. ``is_word`` tells words of the lexicon, in lower case, where a lexicon is at hand.

    ``glue``: the next word is part of the word before it.
    """

    __slots__ = ("glue", "is_word", "open_quote", "out", "shouting", "text")

    def __init__(self, text: str, is_word: Callable[[str], bool] | None) -> None:
        self.text = text
        self.is_word = is_word
        self.out: list[Token] = []
        self.shouting = is_shouting(text)
        self.open_quote = False
        self.glue = False

    def say(self, words: str | Sequence[str], start: int, end: int) -> None:
        """Say ``words`` for ``text[start:end]``. A single capital is a letter; letters in a row cling together."""
        after_letter = False
        for word in words.split() if isinstance(words, str) else words:
            letter = len(word) == 1 and word.isupper()
            clings = (after_letter and (letter or word[1:] == "'s")) or self.glue
            self.out.append(Token(word, start, end, space=not clings and self._spaced(start), spell=letter))
            after_letter = letter
            self.glue = False

    def word(self, text: str, start: int, end: int) -> None:
        """Say one plain word as it is written."""
        self.out.append(Token(text, start, end, space=not self.glue and self._spaced(start)))
        self.glue = False

    def mark(self, mark: str, start: int, end: int) -> None:
        self.out.append(Token(mark, start, end, "mark", space=start > 0 and self.text[start - 1].isspace()))
        self.glue = False

    def _spaced(self, start: int) -> bool:
        if self.out and self.out[-1].kind == "word":
            return True
        return start > 0 and self.text[start - 1].isspace()

    def before(self, at: int) -> list[str]:
        """The words, in lower case, and signs right before ``at``, the nearest last."""
        low = max(0, at - REACH)
        found = _CONTEXT.findall(self.text[low:at].lower())
        if low and found and self.text[low - 1].isalnum():
            del found[0]
        return found

    def word_before(self, at: int) -> str:
        """The word before ``at`` as written, or "" where a mark or nothing comes before."""
        head = self.text[max(0, at - REACH) : at].rstrip(" \u00a0")
        cut = len(head)
        while cut and (head[cut - 1].isalpha() or head[cut - 1] in "'."):
            cut -= 1
        return head[cut:]

    def word_after(self, at: int) -> str:
        """The word after ``at`` as written, or "" where a mark or nothing follows."""
        match = _NEXT_WORD.match(self.text, at)
        return match[1] if match else ""

    def starts_token(self, at: int) -> bool:
        """Whether a sign at ``at`` can belong to what follows: a blank, a bracket or a mark is before it."""
        return at == 0 or self.text[at - 1].isspace() or self.text[at - 1] in "([{\"'“‘,;:—–/|=<>≤≥≈~"

    def ends_sentence(self, dot: int) -> bool:
        """Whether the dot of an abbreviation is a full stop too: the text ends or a sentence begins there."""
        rest = self.text[dot + 1 : dot + 1 + REACH].lstrip(_CLOSERS)
        if not rest:
            return True
        word = _NEXT_WORD.match(rest)
        return word is not None and rest[0].isupper() and word[1].lower() in vocabulary().starters

    def singular_here(self, start: int, end: int) -> bool:
        """Whether a measure at ``start:end`` stands before its noun ("a 5 km run"), where English has the singular."""
        after = self.word_after(end)
        if not after or not after.islower() or after in vocabulary().function_words or after.endswith(("ly", "'s")):
            return False
        return self.word_before(start).lower() in vocabulary().determiners


def is_shouting(text: str) -> bool:
    """Whether capitals carry no meaning: two or more words of them, one of them long, and nothing in lower case."""
    if not text.isupper():
        return False
    words = re.findall(r"[^\W\d_]{2,}", text)
    return len(words) >= 2 and any(len(word) >= 4 for word in words)


def looks_plural(word: str) -> bool:
    """Whether ``word`` is something that is counted ("people", "seats")."""
    if not word.islower():
        return False
    return word in vocabulary().plurals or (
        len(word) > 3 and word.endswith("s") and not word.endswith("ss") and word not in vocabulary().not_plural
    )
