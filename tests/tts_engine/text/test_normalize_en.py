"""English normalisation: the cases, and what holds for any input."""

from __future__ import annotations

import re
import time
import unicodedata
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tts_engine.text.english import numbers, readers
from tts_engine.text.english.scan import Reader, Scan
from tts_engine.text.english.words import is_pronounceable
from tts_engine.text.normalize_en import normalize_en

TESTS = Path(__file__).parent.parent.parent
MARKS = set(",.!?;:—…()“”")


def load(name: str) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = yaml.safe_load((TESTS / name).read_text(encoding="utf-8"))
    return cases


def fold(text: str) -> list[str]:
    return re.findall(r"[^\W_]+(?:'[^\W_]+)*", text.replace("’", "'").casefold().replace("-", " "))


def spoken(text: str) -> str:
    return " ".join(token.text for token in normalize_en(text))


def spans(text: str) -> list[tuple[str, str]]:
    return [(token.text, text[token.start : token.end]) for token in normalize_en(text)]


@pytest.mark.parametrize(
    "case",
    load("cases/normalize_en.yaml") + load("cases_more/normalize_en.yaml"),
    ids=lambda case: case["id"],
)
def test_reading(case: dict[str, Any]) -> None:
    said = spoken(case["text"])
    assert fold(said) in [fold(form) for form in case.get("any_of", [case["spoken"]])], said


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("at 10:30.", [("at", "at"), ("ten", "10:30"), ("thirty", "10:30"), (".", ".")]),
        ("$5 now", [("five", "$5"), ("dollars", "$5"), ("now", "now")]),
        ("3-5 days", [("three", "3"), ("to", "-"), ("five", "5"), ("days", "days")]),
        ("20 km", [("twenty", "20"), ("kilometers", "km")]),
        ("the U.S. won", [("the", "the"), ("U", "U.S."), ("S", "U.S."), ("won", "won")]),
        ("the U.S.", [("the", "the"), ("U", "U.S"), ("S", "U.S"), (".", ".")]),
        ("it’s e\u0301lan", [("it's", "it’s"), ("élan", "e\u0301lan")]),
        ("Dr. Ray", [("Doctor", "Dr."), ("Ray", "Ray")]),
        ('"No," he said', [("“", '"'), ("No", "No"), (",", ","), ("”", '"'), ("he", "he"), ("said", "said")]),
        ("a-b", [("a", "a"), ("b", "b")]),
    ],
)
def test_words_know_what_they_stand_for(text: str, expected: list[tuple[str, str]]) -> None:
    assert spans(text) == expected


def test_start_moves_every_span() -> None:
    moved = [(token.start, token.end) for token in normalize_en("Pay €3 — é!", start=100)]
    assert moved == [(token.start + 100, token.end + 100) for token in normalize_en("Pay €3 — é!")]


def test_letters_cling_together() -> None:
    letters = [token for token in normalize_en("The API and GPUs fail") if token.spell or token.text == "U's"]
    assert [(token.text, token.space) for token in letters] == [
        ("A", True), ("P", False), ("I", False), ("G", True), ("P", False), ("U's", False),
    ]  # fmt: skip


def test_parts_of_a_hyphenated_word_cling_together() -> None:
    assert [(token.text, token.space) for token in normalize_en("a well-known man (here)")] == [
        ("a", False), ("well", True), ("known", False), ("man", True), ("(", True), ("here", False), (")", False),
    ]  # fmt: skip


def test_a_capital_a_is_the_letter_only_where_it_is_one() -> None:
    assert [token.spell for token in normalize_en("A plan") if token.text == "A"] == [False]
    assert [token.spell for token in normalize_en("vitamin A") if token.text == "A"] == [True]


def test_a_lexicon_decides_on_capitals_and_mixed_case() -> None:
    known = {"zorb", "blipco"}.__contains__
    assert [token.text for token in normalize_en("ZORB BlipCo", is_word=known)] == ["ZORB", "BlipCo"]
    assert [token.text for token in normalize_en("XQRT BlipCo")] == ["X", "Q", "R", "T", "Blip", "Co"]


@pytest.mark.parametrize("word", ["WARNING", "IMPORTANT", "STRENGTH", "SCHOOL", "TWELFTH", "QUICK", "AUTHOR"])
def test_words_in_capitals_can_be_said(word: str) -> None:
    assert is_pronounceable(word)


@pytest.mark.parametrize("word", ["HTML", "XBRL", "IMDB", "ISBN", "SQRT", "ESPN", "BCDAF"[:3], "KLM"])
def test_strings_of_consonants_cannot(word: str) -> None:
    assert not is_pronounceable(word)


