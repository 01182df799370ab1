"""Which language a sentence is in, and which scripts are left out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tts_engine.text.language import detect_language, unspeakable


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Hello", "en"),
        ("你好", "zh"),
        ("我用Python", "zh"),
        ("12:30", "en"),
        ("", "en"),
        ("こんにちは", "en"),
        ("𠮷", "zh"),
        ("〇", "zh"),
    ],
)
def test_detect_language(text, language):
    assert detect_language(text) == language


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("hello 你好 1½ é Ａ ①", []),
        ("สวัสดี hello", [("Thai", 0, 5)]),
        ("مرحبا", [("Arabic", 0, 5)]),
        ("привет мир!", [("Cyrillic", 0, 10)]),
        ("ひらがなカタカナ", [("Hiragana", 0, 4), ("Katakana", 4, 8)]),
        ("ｶﾀｶﾅ", [("Katakana", 0, 4)]),
        ("안녕 hi 안녕", [("Hangul", 0, 2), ("Hangul", 6, 8)]),
        ("角α", []),
        ("αβγ", [("Greek", 0, 3)]),
        ("日本語です", [("Hiragana", 3, 5)]),
        ("עברית", [("Hebrew", 0, 5)]),
        ("हिन्दी", [("Devanagari", 0, 5)]),
    ],
)
def test_unspeakable(text, found):
    assert [tuple(stretch) for stretch in unspeakable(text)] == found


@given(st.text())
def test_any_text(text):
    place = 0
    for script, start, end in unspeakable(text):
        assert script
        assert place <= start < end <= len(text)
        place = end
