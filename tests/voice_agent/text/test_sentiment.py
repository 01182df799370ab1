"""Moods: labels in both languages, what denies or hides a word, emoji, labels of an LLM, hostile text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice_agent.errors import InputError
from voice_agent.text.sentiment import LABELS, SentimentReader


@pytest.fixture(scope="module")
def reader() -> SentimentReader:
    return SentimentReader()


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("I am happy.", "positive"),
        ("I am not happy.", "negative"),
        ("I am a little happy.", "neutral"),
        ("Are you happy?", "neutral"),
        ("If you are happy, press one.", "neutral"),
        ("The word happy has five letters.", "neutral"),
        ("The Happy Valley bus leaves at nine.", "neutral"),
        ("The soup is good.", "neutral"),
        ("The soup is very good.", "positive"),
        ("The room is nice, but the food was terrible.", "negative"),
        ("The food was terrible, but the view is great and the staff are lovely.", "positive"),
        ("Help", "neutral"),
        ("HELP!", "urgent"),
        ("Leave now!", "urgent"),
        ("We leave now.", "neutral"),
        ("Reply immediately.", "urgent"),
        ("They replied immediately.", "neutral"),
        ("He apologized.", "neutral"),
        ("I apologized.", "apology"),
        ("A terrible hotel.", "negative"),
        ("The disaster recovery plan has two parts.", "neutral"),
        ("我很高兴。", "positive"),
        ("我不高兴。", "negative"),
        ("你高兴吗？", "neutral"),
        ("如果您满意，请按一。", "neutral"),
        ("《高兴》是一本书。", "neutral"),
        ("他住在高兴镇。", "neutral"),
        ("房间不错，但是饭菜太差了。", "negative"),
        ("火警！", "urgent"),
        ("他道歉了。", "neutral"),
        ("我向您道歉。", "apology"),
        ("这个方案 perfect！", "positive"),
        ("Sorry, 我来晚了。", "apology"),
    ],
)
def test_what_stands_around_a_word_counts(reader: SentimentReader, text: str, label: str) -> None:
    assert reader.read(text).label == label


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("See you tonight 🎉", "positive"),
        ("See you tonight", "neutral"),
        ("今天下雨 😭", "negative"),
        ("Room four 🚨", "urgent"),
        ("👍🏽👍🏽", "neutral"),
        ("I ❤️ it", "positive"),
        ("🎉", "positive"),
    ],
)
def test_emoji_count(reader: SentimentReader, text: str, label: str) -> None:
    assert reader.read(text).label == label


def test_a_mood_comes_with_its_words(reader: SentimentReader) -> None:
    mood = reader.read("Unfortunately, it is ruined.")
    assert [word for word, _ in mood.evidence] == ["Unfortunately", "ruined"]
    assert 0 < mood.score <= 1
    assert reader.read("The room is on the left.").score == 0


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("urgent", "urgent"),
        (" URGENT ", "urgent"),
        ("Happy", "positive"),
        ("悲伤", "negative"),
        ("道歉", "apology"),
        ("calm", "neutral"),
    ],
)
def test_labels_of_an_llm(reader: SentimentReader, name: str, label: str) -> None:
    assert reader.label(name) == label


@pytest.mark.parametrize("name", ["", "purple", "urgent!", "None of these"])
def test_an_unknown_label_lists_the_allowed_ones(reader: SentimentReader, name: str) -> None:
    with pytest.raises(InputError, match="urgent, positive, negative, apology, neutral") as caught:
        reader.label(name)
    assert repr(name) in str(caught.value)


WORDS = st.sampled_from(
    [
        *(
            "not ",
            "very ",
            "sorry",
            "now ",
            "help",
            "fire ",
            "great ",
            "if ",
            "but ",
            "the word ",
            "!",
            "?",
            "。",
            ", ",
        ),
        *(
            '"',
            "“",
            "》",
            "《",
            "不",
            "很",
            "着火",
            "对不起",
            "太好了",
            "死",
            "了",
            "但是",
            "🎉",
            "\x00",
            "\ud800",
            "\n",
        ),
    ]
)


@given(st.one_of(st.text(), st.lists(WORDS, max_size=40).map("".join)))
def test_any_text_has_a_mood(text: str) -> None:
    mood = SentimentReader().read(text)
    assert mood.label in LABELS
    assert 0 <= mood.score <= 1
    assert (mood.label == "neutral") == (mood.score == 0)


@pytest.mark.parametrize(
    "text", ["now " * 300_000, "很" * 1_000_000, '"' * 1_000_000, "!" * 1_000_000, "死" * 500_000, "“a" * 500_000]
)
def test_long_hostile_text_is_quick(reader: SentimentReader, text: str) -> None:
    start = time.perf_counter()
    reader.read(text)
    assert time.perf_counter() - start < 10
