"""When the grouper gives text and how much, on a clock that the test moves."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tts_engine.types import Mark, Run, Tag
from voice_agent.errors import InputError
from voice_agent.text.clauses import Length, best_cut, last_clause_end
from voice_agent.text.grouping import Grouper, GroupingConfig, cut_piece, join_pieces
from voice_agent.text.pieces import Boundary, Piece, Sentence

SMALL = GroupingConfig(least=Length(3, 5), target=Length(10, 16), maximum=Length(20, 30), hold_above_s=1.0, stall_s=0.150)
PLAIN = GroupingConfig(early_clause=False)


def texts(sentences: list[Sentence]) -> list[str]:
    return [sentence.text for sentence in sentences]


def speak(text: str, size: int, config: GroupingConfig | None = None, buffered_s: float = 0.0) -> list[str]:
    grouper = Grouper(config)
    given_out = [s for i in range(0, len(text), size) for s in grouper.feed(text[i : i + size], i * 0.01, buffered_s)]
    return texts(given_out + grouper.flush())


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50, 1000])
@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("Well, I really think so, because it rained. Yes.", "Well, I really think so,"),
        ("On January 5, 2024, we met at 10:30, as planned. Yes.", "On January 5, 2024,"),
        ("I met Hale, Jr. and his friend, again. Yes.", "I met Hale, Jr. and his friend,"),
        ("It holds 2,500 people (or more, they say), in all. Yes.", "It holds 2,500 people (or more, they say),"),
        ("See https://a.b/c,d:e;f and go, my friend. Yes.", "See https://a.b/c,d:e;f and go,"),
        ("One moment please. Thanks, all of you.", "One moment please."),
        ("那好吧，我们现在去公园散步，看看花。好。", "那好吧，我们现在去公园散步，"),
        ("一共要付１，０００元，请现在付款，谢谢。好。", "一共要付１，０００元，"),
        ("我读过《你好，再见》这本书，很好看。好。", "我读过《你好，再见》这本书，"),
        ("好的，没问题。我来查。", "好的，没问题。"),
    ],
)
def test_the_first_clause_depends_on_the_text_alone(text: str, first: str, size: int) -> None:
    config = GroupingConfig(least=Length(3, 6))
    assert speak(text, size, config)[0] == first


def test_a_later_sentence_is_no_clause() -> None:
    assert speak("This is the first. And now, after a while, comes the second one. Third.", 4, SMALL)[:2] == [
        "This is the first.",
        "And now, after a while, comes the second one.",
    ]


def test_without_early_clause_the_first_sentence_is_whole() -> None:
    assert speak("Well, I really think so, because it rained. Yes.", 4, PLAIN)[0] == (
        "Well, I really think so, because it rained."
    )


def test_a_short_sentence_is_never_held_back() -> None:
    grouper = Grouper(PLAIN)
    assert texts(grouper.feed("No. ", 0.0, 0.0) + grouper.feed("It", 0.01, 0.0)) == ["No."]
    assert texts(grouper.feed(" is not. Yes. W", 0.02, 0.0)) == ["It is not. Yes."]


def test_a_short_sentence_joins_a_follower_that_is_there() -> None:
    grouper = Grouper(PLAIN)
    assert texts(grouper.feed("No. It is not at all like that. Perhaps. W", 0.0, 0.0)) == [
        "No. It is not at all like that.",
        "Perhaps.",
    ]
    long = "one two three four five six seven eight nine ten eleven"
    assert speak(f"First one here. Fine. {long}. Ok.", 1000, SMALL)[1] == f"Fine. {long}."


def test_sentences_are_joined_up_to_the_target_while_audio_is_buffered() -> None:
    grouper = Grouper(SMALL)
    assert texts(grouper.feed("This one is first. Two is short. T", 0.0, 5.0)) == ["This one is first."]
    assert grouper.feed("hree is too. F", 0.1, 5.0) == []
    assert texts(grouper.feed("our is the last one of them. Five", 0.2, 5.0)) == ["Two is short. Three is too."]
    assert texts(grouper.flush()) == ["Four is the last one of them. Five"]


def test_held_sentences_are_given_when_the_audio_runs_low() -> None:
    grouper = Grouper(SMALL)
    grouper.feed("This one is first. T", 0.0, 0.0)
    assert grouper.feed("wo is short. T", 1.0, 1.1) == []
    assert grouper.deadline_s() == pytest.approx(1.1)
    assert grouper.tick(1.05, 1.05) == []
    assert texts(grouper.tick(1.1, 0.99)) == ["Two is short."]


def test_a_stall_gives_what_is_complete() -> None:
    grouper = Grouper(SMALL)
    assert grouper.feed("Let me look.", 1.0, 0.0) == []
    assert grouper.deadline_s() == pytest.approx(1.15)
    assert grouper.tick(1.10, 0.0) == []
    assert texts(grouper.tick(1.15, 0.0)) == ["Let me look."]
    assert grouper.deadline_s() is None
    assert grouper.feed("It costs 3.", 2.0, 0.0) == []
    assert grouper.tick(2.2, 0.0) == []
    assert texts(grouper.feed("14 euros. Ok", 2.3, 0.0)) == ["It costs 3.14 euros."]


def test_a_stall_gives_held_sentences_whatever_is_buffered() -> None:
    grouper = Grouper(SMALL)
    assert texts(grouper.feed("This one is first. Two is. T", 0.0, 9.0)) == ["This one is first."]
    assert texts(grouper.tick(0.15, 8.85)) == ["Two is."]


def test_a_stall_gives_a_clause_only_when_audio_runs_low() -> None:
    grouper = Grouper(SMALL)
    grouper.feed("This one is first. And so it goes, as", 0.0, 0.0)
    assert grouper.tick(0.15, 2.0) == []
    assert grouper.deadline_s() == pytest.approx(1.15)
    assert texts(grouper.tick(1.15, 0.99)) == ["And so it goes,"]
    assert texts(grouper.feed(" they say.", 1.2, 0.9) + grouper.flush()) == ["as they say."]


def test_back_pressure_is_no_stall() -> None:
    grouper = Grouper(SMALL)
    grouper.feed("Let me look.", 1.0, 0.0)
    grouper.pause()
    assert grouper.deadline_s() is None
    assert grouper.tick(5.0, 0.0) == []
    grouper.resume(5.0)
    assert grouper.deadline_s() == pytest.approx(5.15)
    assert texts(grouper.tick(5.15, 0.0)) == ["Let me look."]


def test_list_items_headings_and_breaks_keep_pieces_apart() -> None:
    assert speak("Buy this now: bread.\n- milk\n- eggs\n\nGo. Run.", 1000, PLAIN) == [
        "Buy this now: bread.", "- milk", "- eggs", "Go.", "Run."
    ]  # fmt: skip
    grouper = Grouper(PLAIN)
    pause = Tag("break", 500)
    items: list[Any] = [
        "One two three four. ",
        pause,
        "Five. Six. ",
        Tag("speed", 1.2),
        "Seven. ",
        Boundary("heading"),
        "T",
    ]
    given_out = [s for item in items for s in grouper.feed(item, 0.0, 9.0)] + grouper.flush()
    assert [(s.text, s.kind, [(m.index, m.tag.name) for m in s.marks]) for s in given_out] == [
        ("One two three four.", "sentence", []),
        ("Five. Six. Seven.", "sentence", [(0, "break"), (11, "speed")]),
        ("T", "heading", []),
    ]


def test_trailing_tags_reach_the_last_sentence_or_stand_alone() -> None:
    pause = Tag("break", 500)
    grouper = Grouper(PLAIN)
    assert grouper.feed("好。再见。好", 0.0, 0.0)[0].text == "好。再见。"
    assert grouper.feed(pause, 0.0, 0.0) == []
    assert [(s.text, s.marks) for s in grouper.flush()] == [("好", (Mark(1, pause),))]
    grouper.feed(pause, 0.0, 0.0)
    assert [(s.text, s.marks) for s in grouper.flush()] == [("", (Mark(0, pause),))]


def test_joined_runs_and_marks_fit_the_text() -> None:
    slow = Tag("speed", 0.8)
    left = Piece("Go.", (Run("Go.", 0, 3),), marks=(Mark(0, slow),))
    right = Piece("Now!", (Run("Now!", 5, 9),), marks=(Mark(1, slow),))
    joined = join_pieces([left, right])
    assert joined.text == "Go. Now!"
    assert joined.runs == (Run("Go.", 0, 3), Run(" ", 3, 3), Run("Now!", 5, 9))
    assert joined.marks == (Mark(0, slow), Mark(5, slow))
    wide = [
        Piece("好。", (Run("好。", 0, 2),)),
        Piece("走吧。”", (Run("走吧。”", 2, 6),)),
        Piece("Go.", (Run("Go.", 6, 9),)),
    ]
    assert join_pieces(wide).text == "好。走吧。”Go."


def test_cut_piece_keeps_runs_and_marks() -> None:
    tags = [Tag("speed", value) for value in (0.8, 0.9, 1.0)]
    piece = Piece("One, two", (Run("One, two", 10, 18),), marks=(Mark(0, tags[0]), Mark(4, tags[1]), Mark(6, tags[2])))
    left, right = cut_piece(piece, 5)
    assert (left.text, left.runs, left.marks) == ("One,", (Run("One,", 10, 14),), (Mark(0, tags[0]),))
    assert (right.text, right.runs, right.marks) == ("two", (Run("two", 15, 18),), (Mark(0, tags[1]), Mark(1, tags[2])))


def test_a_long_sentence_is_cut_at_its_best_clause_before_it_has_ended() -> None:
    text = (
        "And so it was that the old man, who had been waiting for a long time by the road, which was dusty; decided to "
        "get up and walk away, not even when J. R. Hale and Dr. Smith, among others, asked him on Jan. 5, 2024 to stay"
    )
    parts = speak(text, 4, SMALL)
    assert " ".join(parts) == text
    assert all(SMALL.maximum.overflow_at(part) is None for part in parts)
    assert parts == speak(text, 1000, SMALL)
    assert not any(part.endswith(("J.", "R.", "Dr.", "Jan.", "5,")) for part in parts)
    grouper = Grouper(SMALL)
    assert grouper.feed(text, 0.0, 0.0), "the parts are given although no mark has come"


def test_a_long_chinese_sentence_without_commas_is_cut_between_characters() -> None:
    text = "今天我们在北京大学的图书馆里看书写字然后又一起去了人民公园" * 3
    parts = speak(text, 2, SMALL)
    assert "".join(parts) == text
    assert all(len(part) <= SMALL.maximum.chars for part in parts)


def test_a_token_longer_than_the_maximum_is_cut_anywhere() -> None:
    url = "https://example.com/" + "a" * 1_000_000
    began = time.process_time()
    parts = speak(url, 1000, SMALL)
    assert "".join(parts) == url
    assert max(map(len, parts)) <= SMALL.maximum.words * 12
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    ("text", "length"),
    [("one two three", 3), ("don't stop", 2), ("3.14 is pi", 3), ("a" * 25, 3), ("...", 0), ("", 0)],
)
def test_words_are_counted(text: str, length: int) -> None:
    assert Length(length + 1, 1000).reached_at(text) is None
    assert length == 0 or Length(length, 1000).reached_at(text) is not None
    assert length == 0 or Length(length, 1000).overflow_at(text) is None


def test_mixed_text_adds_the_shares_of_both_languages() -> None:
    assert Length(4, 8).reached_at("我用 Python 写") is None
    assert Length(4, 8).reached_at("我用 Python and numpy 写代") == len("我用 Python and numpy")


def test_clause_of_a_stalled_sentence() -> None:
    assert last_clause_end("Well, I think,") == 14
    assert last_clause_end("Well, about 2,") == 5
    assert last_clause_end("Open http:") is None
    assert last_clause_end("Here it is:") == 11


def test_best_cut_prefers_marks_to_blanks() -> None:
    text = "aaa bbb; ccc, ddd eee fff"
    assert text[: best_cut(text, 20)] == "aaa bbb;"
    assert text[: best_cut("aaa bbb ccc, ddd eee fff", 20)] == "aaa bbb; ccc"


@given(
    st.lists(
        st.sampled_from(
            [
                "Hello there",
                "no",
                ". ",
                "! ",
                ", ",
                "。",
                "，",
                "你好吗",
                " ",
                "3.14",
                "Dr. Who",
                "\n\n",
                "; ",
                "x" * 90,
            ]
        )
    ),
    st.integers(1, 9),
    st.sampled_from([0.0, 0.5, 3.0]),
)
def test_nothing_is_lost_and_nothing_is_too_long(parts: list[str], size: int, buffered_s: float) -> None:
    text = "".join(parts)
    grouper = Grouper(SMALL)
    given_out: list[Sentence] = []
    for count, i in enumerate(range(0, len(text), size)):
        given_out += grouper.feed(text[i : i + size], count * 0.1, buffered_s)
        if count % 5 == 0:
            given_out += grouper.tick(count * 0.1 + 0.2, buffered_s)
    given_out += grouper.flush()
    assert "".join("".join(texts(given_out)).split()) == "".join(text.split())
    for sentence in given_out:
        assert "".join(run.text for run in sentence.runs) == sentence.text
        assert SMALL.maximum.overflow_at(sentence.text) is None
        raw = "".join(text[run.start : run.end] for run in sentence.runs)
        assert "".join(raw.split()) == "".join(sentence.text.split())


def test_config_is_checked() -> None:
    with pytest.raises(InputError, match="lengths must grow"):
        GroupingConfig(target=Length(100, 100))
    with pytest.raises(InputError, match="stall_s"):
        GroupingConfig(stall_s=0.0)
