"""The planner: the case files, pairs, neighbours, tags, the user's wishes, hooks, limits."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tts_engine.types import Mark, Run, Tag, TagName, Utterance
from voice_agent.errors import ConfigError, InputError
from voice_agent.text.pieces import Kind, Sentence
from voice_agent.text.plan import Plan, ProsodyConfig
from voice_agent.text.prosody import ProsodyPlanner
from voice_agent.text.sentences import SentenceSplitter
from voice_agent.text.speakable import Cleaner
from voice_agent.text.tags import TagReader

TESTS = Path(__file__).parents[2]
URGENT, NEUTRAL, APOLOGY = "The pan is on fire, get out!", "The train leaves at nine.", "I am sorry, my mistake."
LONG = (
    "The museum on the river opens at nine, and "
    + "visitors who booked a ticket in advance may use the side door, " * 2
    + "if it is open."
)


def load(folder: str) -> Iterator[Any]:
    for case in yaml.safe_load((TESTS / folder / "prosody.yaml").read_text(encoding="utf-8")):
        marks = [pytest.mark.xfail(reason="beyond a lexicon", strict=True)] if case.get("gap") else []
        yield pytest.param(case, id=case["id"], marks=marks)


def marked(text: str, *marks: tuple[int, TagName, float], kind: Kind = "sentence") -> Sentence:
    tags = tuple(Mark(index, Tag(name, value)) for index, name, value in marks)
    return Sentence(text, (Run(text, 0, len(text)),), kind, tags)


def planned(*sentences: Sentence | str, **wishes: Any) -> list[Utterance]:
    planner = ProsodyPlanner(ProsodyConfig(**wishes))
    return [planner.plan(sentence) for sentence in sentences]


@pytest.mark.parametrize("case", [*load("cases"), *load("cases_more")])
def test_cases(case: dict[str, Any]) -> None:
    expect = case["expect"]
    planner = ProsodyPlanner()
    plan = planner.explain(case["text"])
    utterance = planner.plan(case["text"])
    assert plan.sentiment.label == expect["sentiment"], plan
    for name in ("speed", "break_after_ms"):
        least, most = expect[name]
        assert least <= getattr(utterance, name) <= most, plan
        assert getattr(plan, name) == getattr(utterance, name)


@pytest.mark.parametrize("case", [*load("cases")])
def test_cases_behind_the_other_stages(case: dict[str, Any]) -> None:
    """The cleaner has taken the list mark away; the kind of the piece tells of it."""
    reader, cleaner, splitter, planner = TagReader(), Cleaner(), SentenceSplitter(), ProsodyPlanner()
    items = [clean for item in reader.feed(case["text"]) + reader.flush() for clean in cleaner.feed(item)]
    pieces = [piece for item in items + cleaner.flush() for piece in splitter.feed(item)] + splitter.flush()
    (utterance,) = [planner.plan(Sentence(piece.text, piece.runs, piece.kind, piece.marks)) for piece in pieces]
    for name in ("speed", "break_after_ms"):
        least, most = case["expect"][name]
        assert least <= getattr(utterance, name) <= most


@pytest.mark.parametrize(
    ("faster", "slower"),
    [
        (URGENT, NEUTRAL),
        (NEUTRAL, LONG),
        (NEUTRAL, APOLOGY),
        ("- milk", "Milk."),
        ("Wonderful, you won!", NEUTRAL),
        (NEUTRAL, "Sadly, it is ruined."),
        ("着火了，快跑！", "会议室在三楼。"),
        (
            "会议室在三楼。",
            "先把面粉和水搅拌均匀，用一块干净的布盖住盆子，放在窗边等到下午，然后把面团分成六份揉成圆形。",
        ),
        ("会议室在三楼。", "对不起，是我弄错了。"),
    ],
)
def test_pairs(faster: str, slower: str) -> None:
    (quick,), (slow,) = planned(faster), planned(slower)
    assert quick.speed > slow.speed
    assert quick.break_after_ms <= slow.break_after_ms


def test_length_counts_over_both_languages_and_by_sentence() -> None:
    assert planned("字" * 40 + "。")[0].speed == 1.0
    assert planned("字" * 41 + "。")[0].speed < 1.0
    assert planned("word " * 25 + ".")[0].speed == 1.0
    assert planned("word " * 26 + ".")[0].speed < 1.0
    assert planned("字" * 21 + "word " * 13 + "。")[0].speed < 1.0
    assert planned("他在家。" * 30)[0].speed == 1.0


@pytest.mark.parametrize(("kind", "break_ms"), [("sentence", 100), ("list_item", 160), ("heading", 480), ("code", 320)])
def test_kinds_without_a_final_mark(kind: Kind, break_ms: int) -> None:
    assert planned(marked("two bottles of milk", kind=kind))[0].break_after_ms == break_ms


def test_breaks_by_end() -> None:
    statement, question, clause, quoted = planned("It is.", "Is it?", "It is,", "“It is.”")
    assert clause.break_after_ms < statement.break_after_ms < question.break_after_ms
    assert quoted.break_after_ms == statement.break_after_ms


def test_parts_of_a_sentence_keep_its_mood_and_add_up_their_length() -> None:
    planner = ProsodyPlanner()
    planner.plan("Sadly,")
    assert planner.explain("the shop on the corner is no more.").sentiment.label == "negative"
    planner.plan("the shop on the corner is no more.")
    assert planner.explain("The shop on the corner.").sentiment.label == "neutral"
    planner.reset()
    planner.plan("word " * 20 + ",")
    assert [step.name for step in planner.explain("and six more words in it.").steps] == ["normal", "long"]


def test_neighbours_change_by_a_bounded_step() -> None:
    utterances = planned(APOLOGY, URGENT, URGENT, APOLOGY, NEUTRAL)
    assert all(abs(second.speed - first.speed) <= 0.15 + 1e-9 for first, second in pairwise(utterances))
    assert utterances[1].speed < utterances[2].speed == 1.2


@pytest.mark.parametrize("text", ["No.", APOLOGY, LONG, "对不起。"])
def test_pauses_of_a_reply_are_capped(text: str) -> None:
    breaks = [utterance.break_after_ms for utterance in planned(*[text] * 200)]
    words = len(text.split()) if text.isascii() else 0
    characters = 0 if words else 3
    speech_ms = 200 * (words * 350 + characters * 220) / 0.75
    assert sum(breaks) <= 2000 + 0.3 * speech_ms
    assert breaks[0] > 0


class TestTags:
    def test_a_value_in_force_wins_until_the_next_one(self) -> None:
        slow, urgent, released, free = planned(
            marked(NEUTRAL, (0, "speed", 0.8)), URGENT, marked(URGENT, (0, "speed", 1.0)), URGENT
        )
        assert [slow.speed, urgent.speed, released.speed] == [0.8, 0.8, 1.0]
        assert free.speed > 1.0

    def test_reset_forgets_them(self) -> None:
        planner = ProsodyPlanner()
        planner.plan(marked(NEUTRAL, (0, "speed", 0.5), (0, "pitch", 3), (0, "volume", 0.4)))
        planner.reset()
        utterance = planner.plan(NEUTRAL)
        assert (utterance.speed, utterance.pitch, utterance.volume, utterance.index) == (1.0, 0.0, 1.0, 0)

    def test_inside_a_text_they_stay_and_hold_afterwards(self) -> None:
        first, second = planned(marked(NEUTRAL, (4, "volume", 0.5), (9, "break", 300)), NEUTRAL)
        assert first.volume == 1.0
        assert [(mark.index, mark.tag.name, mark.tag.value) for mark in first.marks] == [
            (4, "volume", 0.5),
            (9, "break", 300),
        ]
        assert second.volume == 0.5
        assert not second.marks

    def test_at_the_end_they_hold_for_what_follows(self) -> None:
        first, second = planned(marked(NEUTRAL, (len(NEUTRAL), "speed", 0.7)), NEUTRAL)
        assert (first.speed, second.speed) == (1.0, 0.7)
        assert not first.marks

    def test_a_break_at_the_end_replaces_the_planned_one(self) -> None:
        end = len(APOLOGY)
        assert planned(marked(APOLOGY, (end, "break", 0)))[0].break_after_ms == 0
        assert planned(marked(APOLOGY, (end, "break", 300), (end, "break", 200)))[0].break_after_ms == 500
        assert planned(marked(APOLOGY, (end, "break", 4000), (end, "break", 4000)))[0].break_after_ms == 5000

    @pytest.mark.parametrize(("asked_ms", "between_ms"), [(500, 500), (100, 250), (0, 250)])
    def test_a_break_before_counts_what_is_already_planned(self, asked_ms: int, between_ms: int) -> None:
        first, second = planned(NEUTRAL, marked(NEUTRAL, (0, "break", asked_ms)))
        assert first.break_after_ms + second.break_before_ms == between_ms

    def test_two_breaks_of_the_llm_add_up(self) -> None:
        first, second = planned(marked(NEUTRAL, (len(NEUTRAL), "break", 300)), marked(NEUTRAL, (0, "break", 400)))
        assert (first.break_after_ms, second.break_before_ms) == (300, 400)

    def test_before_the_first_sentence_a_break_is_whole(self) -> None:
        assert planned(marked(NEUTRAL, (0, "break", 700)))[0].break_before_ms == 700

    def test_modes(self) -> None:
        slow = marked(URGENT, (0, "speed", 0.8), (4, "break", 300))
        assert planned(slow, mode="both")[0].speed == 0.8
        assert planned(slow, mode="tags")[0].speed == 0.8
        assert planned(URGENT, mode="tags")[0].speed == 1.0
        assert planned("Oh no,", mode="tags")[0].break_after_ms == 100
        (ruled,) = planned(slow, mode="rules")
        assert (ruled.speed, ruled.marks) == (1.2, ())


class TestWishes:
    def test_multiply_rules_and_tags(self) -> None:
        urgent, tagged = planned(
            URGENT, marked(NEUTRAL, (0, "speed", 0.8), (4, "speed", 1.1), (4, "volume", 0.5)), speed=1.5, volume=0.5
        )
        assert urgent.speed == pytest.approx(1.8)
        assert urgent.volume == 0.5
        assert tagged.speed == pytest.approx(1.2)
        assert [mark.tag.value for mark in tagged.marks] == [pytest.approx(1.65), 0.25]

    def test_add_to_the_pitch(self) -> None:
        utterances = planned(NEUTRAL, marked(NEUTRAL, (0, "pitch", 2)), marked(NEUTRAL, (0, "pitch", 12)), pitch=1.0)
        assert [utterance.pitch for utterance in utterances] == [1, 3, 12]

    def test_shorten_planned_breaks_but_not_those_of_the_llm(self) -> None:
        by_rules, by_tag = planned(NEUTRAL, marked(NEUTRAL, (len(NEUTRAL), "break", 300)), speed=2.0)
        assert (by_rules.break_after_ms, by_tag.break_after_ms) == (125, 300)

    def test_voice_language_and_place_in_the_reply(self) -> None:
        first, second = planned("One.", "Two.", voice="heart", language="en")
        assert (first.voice, first.language, first.index, second.index) == ("heart", "en", 0, 1)
        assert first.runs == (Run("One.", 0, 4),)

    @pytest.mark.parametrize(
        ("wishes", "said"),
        [
            ({"speed": 3.0}, "0.5 to 2"),
            ({"speed": float("nan")}, "speed"),
            ({"volume": -1}, "0 to 2"),
            ({"mode": "auto"}, "rules, tags, both"),
        ],
    )
    def test_out_of_range(self, wishes: dict[str, Any], said: str) -> None:
        with pytest.raises(ConfigError, match=said):
            ProsodyConfig(**wishes)


class TestSentiment:
    def test_an_llms_own_label_goes_first(self) -> None:
        planner = ProsodyPlanner()
        assert planner.plan(NEUTRAL, sentiment="Urgent").speed > 1.1
        planner.reset()
        assert planner.plan(URGENT, sentiment="中性").speed == 1.0
        with pytest.raises(InputError, match="urgent, positive"):
            planner.plan(NEUTRAL, sentiment="blue")

    def test_emoji_come_with_the_raw_text(self) -> None:
        planner = ProsodyPlanner()
        assert planner.explain("See you tonight.", raw="See you tonight 🎉.").sentiment.label == "positive"
        assert planner.explain("See you tonight.").sentiment.label == "neutral"

    def test_words_that_are_not_spoken_do_not_count(self) -> None:
        plan = ProsodyPlanner().explain("See you tonight.", raw="<think>He is furious, help!</think> See you tonight.")
        assert plan.sentiment.label == "neutral"


class TestHook:
    def test_has_the_last_word(self) -> None:
        def calm(sentence: Sentence, plan: Plan) -> Plan | None:
            return replace(plan, speed=0.9, break_after_ms=700) if plan.sentiment.label == "urgent" else None

        urgent, neutral = planned(URGENT, NEUTRAL, hook=calm)
        assert (urgent.speed, urgent.break_after_ms) == (0.9, 700)
        assert neutral.break_after_ms == 250

    @pytest.mark.parametrize(
        "result",
        [1 / 3, "fast", {"speed": 9.0}, {"break_after_ms": -1}, {"volume": float("nan")}, ValueError("broken")],
    )
    def test_a_failing_one_is_reported_and_loses_nothing(self, result: Any, caplog: pytest.LogCaptureFixture) -> None:
        def failing_hook(sentence: Sentence, plan: Plan) -> Any:
            if isinstance(result, Exception):
                raise result
            return replace(plan, **result) if isinstance(result, dict) else result

        with caplog.at_level(logging.WARNING):
            planner = ProsodyPlanner(ProsodyConfig(hook=failing_hook))
            assert "failed" in str(planner.explain(URGENT))
            assert planner.plan(URGENT).speed == 1.2
        assert "failing_hook" in caplog.text


def test_a_sentence_without_text_carries_tags_and_adds_no_break() -> None:
    planner = ProsodyPlanner()
    planner.plan("Sadly,")
    silent = planner.plan(marked("", (0, "break", 600), (0, "speed", 0.7)))
    assert (silent.break_before_ms, silent.break_after_ms) == (500, 0)
    after = planner.explain("the shop is no more.")
    assert (after.sentiment.label, after.speed) == ("negative", 0.7)


def test_explain_tells_the_rules_and_leaves_no_trace() -> None:
    planner = ProsodyPlanner()
    plan = planner.explain(URGENT)
    assert [step.name for step in plan.steps] == ["normal", "urgent"]
    assert "on fire" in str(plan)
    assert "speed 1.20  break  100 ms" in str(plan)
    assert planner.plan(NEUTRAL).index == 0
    assert "smooth" in str(planner.explain(URGENT))


TEXTS = st.one_of(
    st.text(max_size=60),
    st.sampled_from([URGENT, NEUTRAL, APOLOGY, LONG, "No.", "", "着火了！", "对不起。", "- milk", "Sadly,", "Yay!", "Is it?"]),
)
TAGS: st.SearchStrategy[tuple[TagName, float]] = st.one_of(
    st.tuples(st.just("speed"), st.floats(0.5, 2)),
    st.tuples(st.just("break"), st.floats(0, 5000)),
    st.tuples(st.just("pitch"), st.floats(-12, 12)),
    st.tuples(st.just("volume"), st.floats(0, 2)),
)
KINDS: st.SearchStrategy[Kind] = st.sampled_from(["sentence", "list_item", "heading", "code"])


@st.composite
def sentences(draw: st.DrawFn) -> Sentence:
    text = draw(TEXTS)
    marks = sorted((draw(st.integers(0, len(text))), *tag) for tag in draw(st.lists(TAGS, max_size=2)))
    return marked(text, *marks, kind=draw(KINDS))


@given(st.lists(sentences(), max_size=12), st.floats(0.5, 2), st.sampled_from(["rules", "tags", "both"]))
def test_always_within_bounds_and_the_same_again(reply: list[Sentence], speed: float, mode: str) -> None:
    planner = ProsodyPlanner(ProsodyConfig(speed=speed, mode=mode))  # type: ignore[arg-type]
    utterances = [utterance for sentence in reply for utterance in planner.feed(sentence)]
    assert planner.flush() == []
    for index, (sentence, utterance) in enumerate(zip(reply, utterances, strict=True)):
        assert (utterance.text, utterance.runs, utterance.index) == (sentence.text, sentence.runs, index)
        assert 0.25 <= utterance.speed <= 4
        assert 0 <= utterance.volume <= 4
        assert -12 <= utterance.pitch <= 12
        assert 0 <= utterance.break_before_ms <= 5000
        assert 0 <= utterance.break_after_ms <= 5000
        assert all(0 < mark.index < len(sentence.text) for mark in utterance.marks)
        if mode == "rules":
            assert 0.75 <= utterance.speed / speed <= 1.35 + 1e-3
            assert not utterance.marks
    planner.reset()
    assert [planner.plan(sentence) for sentence in reply] == utterances


@pytest.mark.parametrize(
    "text", ["字" * 1_000_000, "a" * 1_000_000, "now " * 250_000, '"' * 1_000_000, "\x00" * 100_000, "?!" * 100_000]
)
def test_long_text_is_quick(text: str) -> None:
    start = time.perf_counter()
    planned(text)
    assert time.perf_counter() - start < 10
