"""The Chinese normaliser: the given cases, further ones by category, and properties that hold for any input."""

from __future__ import annotations

import re
import time
import unicodedata
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tts_engine.text.normalize import normalize
from tts_engine.text.normalize_zh import normalize_zh
from tts_engine.text.numbers_zh import cardinal, digits, money, number
from tts_engine.text.tokens import Token

TESTS = Path(__file__).parents[2]
MARKS = set(';:,.!?—…"()“”')


def load(name):
    return yaml.safe_load((TESTS / name).read_text(encoding="utf-8"))


def fold(text):
    folded = unicodedata.normalize("NFKC", text).casefold()
    return re.sub(r"[\W_]+", "", folded).replace("〇", "零")


def spoken(tokens):
    return "".join(token.text for token in tokens)


@pytest.mark.parametrize(
    "case", load("cases/normalize_zh.yaml") + load("cases_more/normalize_zh.yaml"), ids=lambda case: case["id"]
)
@pytest.mark.parametrize("read", [normalize_zh, normalize])
def test_case(case, read):
    assert fold(spoken(read(case["text"]))) in [fold(text) for text in case.get("any_of", [case["spoken"]])]


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        ("0", "零"), ("10", "十"), ("110", "一百一十"), ("1002", "一千零二"), ("1020", "一千零二十"),
        ("2000", "两千"),
        ("10010", "一万零一十"), ("20000", "两万"), ("120000", "十二万"), ("1010000", "一百零一万"),
        ("100000001", "一亿零一"),
        ("100010000", "一亿零一万"), ("1000000000000", "一万亿"), ("120000020000", "一千二百亿零二万"),
        ("007", "七"),
        ("9999999999999999", "九千九百九十九万九千九百九十九亿九千九百九十九万九千九百九十九"),
    ],
)  # fmt: skip
def test_cardinal(figures, words):
    assert cardinal(figures) == words


def test_other_numbers():
    assert cardinal("2", liang=True) == "两"
    assert digits("110", yao=True) == "幺幺零"
    assert number("1,001.23") == "一千零一点二三"
    assert (money("5.50"), money("1,000.00")) == ("五点五", "一千")


def test_a_number_shares_its_span():
    tokens = normalize_zh("我有23个bug", 10)
    assert [(token.text, token.start, token.end, token.language) for token in tokens] == [
        ("我", 10, 11, "zh"), ("有", 11, 12, "zh"), ("二", 12, 14, "zh"), ("十", 12, 14, "zh"),
        ("三", 12, 14, "zh"),
        ("个", 14, 15, "zh"), ("bug", 15, 18, "en"),
    ]  # fmt: skip


def test_a_date_has_a_span_for_each_part():
    spans = {token.text: (token.start, token.end) for token in normalize_zh("2023-05-10")}
    assert (spans["年"], spans["月"], spans["日"]) == ((0, 5), (5, 8), (8, 10))


@pytest.mark.parametrize(
    ("written", "mark"),
    [("，", ","), ("、", ","), ("。", "."), ("！", "!"), ("？", "?"), ("：", ":"), ("；", ";"), ("……", "…"),
    ("——", "—"), ("“", "“"),
     ("」", "”"), ("《", "“"), ("》", "”"), ("（", "("), ("】", ")")],
)  # fmt: skip
def test_marks(written, mark):
    tokens = normalize_zh(f"好{written}好")
    assert [(token.text, token.kind) for token in tokens[1:-1]] == [(mark, "mark")]
    assert (tokens[1].start, tokens[1].end) == (1, 1 + len(written))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("我们的API很好。", "我 们 的 A P I 很 好 ."),
        ("他说：I have 3 dogs and 2 cats.", "他 说 : I have three dogs and two cats ."),
        ("用Visual Studio 2022写代码", "用 Visual Studio 二 零 二 二 写 代 码"),
        ("The word 你好 means hello in 2 ways.", "The word 你 好 means hello in two ways ."),
        ("买2个iPhone", "买 两 个 iPhone"),
        ("สวัสดี 你好 привет", "你 好"),
    ],
)
def test_mixed_text(text, words):
    assert " ".join(token.text for token in normalize(text)) == words


TEXT = st.text(
    st.one_of(
        st.sampled_from("0123456789.,:-/%~+*=×年月日点号个元第电话是一二℃kmGB路次￥$（）。，！ ½²Ⅳ①·№"),
        st.characters(),
    ),
    max_size=30,
)


@settings(max_examples=examples(400))
@given(TEXT, st.integers(0, 5))
def test_any_text(text, start):
    tokens = normalize_zh(text, start)
    check(tokens, start, len(text))


@settings(max_examples=examples(200))
@given(TEXT)
def test_any_mixed_text(text):
    check(normalize(text, "zh"), 0, len(text), english=True)


def check(tokens: list[Token], start: int, size: int, *, english: bool = False) -> None:
    place = start
    for token in tokens:
        assert place <= token.start <= token.end <= start + size
        place = token.start
        assert token.text
        assert not any(char.isdigit() for char in token.text)
        if token.kind == "mark" and not english:
            assert token.text in MARKS


@pytest.mark.parametrize(
    "unit", ["1", "1.", "1,", "1,000", "1-", "1/2", "a.", "a@", "1:2:", "1+1=", "http://", "电话1", "¥1",
    "1×", "²", "(1", "1 ", "~", "中", " ", "第2-"]
)  # fmt: skip
def test_time_is_linear(unit):
    def seconds(size):
        text = unit * (size // len(unit))
        start = time.process_time()
        normalize_zh(text)
        return time.process_time() - start

    seconds(200)
    assert min(seconds(16_000) for _ in range(2)) < 12 * seconds(4_000) + 0.5
