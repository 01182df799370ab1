"""The user's lexicon: what matches, what comes out, and errors that say where."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.pronunciation_score import joined
from tts_engine.errors import InputError
from tts_engine.text.g2p_en import EnglishG2P
from tts_engine.text.tokens import Token
from tts_engine.text.user_lexicon import UserLexicon

LEXICON = """
en:
  Qorvex: /kˈɔɹvˌɛks/
  nguyen: {ipa: "wɪn"}
  Siobhan: {say: "shi vawn"}
  New York: {ipa: "nuː jˈɔrk"}
  New: /njˈu/
  API: {say: "ay pie"}
zh:
  重庆: {say: "chong2 qing4"}
  单于: {say: "馋于"}
  女儿: {say: "nü3 er2"}
"""


@pytest.fixture
def lexicon(tmp_path: Path) -> UserLexicon:
    path = tmp_path / "words.yaml"
    path.write_text(LEXICON, encoding="utf-8")
    return UserLexicon.load(path)


def english(*words: str) -> list[Token]:
    tokens, at = [], 0
    for word in words:
        tokens.append(Token(word, at, at + len(word)))
        at += len(word) + 1
    return tokens


def chinese(text: str) -> list[Token]:
    return [Token(char, at, at + 1, language="zh", space=False) for at, char in enumerate(text)]


@pytest.mark.parametrize(
    ("words", "sounds"),
    [
        (["Qorvex"], ["kˈɔɹvˌɛks"]),
        (["qorvex"], [None]),  # a key with a capital matches as written
        (["Nguyen"], ["wɪn"]),
        (["Nguyen's"], ["wɪnz"]),
        (["New", "York"], ["nu jˈɔɹk"]),  # the longer key wins
        (["New", "house"], ["njˈu", None]),
        (["a", "New", "York", "a"], [None, "nu jˈɔɹk", None]),
    ],
)
def test_phonemes(lexicon: UserLexicon, words: list[str], sounds: list[str | None]) -> None:
    assert [token.phonemes for token in lexicon.apply(english(*words))] == sounds


def test_a_respelling_keeps_the_span(lexicon: UserLexicon) -> None:
    got = lexicon.apply([Token("Siobhan's", 7, 16)])
    assert [(token.text, token.start, token.end) for token in got] == [("shi", 7, 16), ("vawn's", 7, 16)]


def test_an_acronym_matches_its_letters(lexicon: UserLexicon) -> None:
    letters = [Token(letter, 0, 3, spell=True, space=False) for letter in "API"]
    assert [token.text for token in lexicon.apply(letters)] == ["ay", "pie"]


def test_chinese(lexicon: UserLexicon) -> None:
    got = lexicon.apply(chinese("在重庆的单于"))
    assert [(token.text, token.start, token.end) for token in got] == [
        ("在", 0, 1), ("重庆", 1, 3), ("的", 3, 4), ("馋", 4, 5), ("于", 5, 6),
    ]  # fmt: skip
    assert got[1].phonemes
    assert "↗" in got[1].phonemes


def test_marks_and_fixed_tokens_are_left_alone(lexicon: UserLexicon) -> None:
    tokens = [Token("New", 0, 3), Token(",", 3, 4, "mark"), Token("York", 5, 9), Token("Qorvex", 10, 16, phonemes="x")]
    assert [token.phonemes for token in lexicon.apply(tokens)] == ["njˈu", None, None, "x"]


def test_the_pronouncer_speaks_them(lexicon: UserLexicon) -> None:
    assert joined(EnglishG2P(lexicon).pronounce(english("the", "Qorvex"))) == "ðə kˈɔɹvˌɛks"


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ([1], "holds no mapping"),
        ({"fr": {}}, "fr: is no language"),
        ({"en": ["x"]}, "en: must map"),
        ({"en": {"x": "abc"}}, "en: x: must be"),
        ({"en": {"x": {"ipa": "a", "say": "b"}}}, "en: x: must be"),
        ({"en": {"x": {"sound": "a"}}}, "en: x: must be"),
        ({"en": {"x": {"say": ""}}}, "en: x: say: must be text"),
        ({"en": {"x": "/a5b/"}}, "'5' is no symbol"),
        ({"en": {5: "/a/"}}, "en: 5: is no text"),
        ({"en": {"-": "/a/"}}, "has no word"),
        ({"zh": {"OK": {"say": "ok"}}}, "must be Chinese"),
        ({"zh": {"重庆": {"say": "chong2"}}}, "needs 2 syllables"),
        ({"zh": {"重庆": {"say": "chong2 xyz4"}}}, "xyz4 is no syllable"),
        ({"zh": {"重庆": {"say": "chong qing"}}}, "tone digits"),
        ({"zh": {"重庆": {"say": "虫"}}}, "needs 2 characters"),
    ],
)
def test_errors_name_file_and_key(entries: Any, says: str) -> None:
    with pytest.raises(InputError, match=r"my\.yaml") as caught:
        UserLexicon(entries, "my.yaml")
    assert says in str(caught.value)


@pytest.mark.parametrize("content", [b"en: [", b"\xff\xfe", b"en:\n\t- x"])
def test_a_broken_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"broken\.yaml"):
        UserLexicon.load(path)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        UserLexicon.load(tmp_path / "none.yaml")


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "empty.yaml"
    path.write_text("", encoding="utf-8")
    tokens = english("a", "b")
    assert UserLexicon.load(path).apply(tokens) == tokens
