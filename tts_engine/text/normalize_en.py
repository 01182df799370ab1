"""English text to the words that are spoken, each with the span of text that it stands for.

One pass over the text: a fast path takes plain words and marks, anything else goes to the readers for its first
character (``tts_engine.text.english``). What nobody reads is silent.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from types import ModuleType

from tts_engine.text.english.plain import plain
from tts_engine.text.english.scan import Scan
from tts_engine.text.english.vocabulary import vocabulary
from tts_engine.text.tokens import Token

__all__ = ["normalize_en"]

_PLAIN_WORD = re.compile(
    r"(?:(?=[A-Za-z][bcdfghj-np-tv-xz]{0,5}[aeiouy]|[AEIOUY])[A-Za-z][a-z]+|a|I(?='))(?:'[a-z]+)*"
    r"(?=[ \n]|[,.!?;:…”)](?:[ \n]|$)|$)"
)
_PLAIN_MARKS = frozenset(",.!?;")


def normalize_en(text: str, start: int = 0, is_word: Callable[[str], bool] | None = None) -> list[Token]:
    """The spoken words and marks of an English ``text`` (a sentence, or a stretch of one), in order.

    ``start`` is added to all spans. ``is_word`` tells whether a lexicon knows a word (in lower case); it decides
    whether unknown capitals are a word or letters, and whether mixed case is a name. Any string is taken: what has no
    reading is silent, letters of other scripts are words of their own. Letters to be spelled are tokens of one capital
    with ``spell``, which cling together (``space`` False); parts of a hyphenated word cling in the same way. Quotes and
    brackets become “ ” ( ), pauses — and …. Time and memory are linear in the length of ``text``.
    """
    plain_text, spans = plain(text)
    scan = Scan(plain_text, is_word)
    _read(scan)
    if spans is not None:
        return [replace(token, start=spans[token.start][0] + start, end=spans[token.end - 1][1] + start) for token in scan.out]
    if start:
        return [replace(token, start=token.start + start, end=token.end + start) for token in scan.out]
    return scan.out


def _read(scan: Scan) -> None:
    text, special = scan.text, vocabulary().special
    at, length = 0, len(text)
    while at < length:
        char = text[at]
        if char == " ":
            at += 1
        elif char.isalpha():
            match = _PLAIN_WORD.match(text, at)
            if match is not None and match[0].lower() not in special:
                scan.word(match[0], at, match.end())
                at = match.end()
            elif char == "I" and text.startswith(" ", at + 1) and not (scan.out and scan.out[-1].text[0].isupper()):
                scan.word(char, at, at + 1)
                at += 1
            else:
                at = _readers().read_letters(scan, at)
        elif "0" <= char <= "9":
            at = _readers().read_digits(scan, at)
        elif char in _PLAIN_MARKS and (at + 1 == length or text[at + 1] == " "):
            scan.mark(char, at, at + 1)
            at += 1
        else:
            at = _readers().read_sign(scan, at)


@cache
def _readers() -> ModuleType:
    """The readers, whose patterns are compiled at the first token that needs them."""
    from tts_engine.text.english import readers

    return readers
