"""The user's own pronunciations: words with their sound, from YAML, put into tokens before either language's rules.

::

    en:
      PyTorch: /pˈItˌɔɹʧ/              # the voice's symbols; common IPA is understood as well
      Nguyen: {ipa: "wɪn"}
      Siobhan: {say: "shivawn"}        # said like these English words
      Saint John's: {say: "sin jins"}
    zh:
      重庆: {say: "chong2 qing4"}       # pinyin with tone digits, one syllable a character
      单于: {say: "馋于"}               # characters of the same sound

A key matches what is spoken, after numbers and signs have become words. A key without a capital matches in any case;
one with a capital only as written. ``API`` also matches its letters one by one. An English key also matches with
``'s``. Longer keys win. Phonemes of an entry are final; a respelling is read like other text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tts_engine.errors import InputError
from tts_engine.text.inflection_en import plural
from tts_engine.text.phonemes import symbol_ids
from tts_engine.text.tokens import Token
from tts_engine.types import Language

LONGEST_KEY_WORDS = 16
_MARKS = frozenset(';:,.!?—…"()“”')
_IPA = (
    ("t͡ʃ", "ʧ"), ("d͡ʒ", "ʤ"), ("tʃ", "ʧ"), ("dʒ", "ʤ"), ("eɪ", "A"), ("aɪ", "I"), ("oʊ", "O"), ("əʊ", "O"), ("aʊ", "W"),
    ("ɔɪ", "Y"), ("ɝ", "ɜɹ"), ("ɚ", "əɹ"), ("ɾ", "T"), ("r", "ɹ"), ("g", "ɡ"), ("ː", ""), (".", ""), ("'", "ˈ"),
    ("l̩", "ᵊl"), ("n̩", "ᵊn"),
)  # fmt: skip
_PART = re.compile(r"[^\s\-]+")
_SYLLABLE = re.compile(r"[a-z]+[1-5]")
_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")
_FORM = '"/phonemes/", {ipa: "phonemes"} or {say: "respelling"}'


@dataclass(frozen=True, slots=True)
class _Entry:
    """One key: its parts, and what it gives: fixed phonemes, or words (English) or characters (Chinese) to say."""

    parts: tuple[str, ...]
    any_case: bool
    phonemes: str = ""
    words: tuple[str, ...] = ()

    def matches(self, parts: Sequence[str]) -> bool:
        return tuple(part.lower() for part in parts) == self.parts if self.any_case else tuple(parts) == self.parts


class UserLexicon:
    """Entries by their first part; :meth:`apply` puts them into a sentence's tokens."""

    def __init__(self, entries: Mapping[Language, Mapping[str, str | Mapping[str, str]]], source: str = "lexicon") -> None:
        """``entries``: language, then key, then sound, as in the file. ``source`` names them in errors."""
        self._by_first: dict[tuple[Language, str], list[_Entry]] = {}
        _check(isinstance(entries, Mapping), source, "", "holds no mapping: write `en:` or `zh:` and the words below it")
        for language, words in entries.items():
            _check(language in ("en", "zh"), source, str(language), "is no language of a lexicon: use `en` or `zh`")
            _check(isinstance(words or {}, Mapping), source, language, f"must map words to {_FORM}")
            for key, value in (words or {}).items():
                where = f"{language}: {key}"
                _check(isinstance(key, str) and key.strip() != "", source, where, "is no text: put the word in quotes")
                self._add(language, key.strip(), value, source, where)
        for found in self._by_first.values():
            found.sort(key=lambda entry: -len(entry.parts))

    @classmethod
    def load(cls, path: str | Path) -> UserLexicon:
        """The lexicon of a YAML file. Raises InputError that names the file and the key."""
        import yaml

        try:
            raw: Any = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror}); give the path of a lexicon in YAML") from error
        except (UnicodeDecodeError, yaml.YAMLError) as error:
            raise InputError(f"{path}: is no YAML in UTF-8: {error}") from error
        return cls({} if raw is None else raw, str(path))

    def apply(self, tokens: Sequence[Token]) -> list[Token]:
        """The tokens with entries put in; what stands for others has the span of all of them."""
        if not self._by_first:
            return list(tokens)
        out: list[Token] = []
        index = 0
        while index < len(tokens):
            found = self._match(tokens, index)
            if found is None:
                out.append(tokens[index])
                index += 1
            else:
                entry, end, possessive = found
                out.extend(_spoken(entry, tokens[index:end], possessive))
                index = end
        return out

    def _match(self, tokens: Sequence[Token], index: int) -> tuple[_Entry, int, bool] | None:
        first = tokens[index]
        if first.kind != "word" or first.phonemes is not None:
            return None
        head = first.text if first.language == "zh" else next(iter(_parts(first.text)), "")
        entries: list[_Entry] = []
        for name in {head.lower(), head.lower().removesuffix("'s")}:
            entries += self._by_first.get((first.language, name), ())
        for entry in sorted(entries, key=lambda entry: -len(entry.parts)):
            found = _reach(entry, tokens, index)
            if found is not None:
                return entry, *found
        return None

    def _add(self, language: Language, key: str, value: Any, source: str, where: str) -> None:
        phonemes, say = _sound(value, source, where)
        if language == "zh":
            _check(
                _HAN.fullmatch(key) is not None,
                source,
                where,
                "must be Chinese characters; other words belong under `en`",
            )
        parts = tuple(key) if language == "zh" else tuple(_parts(key))
        _check(0 < len(parts) <= LONGEST_KEY_WORDS, source, where, f"has no word, or more than {LONGEST_KEY_WORDS}")
        words: tuple[str, ...] = ()
        if phonemes:
            phonemes = _symbols(phonemes, language, source, where)
        elif language == "zh":
            phonemes, words = _chinese(say, len(parts), source, where)
        else:
            words = tuple(say.split())
        spellings = [parts]
        if len(parts) == 1 and key.isascii() and key.isalpha() and key.isupper() and len(key) > 1:
            spellings.append(tuple(key))
        for spelling in spellings:
            entry = _Entry(spelling, key == key.lower(), phonemes, words)
            self._by_first.setdefault((language, spelling[0].lower()), []).append(entry)