@pytest.mark.parametrize("number", [0, 7, 10, 19, 20, 21, 99, 100, 101, 110, 999, 1000, 1001, 10_000, 123_456, 10**15])
def test_cardinals_name_their_value(number: int) -> None:
    small = {name: value for value, name in enumerate(numbers.ONES)} | {
        name: 10 * value for value, name in enumerate(numbers.TENS) if value
    }
    total = group = 0
    for word in numbers.cardinal(number):
        if word == "hundred":
            group *= 100
        elif word in numbers.SCALES:
            total, group = total + group * 1000 ** numbers.SCALES.index(word), 0
        else:
            group += small[word]
    assert total + group == number


@pytest.mark.parametrize("number", range(1, 4000, 37))
def test_roman_numerals_round_trip(number: int) -> None:
    assert numbers.roman(numbers.to_roman(number)) == number


FRAGMENTS = st.sampled_from(
    [
        *"0123456789.,:;-–—/\\'\"$€£%°+*=<>()[]#@&_~^²½ \n\x00",
        *["a", "A", "x", "km", "am", "p.m.", " Mon", "Jan ", "St.", "No. ", "http://", "www.", "e.g.", "U.S.", "GB"],
        *["5'10\"", "24/7", "1/2", "2024", "$5", "V", "II", " Chapter ", " Henry ", " PIN is ", " call ", "v1", "Rs."],
        *["\u0301", "’", "٣", "Ⅷ", "①", "ﬁ", "中", "\ud800", "é", "\u200d", "𝟑", "㎞", "℃", "⅞", "ͷ", "१"],
    ]
)


def check(text: str) -> None:
    tokens = normalize_en(text)
    for token in tokens:
        assert 0 <= token.start < token.end <= len(text)
        assert token.text
        if token.kind == "mark":
            assert token.text in MARKS
        else:
            assert not any(unicodedata.category(char).startswith("N") for char in token.text)
            assert any(char.isalpha() for char in token.text)
    starts = [token.start for token in tokens]
    assert starts == sorted(starts)


@settings(max_examples=examples(400))
@given(st.lists(FRAGMENTS, max_size=14).map("".join))
def test_any_mixture_is_read(text: str) -> None:
    check(text)


@settings(max_examples=examples(200))
@given(st.lists(FRAGMENTS, max_size=14).map("".join))
def test_a_reader_that_declines_has_said_nothing(text: str) -> None:
    def strict(scan: Scan, offered: tuple[Reader, ...], at: int) -> int | None:
        for reader in offered:
            said = len(scan.out)
            end = reader(scan, at)
            if end is not None:
                assert end > at
                return end
            assert len(scan.out) == said
        return None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(readers, "_first", strict)
        normalize_en(text)


@settings(max_examples=examples(200))
@given(st.text(max_size=40))
def test_any_string_is_read(text: str) -> None:
    check(text)


@settings(max_examples=examples(50))
@given(st.lists(st.sampled_from(["alpha", "bravo", "charlie", "Delta", "echo's"]), min_size=1, max_size=12))
def test_plain_words_stay_as_they_are(words: list[str]) -> None:
    text = " ".join(words)
    assert spans(text) == [(word, word) for word in words]


HOSTILE = [
    *[
        "a",
        "1",
        "1.",
        "1,",
        ",000",
        "1-",
        "1/",
        "1:",
        "a.",
        "a-",
        "A.",
        "a@",
        "a_",
        "#a",
        "(",
        '"',
        "-",
        "...",
        "$",
        "I",
    ],
    *["1 000 ", "http://a", "http://a)", "/a", "IV ", "²", "Mon-", "½", "+1", "a'", "\x00", "\ud800", "e\u0301", "中"],
    *[
        "v1.",
        "a1",
        "Dr. ",
        "e.g. ",
        "1x1",
        "Jan 5 ",
        "=",
        "<",
        "C:\\",
        "a:b:",
        "😀",
        "U.S. ",
        "5 km/h ",
        "5-5%",
        "a**b",
    ],
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_time_is_linear(piece: str) -> None:
    def seconds(length: int) -> float:
        text = (piece * (length // len(piece) + 1))[:length]
        begin = time.process_time()
        normalize_en(text)
        return time.process_time() - begin

    short = max(min(seconds(2_000) for _ in range(3)), 0.02)
    assert min(seconds(8_000) for _ in range(3)) < 12 * short
