"""Words by their letters: what is spelled, what stays a word, what falls into parts (acronyms, camel case, brands)."""

from __future__ import annotations

import re

from tts_engine.text.english import numbers
from tts_engine.text.english.plain import RAISED
from tts_engine.text.english.scan import Scan
from tts_engine.text.english.vocabulary import vocabulary

_CAPS = re.compile(r"([A-Z]{2,})('?s|'S)?")
_HUMPS = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[^A-Za-z]+")
_NAME_PREFIX = re.compile(r"(?:Mc|Mac|O'|D'|L'|De|Di|Du|La|Le|Van|Von|Fitz|St|Al|El|Ben)[A-Z][a-z]+(?:'s)?")
_LOWER_VOWEL = re.compile("[AEIOUYaeiouy]")
_VOWELS = re.compile("[AEIOUY]+")


def say_word(scan: Scan, word: str, start: int, end: int) -> None:
    """Say a run of letters (and apostrophes) that has no digit: as it stands, by letters, or in its parts."""
    if word.islower() or (word[1:].islower() and word[:1].isupper()):
        if _is_consonants(scan, word):
            scan.say(list(word.upper()), start, end)
        else:
            scan.word(word, start, end)
        return
    if len(word) == 1:
        article = word == "I" or (word == "A" and (scan.shouting or not _has_word_before(scan, start)))
        if article or not word.isascii():
            scan.word(word, start, end)
        else:
            scan.say([word], start, end)
        return
    listed = vocabulary().letters_of.get(word)
    if listed is not None:
        scan.say(listed, start, end)
        return
    match = _CAPS.fullmatch(word)
    if match:
        _say_caps(scan, match[1], "'s" if match[2] else "", start, end)
    elif not word.isascii() or _keeps_case(scan, word):
        scan.word(word, start, end)
    else:
        _say_humps(scan, word, start, end)


def _is_consonants(scan: Scan, word: str) -> bool:
    """Whether a word in lower case is a short form such as "html": no vowel, and not known as a word."""
    if not (1 < len(word) <= 5 and word.isascii() and word.isalpha()) or _LOWER_VOWEL.search(word):
        return False
    return word.lower() not in vocabulary().interjections and not (scan.is_word is not None and scan.is_word(word.lower()))


def _has_word_before(scan: Scan, start: int) -> bool:
    return bool(scan.out) and scan.out[-1].kind == "word" and scan.out[-1].end <= start


def _keeps_case(scan: Scan, word: str) -> bool:
    """Whether mixed case is just how the name is written."""
    stem = word.removesuffix("'s")
    if stem in vocabulary().brands or _NAME_PREFIX.fullmatch(word):
        return True
    if "'" in word and word.isupper():
        return True
    return scan.is_word is not None and len(stem) > 3 and scan.is_word(stem.lower())


def _say_humps(scan: Scan, word: str, start: int, end: int) -> None:
    at = start
    for part in _HUMPS.findall(word.removesuffix("'s")):
        after = at + len(part)
        tail = "'s" if after + 2 == end and word.endswith("'s") else ""
        after += len(tail)
        if len(part) > 1 and part.isupper():
            _say_caps(scan, part, tail, at, after)
        elif not part[0].isalpha():
            pass
        elif len(part) == 1:
            scan.say([part.upper() + tail], at, after)
        else:
            scan.word(part + tail, at, after)
        at = after


def _say_caps(scan: Scan, caps: str, tail: str, start: int, end: int) -> None:
    letters = vocabulary().letters_of.get(caps)
    if letters is not None and not tail:
        scan.say(letters, start, end)
    elif is_spelled(scan, caps):
        words = list(caps)
        words[-1] += tail
        scan.say(words, start, end)
    else:
        scan.word(caps + tail, start, end)


def is_spelled(scan: Scan, caps: str) -> bool:
    """Whether a run of two or more capitals is read letter by letter."""
    table = vocabulary()
    if caps in table.spoken:
        return False
    if scan.shouting:
        common = caps in table.short_words or (scan.is_word is not None and scan.is_word(caps.lower()))
        if common or caps in ("US", "IT", "AM", "WHO", "HE", "ME", "ON"):
            return False
    if caps in table.spelled:
        return True
    if caps in table.short_words:
        return False
    if scan.is_word is not None and len(caps) >= 4 and scan.is_word(caps.lower()):
        return False
    if len(caps) <= 3:
        return not (scan.shouting and is_pronounceable(caps))
    return not is_pronounceable(caps)


def is_pronounceable(caps: str) -> bool:
    """Whether capitals of an unknown word can be said as one: vowels, and clusters of consonants that English has."""
    if len(caps) > 24 or not _VOWELS.search(caps):
        return False
    first, *middle, last = _VOWELS.split(caps)
    return (
        (not first or first in vocabulary().onsets)
        and (not last or last in vocabulary().codas)
        and all(_is_medial(cluster) for cluster in middle)
    )


def _is_medial(cluster: str) -> bool:
    codas, onsets = vocabulary().codas | {""}, vocabulary().onsets | {""}
    return any(cluster[:cut] in codas and cluster[cut:] in onsets for cut in range(min(len(cluster), 5) + 1))


_PIECES = re.compile(r"[A-Za-z]+(?:'[a-z]+)?|\d+|[^\W\d_" + RAISED + "]+|.", re.DOTALL)
_SIGN_NAMES = {
    ".": "dot", "/": "slash", ":": "colon", "?": "question mark", "=": "equals", "&": "and", "-": "dash",
    "_": "underscore", "#": "hash", "%": "percent", "~": "tilde", "+": "plus", "@": "at", "*": "star",
    "\\": "backslash", "$": "dollar", "!": "bang",
}  # fmt: skip


def say_address(scan: Scan, start: int, end: int) -> None:
    """Read ``text[start:end]`` as one dictates an address: every sign by its name, short forms by letters."""
    for match in _PIECES.finditer(scan.text, start, end):
        piece, low, high = match[0], match.start(), match.end()
        if piece.isdecimal():
            scan.say(address_number(piece), low, high)
        elif piece in _SIGN_NAMES:
            scan.say(_SIGN_NAMES[piece], low, high)
        elif piece[0].isalpha():
            say_short_form(scan, piece, low, high)


def say_short_form(scan: Scan, piece: str, start: int, end: int) -> None:
    """A run of letters inside an address or a file name: known extensions and words without a vowel are spelled."""
    listed = vocabulary().extensions.get(piece.lower())
    if listed is not None:
        scan.say(listed, start, end)
    else:
        say_word(scan, piece, start, end)


def address_number(figures: str) -> list[str]:
    """Figures in an address: up to two as a number, years in pairs, others one by one."""
    if len(figures) == 4 and figures[:2] in ("19", "20"):
        return numbers.year(int(figures))
    return numbers.whole(figures) if len(figures) <= 2 else numbers.digits(figures)
