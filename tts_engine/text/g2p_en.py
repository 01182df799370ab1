"""English pronunciation: spoken words and marks to the voice's symbols, with each word's sound chosen in its sentence.

A word is looked up, then taken apart (endings, prefixes, compounds, hyphens, capitals inside), then spelled where it
cannot be a word, and else given to the letter-to-sound model. Which words change their sound in a sentence, and how,
follows misaki's US English (Apache-2.0), which made the phonemes that the voice learnt from.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cached_property

from tts_engine.text.heteronyms import is_pointed_at, use_in
from tts_engine.text.inflection_en import derive, each_form, inflected, plural
from tts_engine.text.letters_en import LetterToSound
from tts_engine.text.lexicon_en import LONGEST_WORD, Lexicon, Word, lexicon
from tts_engine.text.phonemes import (
    CONSONANTS,
    PRIMARY,
    SECONDARY,
    VOWELS,
    demoted,
    symbol_ids,
    weight,
    with_primary,
    with_secondary,
)
from tts_engine.text.tokens import Pronounced, Token
from tts_engine.text.user_lexicon import UserLexicon

LONGEST_SPELLED = 48
"""A word that no rule can read is spelled, at most this many letters of it; the rest is silent."""

_CACHED_WORDS = 20_000
_PAUSES = frozenset(";:,.!?—…")
_LETTER_NAME = "·"
"""Stands for a spelled letter where neighbours are looked at, so that the A of an acronym is no article."""
_FUNCTION_CAPITALS = frozenset(
    "ACT|ADD|AH|AM|AS|BE|ER|ETC|HE|HI|HM|HMM|IN|IS|IT|LA|ME|MM|OH|OR|RE|SAT|SI|WHO".split("|")  # noqa: SIM905
)
"""In capitals these are words, unless a determiner makes them a name."""
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[A-Z]")
_NO_WORD = re.compile(r"[^A-Za-z'\-]+")
_UNACCENTED = str.maketrans(
    {
        "ß": "ss",
        "æ": "ae",
        "œ": "oe",
        "ø": "o",
        "ł": "l",
        "đ": "d",
        "ð": "th",
        "þ": "th",
        "ı": "i",
        "Æ": "Ae",
        "Œ": "Oe",
    }
    | {"Ø": "O", "Ł": "L", "Đ": "D", "Þ": "Th", "’": "'", "‘": "'", "ʼ": "'", "‐": "-", "‑": "-"}
)
_VOWEL_LETTERS = frozenset("aeiouy")


class EnglishG2P:
    """Pronounces English. The lexicon is mapped with the first word; sounds that were found are kept, up to a bound."""

    def __init__(self, user: UserLexicon | None = None) -> None:
        self._user = user
        self._words: dict[str, Word] = {}

    def pronounce(self, tokens: Sequence[Token]) -> list[Pronounced]:
        """One Pronounced for each token, in order (with a user lexicon: for each token that it leaves).

        A mark that is a symbol of the voice gives that symbol; other marks and words of other scripts are silent.
        """
        if self._user is not None:
            tokens = self._user.apply(tokens)
        return _Sentence(self, tokens).pronounce()

    def word(self, text: str) -> Word:
        """The sound of one word by itself, with the sounds of its other uses; an empty sound if it cannot be spoken."""
        known = self._words.get(text)
        if known is None:
            if len(self._words) >= _CACHED_WORDS:
                self._words.clear()
            known = self._read(text)
            if len(text) <= LONGEST_WORD:
                self._words[text] = known
        return known

    def find(self, word: str) -> Word | None:
        """The lexicon's entry, whichever case its first letter has there."""
        found = self._lexicon.find(word)
        if found is None and word:
            first = word[0]
            found = self._lexicon.find((first.upper() if first.islower() else first.lower()) + word[1:])
        return found

    def spell(self, letters: str) -> str:
        """Letter by letter, the last one with the main stress: API ˌApˌiˈI."""
        return "".join(self.spelled(letters[:LONGEST_SPELLED]))

    def spelled(self, letters: Sequence[str]) -> list[str]:
        """The names of the letters of one acronym."""
        names = [demoted(self._letter(letter)) for letter in letters]
        for index in range(len(names) - 1, -1, -1):
            if SECONDARY in names[index]:
                names[index] = names[index].replace(SECONDARY, PRIMARY)
                break
        return names

    @cached_property
    def _lexicon(self) -> Lexicon:
        return lexicon()

    @cached_property
    def _letters(self) -> LetterToSound:
        return LetterToSound()

    def _letter(self, letter: str) -> str:
        found = self._lexicon.find(letter.upper()) if "a" <= letter.lower() <= "z" else None
        return found.default if found is not None else ""

    def _read(self, text: str) -> Word:
        plain = text[: 4 * LONGEST_WORD].translate(_UNACCENTED)
        accented = not plain.isascii()
        if accented:
            plain = unicodedata.normalize("NFKD", plain)
        plain = _NO_WORD.sub("", plain).strip("-")
        if not plain.strip("'"):
            return Word("")
        word = self._known(plain) or self._built(plain)
        if accented and "A" in word.forms:
            return Word(word.forms["A"])
        if plain == plain.lower():
            return word
        return each_form(word, with_primary if plain == plain.upper() else with_secondary)

    def _known(self, word: str) -> Word | None:
        """From the lexicon, as written or in lower case, directly or with an ending."""
        found = self.find(word) or self._inflected_acronym(word)
        if found is not None or word == word.lower():
            return found or inflected(word, self.find)
        if word == word.upper() or word[1:] == word[1:].lower():
            lower = word.lower()
            return self.find(lower) or inflected(lower, self.find)
        return None

    def _inflected_acronym(self, word: str) -> Word | None:
        """GPUs, API's."""
        stem = word.removesuffix("s").removesuffix("'")
        if stem == word or len(stem) < 2 or not (stem.isalpha() and stem.isupper()):
            return None
        found = self._lexicon.find(stem)
        if found is None or "S" in found.forms:
            return None if self.find(stem.lower()) and word.isupper() else Word(plural(self.spell(stem)))
        return each_form(found, plural)

    def _built(self, word: str) -> Word:
        """From the parts of a word that the lexicon does not have, or from its letters."""
        if "-" in word or (word != word.upper() and word[1:] != word[1:].lower()):
            parts = [part for piece in re.split(r"['\-]+", word) for part in _PART.findall(piece)]
            if len(parts) > 1:
                sounds = [self.word(part).default for part in parts]
                return Word("".join(compound_stress(parts, sounds) if "-" in word else name_stress(parts, sounds)))
        if _is_unpronounceable(word):
            return Word(self.spell(word.replace("'", "")))
        lower = word.lower()
        derived = derive(lower, self.find)
        if derived is not None:
            return derived
        letters = lower.replace("'", "")
        return Word(self._letters.pronounce(letters) if len(letters) <= LONGEST_WORD else self.spell(letters))


