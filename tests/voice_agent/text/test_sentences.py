"""The splitter's two guarantees, its lag, its bookkeeping, and hostile input."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tts_engine.types import Mark, Run, Tag, raw_span
from voice_agent.text.pieces import Boundary, Piece
from voice_agent.text.sentences import MAX_PIECE, SentenceSplitter

TESTS = Path(__file__).parents[2]
CASES = [
    case
    for folder in ("cases", "cases_more")
    for case in yaml.safe_load((TESTS / folder / "sentences.yaml").read_text(encoding="utf-8"))
]
SIZES = [1, 2, 3, 7, 50, None]

PARTS = yaml.safe_load((TESTS / "cases_more" / "sentence_fragments.yaml").read_text(encoding="utf-8"))
TOKENS = PARTS["protected"]
FRAGMENTS = TOKENS + PARTS["fragments"]
PLAIN_WORDS = ["the", "old", "man", "went", "home", "你好", "天气", "and", "then", "we", "ate", "soup", "很好"]


def split(text: str, chunks: list[str] | None = None) -> list[Piece]:
    splitter = SentenceSplitter()
    return [piece for chunk in chunks or [text] for piece in splitter.feed(chunk)] + splitter.flush()


def chunked(text: str, size: int | None) -> list[str]:
    return [text] if size is None else [text[i : i + size] for i in range(0, len(text), size)]


def squeezed(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_pieces(case: dict[str, Any], size: int | None) -> None:
    pieces = split(case["text"], chunked(case["text"], size))
    assert [piece.text for piece in pieces] == case["pieces"]


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=25).map("".join) | st.text(max_size=60), st.data())
def test_pieces_do_not_depend_on_chunks_and_lose_nothing(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=12)))
    chunks = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    whole = split(text)
    assert split(text, list(text)) == whole
    assert split(text, chunks) == whole
    assert squeezed("".join(piece.text for piece in whole)) == squeezed(text)
    for piece in whole:
        assert piece.text
        assert piece.text == piece.text.strip()
        assert "".join(run.text for run in piece.runs) == piece.text
        for run in piece.runs:
            assert run.text == "".join(" " if c in "\n\r\u2028\u2029" else c for c in text[run.start : run.end])


WORDS = st.lists(st.sampled_from(PLAIN_WORDS), min_size=1, max_size=4)


@given(
    st.lists(st.tuples(WORDS, st.sampled_from(TOKENS), WORDS), min_size=1, max_size=5),
    st.sampled_from([".", "!", "?", "。", "！"]),
)
def test_no_cut_inside_a_protected_token(parts: list[tuple[list[str], str, list[str]]], mark: str) -> None:
    text, spans = "", []
    for before, token, after in parts:
        text += " ".join(before) + " "
        spans.append((len(text), len(text) + len(token)))
        text += f"{token} {' '.join(after)}{mark} "
    for piece in split(text):
        first, last = raw_span(piece.runs, 0, len(piece.text))
        for begin, end in spans:
            assert not begin < first < end, (text[begin:end], piece.text)
            assert not begin < last < end, (text[begin:end], piece.text)


@pytest.mark.parametrize("follower", ["", " it goes on.", "，然后走了。", "这里。", ")"])
@pytest.mark.parametrize("token", TOKENS)
def test_no_cut_inside_a_token_at_any_place(token: str, follower: str) -> None:
    for lead in ("", "See ", "我看 ", "He left. ", "(see ", '"'):
        text = lead + token + follower
        for piece in split(text, list(text)):
            first, last = raw_span(piece.runs, 0, len(piece.text))
            assert not (len(lead) < first < len(lead) + len(token)), piece
            assert not (len(lead) < last < len(lead) + len(token)), piece


def lag(text: str, ends_at: int) -> int:
    """Characters after ``ends_at`` that the splitter has to see before it gives the first piece."""
    splitter = SentenceSplitter()
    for seen, char in enumerate(text, 1):
        if splitter.feed(char):
            return seen - ends_at
    raise AssertionError("never given")


@pytest.mark.parametrize(
    ("sentence", "after", "most"),
    [
        ("Hello world.", " Next one", 2),
        ("Hello world!", " Next one", 1),
        ("It costs $3.14.", " Thank you", 2),
        ("你好世界。", "下一句", 1),
        ("真的吗？！", "太好了", 1),
        ("他说：“我走了。”", "然后离开", 1),
        ("She asked, \"Why?\"", " He left", 2),
        ("现在开始.", "马上", 1),
        ("Opening hours", "\n\nWe open", 2),
        ("Boil water", "\n2. Add tea", 4),
        ("It is in the U.S.", " The end of it", 5),
        ("Come at 9 a.m.", " Bring your receipt", 7),
    ],
)  # fmt: skip
def test_lag(sentence: str, after: str, most: int) -> None:
    assert lag(sentence + after, len(sentence)) == most


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=30).map("".join))
def test_lag_is_bounded_for_any_text(text: str) -> None:
    """Pieces that end before the last 280 characters are given: 200 for an open bracket, the rest for marks behind."""
    text = text + " and so on" * 40
    whole = split(text)
    splitter = SentenceSplitter()
    given_out = splitter.feed(text)
    closed = [piece for piece in whole if piece.runs[-1].end < len(text) - 280]
    assert given_out[: len(closed)] == closed


def test_kinds_of_blocks() -> None:
    def kinds(*items: Any) -> list[tuple[str, str]]:
        splitter = SentenceSplitter()
        pieces = [piece for item in items for piece in splitter.feed(item)] + splitter.flush()
        return [(piece.text, piece.kind) for piece in pieces]

    assert kinds("Buy:\n- milk. Fresh.\n- eggs\n\nThen rest.") == [
        ("Buy:", "sentence"),
        ("- milk.", "list_item"),
        ("Fresh.", "list_item"),
        ("- eggs", "list_item"),
        ("Then rest.", "sentence"),
    ]
    assert kinds("One", Boundary("heading"), "\nTitle", Boundary(), "Two") == [
        ("One", "sentence"),
        ("Title", "heading"),
        ("Two", "sentence"),
    ]
    assert kinds(Boundary("list_item"), "Milk", Boundary("list_item"), "Eggs\n\nEnd") == [
        ("Milk", "list_item"),
        ("Eggs", "list_item"),
        ("End", "sentence"),
    ]


def test_a_boundary_closes_the_piece() -> None:
    splitter = SentenceSplitter()
    assert splitter.feed("Let me look that up") == []
    assert [piece.text for piece in splitter.feed(Boundary(reason="tool call"))] == ["Let me look that up"]
    assert [piece.text for piece in splitter.feed("He met Dr.") + splitter.feed(Boundary())] == ["He met Dr."]


def test_tags_belong_to_the_text_that_follows() -> None:
    slow, pause, end = Tag("speed", 0.8), Tag("break", 500), Tag("break", 100)
    splitter = SentenceSplitter()
    items = [slow, "Hello", pause, " world. ", pause, "Next. ", "Last", end]
    pieces = [piece for item in items for piece in splitter.feed(item)] + splitter.flush()
    assert [(piece.text, piece.marks) for piece in pieces] == [
        ("Hello world.", (Mark(0, slow), Mark(5, pause))),
        ("Next.", (Mark(0, pause),)),
        ("Last", (Mark(4, end),)),
    ]


def test_a_tag_without_text_behind_it_is_not_lost() -> None:
    pause = Tag("break", 500)
    splitter = SentenceSplitter()
    pieces = splitter.feed("好！再见！ ") + splitter.feed(pause) + splitter.flush()
    assert [(piece.text, piece.marks) for piece in pieces] == [("好！", ()), ("再见！", ()), ("", (Mark(0, pause),))]
    assert splitter.feed(pause) + splitter.flush() == [Piece("", (), marks=(Mark(0, pause),))]


def test_runs_of_the_input_are_kept() -> None:
    splitter = SentenceSplitter()
    runs = [
        Run("See ", 0, 4),
        Run("link", 4, 40),
        Run(" now. A", 40, 47),
        Run("*", 48, 49, literal=True),
        Run("b\nc", 49, 52),
    ]
    pieces = [piece for run in runs for piece in splitter.feed(run)] + splitter.flush()
    assert [piece.runs for piece in pieces] == [
        (Run("See ", 0, 4), Run("link", 4, 40), Run(" now.", 40, 45)),
        (Run("A", 46, 47), Run("*", 48, 49, literal=True), Run("b c", 49, 52)),
    ]


def test_reset_starts_a_new_stream() -> None:
    splitter = SentenceSplitter()
    splitter.feed('"Open (and')
    splitter.reset()
    assert splitter.feed("New. One") == [Piece("New.", (Run("New.", 0, 4),))]


WHOLE = ["Sure.", "Sure. ", "No.", "好的。", "Let me think...", '"Stop."', "It costs 3. ", "Really?! "]
OPEN = [
    "It costs 3.",
    "Ask Dr.",
    "Ask Dr. ",
    "At 9 a.m.",
    "See www.foo.",
    '"Stop.',
    "“停下。",
    "He (the boss.",
    "Well,",
    "?!",
]


@pytest.mark.parametrize(("text", "settled"), [(text, True) for text in WHOLE] + [(text, False) for text in OPEN])
def test_settle_gives_only_what_no_token_can_continue(text: str, settled: bool) -> None:
    splitter = SentenceSplitter()
    fed = splitter.feed(text)
    assert [piece.text for piece in fed + splitter.settle()] == ([text.strip()] if settled else [])
    assert bool(splitter.pending) is not settled


HOSTILE = [
    "a",
    " ",
    "!",
    "(",
    ".",
    "\n",
    "。",
    '"',
    ". ",
    "a. ",
    "\n ",
    "Dr. ",
    "1. ",
    '."',
    ".)",
    "《",
    "(()",
    "x\n-",
    "…a",
    "\0",
    "\ud83d",
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_hostile_input_takes_linear_time_and_bounded_memory(unit: str) -> None:
    text = unit * (60_000 // len(unit))
    splitter = SentenceSplitter()
    began = time.process_time()
    kept = 0
    for chunk in chunked(text, 4):
        splitter.feed(chunk)
        kept = max(kept, len(splitter.pending))
    splitter.flush()
    assert kept <= MAX_PIECE + 300
    assert time.process_time() - began < 10


def test_a_sentence_without_an_end_is_cut_between_words() -> None:
    text = "word " * 3_000
    pieces = split(text, chunked(text, 7))
    assert pieces == split(text)
    assert all(len(piece.text) <= MAX_PIECE and set(piece.text.split()) == {"word"} for piece in pieces)


@pytest.mark.parametrize("cluster", ["e\u0301", "👍🏽", "👩\u200d💻", "\ud83d\ude00"])
def test_a_forced_cut_does_not_tear_a_character(cluster: str) -> None:
    for shift in range(len(cluster)):
        text = "x" * (MAX_PIECE - shift) + cluster + "x" * 10
        assert any(cluster in piece.text for piece in split(text))
