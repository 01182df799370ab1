"""Chinese pronunciation: the reference, polyphones, tone sandhi, 儿化, and properties that hold for any input."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tts_engine.text import sandhi_zh
from tts_engine.text.g2p_zh import ChineseG2P, read, rhotic, symbols
from tts_engine.text.normalize_zh import normalize_zh
from tts_engine.text.tokens import Token
from tts_engine.text.words_zh import words

TESTS = Path(__file__).parents[2]
EMBEDDED = TESTS.parent / "tts_engine" / "voices" / "embedded"
TABLE = json.loads((EMBEDDED / "phonemes.json").read_text(encoding="utf-8"))
REFERENCE = [json.loads(line) for line in (TESTS / "data" / "g2p_reference.jsonl").read_text(encoding="utf-8").splitlines()]
POLYPHONES = yaml.safe_load((TESTS / "cases_more" / "polyphones.yaml").read_text(encoding="utf-8"))


def phonemes(text):
    tokens = [token for token in normalize_zh(text) if token.language == "zh"]
    return "".join(" " * item.space + item.phonemes for item in ChineseG2P().pronounce(tokens)).lstrip()


def sounded(text):
    """The syllables after tone sandhi."""
    spoken = read(text)
    sandhi_zh.apply(spoken)
    return " ".join(syllable for word in spoken for syllable in word.syllables)


def distance(left, right):
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        above = row
        row = [i]
        for j, b in enumerate(right, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (a != b)))
    return row[-1]


@pytest.mark.parametrize("blanks", [True, False])
def test_reference_symbol_error_rate(blanks):
    errors = total = 0
    for row in REFERENCE:
        if row["lang"] == "zh":
            want, got = row["phonemes"], phonemes(row["text"])
            if not blanks:
                want, got = want.replace(" ", ""), got.replace(" ", "")
            errors += distance(want, got)
            total += len(want)
    assert errors / total <= 0.015


def test_polyphones():
    wrong = []
    for case in POLYPHONES:
        runs = re.finditer("[\u4e00-\u9fff]+", case["text"])
        run = next(run for run in runs if run.start() <= case["index"] < run.end())
        syllables = [syllable for word in read(run[0]) for syllable in word.syllables]
        if syllables[case["index"] - run.start()] != case["pinyin"]:
            wrong.append(case["id"])
    assert len(wrong) <= 0.02 * len(POLYPHONES), wrong


@pytest.mark.parametrize(
    ("text", "syllables"),
    [
        ("一个", "yi2 ge4"), ("一样", "yi2 yang4"), ("一天", "yi4 tian1"), ("一起", "yi4 qi3"),
        ("一年", "yi4 nian2"), ("第一个", "di4 yi1 ge4"),
        ("统一", "tong3 yi1"), ("唯一", "wei2 yi1"), ("星期一", "xing1 qi1 yi1"),
        ("十一月一日", "shi2 yi1 yue4 yi1 ri4"),
        ("一心一意", "yi4 xin1 yi2 yi4"), ("看一看", "kan4 yi5 kan4"), ("一楼", "yi1 lou2"),
        ("一年级", "yi1 nian2 ji2"),
        ("一百一十", "yi4 bai3 yi1 shi2"), ("二零一一", "er4 ling2 yi1 yi1"),
        ("三点一四", "san1 dian3 yi1 si4"), ("另一方面", "ling4 yi4 fang1 mian4"),
        ("不是", "bu2 shi4"), ("不要", "bu2 yao4"), ("不好", "bu4 hao3"), ("不行", "bu4 xing2"),
        ("好不好", "hao3 bu5 hao3"), ("差不多", "cha4 bu5 duo1"),
        ("你好", "ni2 hao3"), ("可以", "ke2 yi3"), ("老虎", "lao2 hu3"), ("展览馆", "zhan2 lan2 guan3"),
        ("纸老虎", "zhi3 lao2 hu3"),
        ("小老虎", "xiao3 lao2 hu3"), ("洗手间", "xi2 shou3 jian1"), ("我很好", "wo3 hen2 hao3"),
        ("买五把雨伞", "mai3 wu2 ba3 yu2 san3"),
        ("妈妈", "ma1 ma5"), ("朋友", "peng2 you5"), ("椅子", "yi3 zi5"), ("看看", "kan4 kan5"),
        ("想想", "xiang2 xiang5"), ("慢慢", "man4 man4"),
        ("姐姐", "jie3 jie5"), ("我们", "wo3 men5"),
    ],
)  # fmt: skip
def test_sandhi(text, syllables):
    assert sounded(text) == syllables


@pytest.mark.parametrize(
    ("text", "sounds"),
    [("花儿", "xwa→ɚ"), ("玩儿", "wa↗ɚ"), ("一点儿", "i↘tja↓ɚ"), ("事儿", "ʂɚ↘"), ("一会儿", "i↗xwɚ↘"),
    ("小孩儿", "ɕjau↓xa↗ɚ"), ("儿子", "ɚ↗ʦɨ"), ("女儿", "ny↓ɚ↗"), ("这儿", "ꭧɤ↘ɚ")],
)  # fmt: skip
def test_rhotic(text, sounds):
    assert phonemes(text) == sounds
    assert rhotic("mə↗n") == "mɚ↗"


def test_rhotic_suffix_is_silent_itself():
    last = ChineseG2P().pronounce(normalize_zh("花儿"))[-1]
    assert (last.token.text, last.phonemes, last.space) == ("儿", "", False)


def test_blanks_stand_between_words_and_after_marks():
    assert phonemes("我很好，他（也）不错《书》好。") == "wo↓ xə↗n xau↓, tʰa→ (je↓) pu↗ʦʰwo↘ “ʂu→” xau↓."


def test_fixed_phonemes_are_kept():
    tokens = [
        Token("重", 0, 1, language="zh"),
        Token("庆", 1, 2, language="zh", phonemes="XY"),
        Token("人", 2, 3, language="zh"),
    ]
    assert [item.phonemes for item in ChineseG2P().pronounce(tokens)][1] == "XY"


def test_every_syllable_of_the_table_has_symbols():
    missing = [syllable for syllable in words().syllables if not symbols(syllable)]
    assert not missing
    assert all(set(symbols(syllable)) <= TABLE.keys() for syllable in words().syllables)


def test_segmentation_and_unknown_words():
    table = words()
    assert table.segment("您的快递申请已经通过了") == ["您", "的", "快递", "申请", "已经", "通过", "了"]
    assert table.segment("他来到了网易杭研大厦") == ["他", "来到", "了", "网易", "杭研", "大厦"]
    assert table.segment("") == []
    assert "".join(table.segment("㐂" * 500)) == "㐂" * 500


@settings(max_examples=examples(300))
@given(
    st.text(
        st.one_of(
            st.sampled_from("一不儿行重长得地着了还，。（《 0129第"),
            st.characters(min_codepoint=0x4E00, max_codepoint=0x9FFF),
            st.characters(),
        ),
        max_size=25,
    )
)
def test_any_text(text):
    tokens = [token for token in normalize_zh(text) if token.language == "zh"]
    spoken = ChineseG2P().pronounce(tokens)
    assert [item.token for item in spoken] == tokens
    assert all(set(item.phonemes) <= TABLE.keys() for item in spoken)