class _Sentence:
    """The tokens of one sentence while they are pronounced, from the last to the first: what follows decides."""

    def __init__(self, g2p: EnglishG2P, tokens: Sequence[Token]) -> None:
        self._g2p = g2p
        self._tokens = tokens
        self._sounds: list[str] = [""] * len(tokens)
        self._joined: list[bool] = [False] * len(tokens)
        self._vowel_follows: bool | None = None  # None: a pause follows

    def pronounce(self) -> list[Pronounced]:
        end = len(self._tokens)
        while end:
            start = self._start_of_group(end - 1)
            self._say_group(start, end)
            end = start
        return [
            Pronounced(token, sound, token.space and not joined)
            for token, sound, joined in zip(self._tokens, self._sounds, self._joined, strict=True)
        ]

    @cached_property
    def _lower(self) -> list[str]:
        return [_LETTER_NAME if token.spell else token.text.lower() for token in self._tokens]

    @cached_property
    def _shouting(self) -> bool:
        """The sentence is written in capitals, so capitals say nothing about a word."""
        words = [token.text for token in self._tokens if token.kind == "word" and len(token.text) > 1]
        return len(words) > 1 and 2 * sum(word.isupper() for word in words) > len(words)

    def _start_of_group(self, last: int) -> int:
        """Where the group of ``last`` begins: letters of one acronym, or parts of one written word."""
        tokens, start = self._tokens, last
        if tokens[last].kind == "mark":
            return last
        while start and _are_joined(tokens[start - 1], tokens[start]):
            start -= 1
        return start

    def _say_group(self, start: int, end: int) -> None:
        tokens, sounds = self._tokens, self._sounds
        if end - start == 1:
            sounds[start] = self._say_one(start)
            self._note(sounds[start])
            return
        for index in range(start + 1, end):
            self._joined[index] = True
        parts = [token.text for token in tokens[start:end]]
        if all(map(_is_letter, tokens[start:end])):
            sounds[start:end] = self._g2p.spelled([part.removesuffix("'s") for part in parts])
            if parts[-1].endswith("'s"):
                sounds[end - 1] = plural(sounds[end - 1])
        elif (whole := self._written_whole(parts, hyphens=tokens[start].end < tokens[start + 1].start)) is not None:
            sounds[start] = whole
        else:
            for index in reversed(range(start, end)):
                sounds[index] = self._say_one(index)
                self._note(sounds[index])
            sounds[start:end] = compound_stress(parts, sounds[start:end])
        self._note("".join(sounds[start:end]))

    def _written_whole(self, parts: list[str], *, hyphens: bool) -> str | None:
        """The lexicon's sound of a word that came in parts: merry-go-round, JavaScript."""
        if sum(map(len, parts)) + len(parts) > LONGEST_WORD:
            return None
        found = (
            self._g2p.find("-".join(parts))
            if hyphens
            else self._g2p.find("".join(parts)) or self._g2p.find("".join(parts).lower())
        )
        return found.default if found is not None else None

    def _note(self, sound: str) -> None:
        for symbol in sound:
            if symbol in VOWELS and symbol not in "ɐᵊ":
                self._vowel_follows = True
                return
            if symbol in CONSONANTS:
                self._vowel_follows = False
                return
            if symbol in _PAUSES:
                self._vowel_follows = None
                return

    def _say_one(self, index: int) -> str:
        token = self._tokens[index]
        if token.kind == "mark":
            return token.text if token.text in symbol_ids() else ""
        if token.phonemes is not None:
            return token.phonemes
        if token.spell:
            return self._g2p.spell(token.text)
        special = self._function_word(token.text)
        if special:
            return special
        word = self._g2p.word(token.text)
        if not word.forms:
            return word.default
        return self._in_context(index, token.text, word)

    def _function_word(self, text: str) -> str:
        """Words whose vowel or stress depends on what follows."""
        if len(text) > 3:
            return ""
        lower = text.lower()
        follows = self._vowel_follows
        if lower == "the":
            return "ði" if follows else "ðə"
        if lower == "a":
            return "ˈA" if follows is None else "ɐ"
        if lower == "to" and follows is not None:
            return "tʊ" if follows else "tə"
        if lower == "in":
            return "ˈɪn" if follows is None else "ɪn"
        if lower == "an" and not (text == "AN" and self._shouting):
            return "ɐn"
        if text == "am" and follows is not None:
            return "ɐm"
        if text in ("I", "i"):
            return "ˌI"
        return ""

    def _in_context(self, index: int, text: str, word: Word) -> str:
        forms = word.forms
        if "S" in forms and text.isupper() and self._is_acronym(index, text):
            return self._g2p.spell(text)
        if "F" in forms and self._vowel_follows is None:
            return forms["F"]
        use = use_in(self._lower, index, forms)
        return forms[use] if use else word.default

    def _is_acronym(self, index: int, text: str) -> bool:
        if self._shouting:
            return False
        return text not in _FUNCTION_CAPITALS or is_pointed_at(self._lower, index)