def _parts(text: str) -> Iterator[str]:
    return (match[0].replace("’", "'") for match in _PART.finditer(text))


def _reach(entry: _Entry, tokens: Sequence[Token], index: int) -> tuple[int, bool] | None:
    """Where a match that begins at ``index`` ends, and whether it carries 's; None without a match."""
    parts: list[str] = []
    end = index
    while end < len(tokens) and len(parts) < len(entry.parts):
        token = tokens[end]
        if token.kind != "word" or token.phonemes is not None or len(token.text) > 256:
            return None
        parts += [token.text] if token.language == "zh" else _parts(token.text)
        end += 1
    if entry.matches(parts):
        return end, False
    if parts and parts[-1].endswith("'s") and entry.matches([*parts[:-1], parts[-1][:-2]]):
        return end, True
    return None


def _spoken(entry: _Entry, replaced: Sequence[Token], possessive: bool) -> Iterator[Token]:
    first, end = replaced[0], replaced[-1].end
    if entry.phonemes:
        sound = plural(entry.phonemes) if possessive else entry.phonemes
        text = "".join(
            token.text if token.language == "zh" or place == 0 else " " + token.text for place, token in enumerate(replaced)
        )
        yield replace(first, text=text, end=end, phonemes=sound, spell=False, source="")
    elif first.language == "zh":
        for token, char in zip(replaced, entry.words, strict=True):
            yield replace(token, text=char, source="")
    else:
        for place, word in enumerate(entry.words):
            ending = "'s" if possessive and place == len(entry.words) - 1 else ""
            yield Token(word + ending, first.start, end, language="en", space=first.space or place > 0)


def _check(condition: bool, source: str, where: str, problem: str) -> None:
    if not condition:
        raise InputError(f"{source}: {where}: {problem}" if where else f"{source}: {problem}")


def _sound(value: Any, source: str, where: str) -> tuple[str, str]:
    """(phonemes, respelling), one of them empty."""
    if isinstance(value, str):
        _check(len(value) > 2 and value[0] == value[-1] == "/", source, where, f"must be {_FORM}")
        return value[1:-1].strip(), ""
    one = isinstance(value, Mapping) and len(value) == 1 and next(iter(value)) in ("ipa", "say")
    _check(one, source, where, f"must be {_FORM}")
    kind, text = next(iter(value.items()))
    _check(isinstance(text, str) and text.strip() != "", source, f"{where}: {kind}", "must be text")
    return (text.strip().strip("/").strip(), "") if kind == "ipa" else ("", text.strip())


def _symbols(phonemes: str, language: Language, source: str, where: str) -> str:
    if language == "en":
        for written, symbol in _IPA:
            phonemes = phonemes.replace(written, symbol)
    allowed = set(symbol_ids()) - _MARKS
    unknown = sorted(set(phonemes) - allowed)
    shown = " ".join(sorted(allowed - {" "}))
    _check(not unknown, source, where, f"{' '.join(map(repr, unknown))} is no symbol of the voice; it has {shown}")
    return phonemes


def _chinese(say: str, characters: int, source: str, where: str) -> tuple[str, tuple[str, ...]]:
    """Pinyin as phonemes, or characters as they are; one for each character of the key."""
    if _HAN.fullmatch(say):
        _check(
            len(say) == characters,
            source,
            where,
            f"needs {characters} characters, one for each of the key, and has {len(say)}",
        )
        return "", tuple(say)
    from tts_engine.text.g2p_zh import symbols

    syllables = say.lower().replace("u:", "v").replace("ü", "v").split()
    form = "write pinyin with tone digits and blanks (chong2 qing4), or characters of the same sound"
    _check(all(_SYLLABLE.fullmatch(syllable) for syllable in syllables), source, where, form)
    sounds = [symbols(syllable) for syllable in syllables]
    wrong = [syllable for syllable, sound in zip(syllables, sounds, strict=True) if not sound]
    _check(not wrong, source, where, f"{' '.join(wrong)} is no syllable of Mandarin; {form}")
    _check(
        len(sounds) == characters,
        source,
        where,
        f"needs {characters} syllables, one for each character, and has {len(sounds)}",
    )
    return "".join(sounds), ()