def compound_stress(parts: Sequence[str], sounds: list[str]) -> list[str]:
    """The sounds of one compound: where more than half carry main stress, the lightest half loses it."""
    spoken = [index for index, sound in enumerate(sounds) if sound]
    stressed = sum(PRIMARY in sounds[index] for index in spoken)
    if len(spoken) == 2 and len(parts[spoken[0]]) == 1:
        weak = {spoken[1]}
    elif len(spoken) < 2 or stressed <= (len(spoken) + 1) // 2:
        return sounds
    else:
        lightest = sorted(spoken, key=lambda index: (PRIMARY in sounds[index], weight(sounds[index]), index))
        weak = set(lightest[: len(spoken) // 2])
    return [demoted(sound) if index in weak else sound for index, sound in enumerate(sounds)]


def name_stress(parts: Sequence[str], sounds: list[str]) -> list[str]:
    """The parts of a name in camel case: the last run of capitals carries the stress (OpenSSL), else the first part."""
    capitals = [index for index, part in enumerate(parts) if len(part) > 1 and part.isupper()]
    main = capitals[-1] if capitals else 0
    return [with_primary(sound) if index == main else demoted(sound) for index, sound in enumerate(sounds)]


def _is_letter(token: Token) -> bool:
    """A capital by itself, or the last one of an acronym with 's."""
    text = token.text.removesuffix("'s")
    return token.kind == "word" and len(text) == 1 and "A" <= text <= "Z" and token.phonemes is None


def _are_joined(first: Token, second: Token) -> bool:
    """Whether two tokens are said as one word: letters of an acronym, no blank between, parts of a written word."""
    if first.kind == "mark" or second.kind == "mark":
        return False
    if not second.space:
        return True
    if _is_letter(first) and _is_letter(second):
        return first.end in (second.start, second.end)
    return first.end == second.start and _is_verbatim(first) and _is_verbatim(second)


def _is_verbatim(token: Token) -> bool:
    return token.end - token.start == len(token.text)


def _is_unpronounceable(word: str) -> bool:
    """Letters that can only be spelled: without a vowel, or capitals that do not begin like a word."""
    lower = word.lower()
    vowels = [index for index, letter in enumerate(lower) if letter in _VOWEL_LETTERS]
    if not vowels:
        return True
    if word != word.upper():
        return False
    return len(word) < 5 or vowels[0] > 2 or 3 * len(vowels) < len(word)
