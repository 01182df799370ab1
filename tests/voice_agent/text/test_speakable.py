"""The cleaner: what is left to be spoken, where it comes from, what is reported, and that chunks make no difference."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.fuzz_text import CORPUS, check
from tests.examples import examples
from tests.voice_agent.text.markup_fragments import MARKUP
from tts_engine.errors import InputError
from tts_engine.types import Run, Tag
from voice_agent.text.pieces import Boundary, Item
from voice_agent.text.sentences import SentenceSplitter
from voice_agent.text.speakable import Cleaner, Skipped, SpeakablePolicy
from voice_agent.text.tags import TagReader

TESTS = Path(__file__).parents[2]
CASES = [
    case
    for folder in ("cases", "cases_more")
    for case in yaml.safe_load((TESTS / folder / "speakable.yaml").read_text(encoding="utf-8"))
]
SIZES = [1, 2, 3, 7, 50, None]
POLICIES = [
    SpeakablePolicy(),
    SpeakablePolicy(url="read", code="read", table="read", emoji="read", citation="read", footnote="read"),
    SpeakablePolicy(url="skip", code="mention", table="mention", image="skip"),
]


def chunked(text: str, size: int | None) -> list[str]:
    return [text] if size is None else [text[i : i + size] for i in range(0, len(text), size)]


def clean(chunks: list[str], policy: SpeakablePolicy = POLICIES[0], *, read_tags: bool = False) -> list[Item]:
    """The cleaner alone, or behind a tag reader as in the whole path."""
    cleaner = Cleaner(policy)
    if not read_tags:
        return [item for chunk in chunks for item in cleaner.feed(chunk)] + cleaner.flush()
    reader = TagReader()
    raw = [item for chunk in chunks for item in reader.feed(chunk)] + reader.flush()
    return [item for one in raw for item in cleaner.feed(one)] + cleaner.flush()


def spoken(items: list[Item]) -> str:
    return "".join(item.text for item in items if isinstance(item, Run))


def folded(text: str) -> str:
    return " ".join(text.split())


def characters(items: list[Item]) -> list[object]:
    """Runs as single characters with their raw spans, so that it does not matter how they were cut."""
    singles: list[object] = []
    for item in items:
        if isinstance(item, Run) and item.verbatim:
            singles += [(character, item.start + i) for i, character in enumerate(item.text)]
        elif isinstance(item, Run):
            singles += [(character, item.start, item.end) for character in item.text]
        else:
            singles.append(item)
    return singles


def outline(items: list[Item]) -> list[str]:
    """Text and boundaries, in short: ``heading: Title``."""
    lines = [""]
    for item in items:
        if isinstance(item, Boundary):
            lines.append(f"{item.kind}: ")
        elif isinstance(item, Run):
            lines[-1] += item.text
        else:
            lines[-1] += f"<{item.name}>"
    return [line.strip() for line in lines if line.partition(": ")[2] or (line.strip() and not line.endswith(": "))]


def assert_spans_are_exact(items: list[Item], text: str) -> None:
    for item in items:
        if isinstance(item, Run):
            assert 0 <= item.start <= item.end <= len(text)
            assert not item.verbatim or text[item.start : item.end] == item.text
    starts = [item.start for item in items if isinstance(item, Run)]
    assert starts == sorted(starts)


@pytest.mark.parametrize("read_tags", [False, True], ids=["alone", "behind the reader"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_spoken(case: dict[str, Any], size: int | None, read_tags: bool) -> None:
    text = case["text"]
    items = clean(chunked(text, size), SpeakablePolicy(**case.get("policy", {})), read_tags=read_tags)
    assert folded(spoken(items)) == folded(case["spoken"])
    assert_spans_are_exact(items, text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# Title\nHello.", ["heading: Title", "None: Hello."]),
        ("Hi.\n\n- one\n- two\n\nAfter.", ["Hi.", "list_item: one", "list_item: two", "None: After."]),
        ("Hi.\n1. one\n2. two", ["Hi.", "list_item: 1. one", "list_item: 2. two"]),
        ("- one\n  goes on\n- two\nThat is all.", ["list_item: one\ngoes on", "list_item: two", "None: That is all."]),
        ("- one\nand more", ["list_item: one\nand more"]),
        ("- 牛奶\n就这些。", ["list_item: 牛奶", "None: 就这些。"]),
        ("Try\n```\nls\n```\nDone", ["Try", "None: Done"]),
        ("Try:\n\n| a |\n|---|\n| b |\nDone", ["Try:", "None: Done"]),
        ("One\n\n---\n\nTwo", ["One", "None: Two"]),
        ("Title\n===\nText", ["Title", "None: Text"]),
        ("Sure<think>x</think>Then", ["Sure", "None: Then"]),
        ("<h2>T</h2>x<ul><li>a<li>b</ul>y", ["heading: T", "None: x", "list_item: a", "list_item: b", "None: y"]),
        ("✅ One\n🔹 Two\nstill", ["One", "None: Two\nstill"]),
        ("One line\nand the next.\n\nNew", ["One line\nand the next.\n\nNew"]),
    ],
)  # fmt: skip
def test_blocks_begin_with_boundaries(text: str, expected: list[str]) -> None:
    for size in SIZES:
        assert outline(clean(chunked(text, size))) == expected


def test_blocks_that_are_read_have_their_kind() -> None:
    policy = SpeakablePolicy(code="read", table="read")
    text = "Try\n```\nls -l\n```\nDone\n| a | b |\n|---|---|\n| 1 | |\nEnd"
    assert outline(clean([text], policy)) == ["Try", "code: ls -l", "None: Done", "None: a, b", "None: 1,", "None: End"]


def test_replaced_text_stands_for_its_raw_span() -> None:
    text = "See https://a.b/c, Tom &amp; Ann\n```\nls\n```"
    items = clean([text], SpeakablePolicy(code="mention"))
    replaced = {item.text: text[item.start : item.end] for item in items if isinstance(item, Run) and not item.verbatim}
    assert replaced == {"link": "https://a.b/c", "&": "&amp;", "code": ""}


def test_tags_keep_their_places() -> None:
    text = "[speed_0.8]**Hi** [break_300]there [break_100]! - 🎉[pitch_+2]x <think>[speed_2]</think>y[volume_2]"
    assert outline(clean([text], read_tags=True)) == ["<speed>Hi <break>there<break>! - <pitch>x", "None: y<volume>"]


@pytest.mark.parametrize("hidden", ["<tool_call>", "<!-- ", "<script>"])
def test_tags_inside_what_is_left_out_have_no_effect(hidden: str) -> None:
    cleaner = Cleaner()
    items = cleaner.feed(f"a {hidden}") + cleaner.feed(Tag("speed", 2.0)) + cleaner.feed("b") + cleaner.flush()
    assert not any(isinstance(item, Tag) for item in items)


def test_literal_runs_are_no_markup() -> None:
    cleaner = Cleaner()
    runs = [
        Run("a ", 0, 2),
        Run("*", 3, 4, literal=True),
        Run("b", 4, 5),
        Run("*", 6, 7, literal=True),
        Run(" c", 7, 9),
    ]
    items = [item for run in runs for item in cleaner.feed(run)] + cleaner.flush()
    assert spoken(items) == "a *b* c"
    assert [(item.start, item.end) for item in items if isinstance(item, Run) and "*" in item.text] == [(3, 4), (6, 7)]


@pytest.mark.parametrize(
    "opened", ["**bold", "`code", "```\ncode", "<think>plan", "[label](http://", "- item", "# Head", '{"name": ']
)
def test_a_boundary_ends_what_is_open(opened: str) -> None:
    cleaner = Cleaner()
    boundary = Boundary(reason="tool call")
    before = cleaner.feed(opened) + cleaner.feed(boundary)
    assert before[-1] is boundary
    after = cleaner.feed("# Next *one*\nmore") + cleaner.flush()
    assert outline(after) == ["heading: Next one", "None: more"]
    assert_spans_are_exact([item for item in before + after if isinstance(item, Run)], opened + "# Next *one*\nmore")


def test_reset_starts_a_new_stream() -> None:
    cleaner = Cleaner()
    cleaner.feed("a ```\n- **x")
    cleaner.reset()
    assert cleaner.feed("Hello ") + cleaner.feed("you.") + cleaner.flush() == [
        Run("Hello", 0, 5),
        Run(" ", 5, 6),
        Run("you.", 6, 10),
    ]
    assert cleaner.take_skipped() == []


def test_reports_what_was_left_out_and_why() -> None:
    cleaner = Cleaner()
    text = "<think>plan</think>Hi 👨\u200d👩\u200d👧 [1], [docs](http://x) https://y.z <b>x</b>\n"
    text += "```py\nls\n```\n| a | b |\n\n...\n\nEnd <!-- c"
    for character in text:
        cleaner.feed(character)
    cleaner.flush()
    assert [(skipped.kind, skipped.excerpt) for skipped in cleaner.take_skipped()] == [
        ("reasoning", "<think>plan</think>"),
        ("emoji", "👨\u200d👩\u200d👧"),
        ("citation", "[1]"),
        ("link", "](http://x)"),
        ("url", "https://y.z"),
        ("html", "<b>"),
        ("html", "</b>"),
        ("code", "```py\nls\n```"),
        ("table", "| a | b |"),
        ("marks", "..."),
        ("comment", "<!-- c"),
    ]
    assert cleaner.take_skipped() == []


def test_the_report_is_bounded_and_has_raw_spans() -> None:
    cleaner = Cleaner()
    cleaner.feed("Hi " + "[1] x " * 1000)
    skipped = cleaner.take_skipped()
    assert len(skipped) == 256
    assert skipped[-1] == Skipped("citation", "citation", 3 + 999 * 6, 3 + 999 * 6 + 3, "[1]")


def test_a_policy_that_is_not_known_is_refused() -> None:
    with pytest.raises(InputError, match="'url' cannot be 'shout': use one of link, skip, read"):
        SpeakablePolicy(url="shout")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "given_out"),
    [
        ("Hello world, this is plain", "Hello world, this is plain"),
        ("你好，世界！", "你好，世界！"),
        ("It ends. ", "It ends."),
        ("See h", "See "),
        ("It costs 5", "It costs "),
        ("Well that", "Well that"),
        ("Hi **bold text", "Hi "),
        ("Hi **a text in bold that goes on and on for more than its bound of 64 chars", None),
        ("Call `foo", "Call "),
        ("See [the docs", "See "),
        ("5 < 6 and", "5 < 6 and"),
        ("a # b & c | d", "a # b & c | d"),
        ("Hi <think>secret", "Hi "),
        ("One.\nTwo", "One.\nTwo"),
        ("One.\n- T", "One.\nT"),
    ],
)
def test_plain_text_passes_at_once_and_marks_are_held(text: str, given_out: str | None) -> None:
    """None: everything is given, without its marks."""
    cleaner = Cleaner()
    got = "".join(spoken(cleaner.feed(character)) for character in text)
    assert got.rstrip() == (text.replace("**", "") if given_out is None else given_out).rstrip()


@settings(max_examples=examples(60))
@given(
    st.lists(st.sampled_from(MARKUP), max_size=25).map("".join) | st.text(max_size=60),
    st.sampled_from(POLICIES),
    st.booleans(),
    st.data(),
)
def test_chunks_make_no_difference(text: str, policy: SpeakablePolicy, read_tags: bool, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=12)))
    whole = clean([text], policy, read_tags=read_tags)
    assert_spans_are_exact(whole, text.replace("\ufdd0", "\ufffd"))
    chunks = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert characters(clean(chunks, policy, read_tags=read_tags)) == characters(whole)
    assert characters(clean(list(text), policy, read_tags=read_tags)) == characters(whole)


@settings(max_examples=examples(60))
@given(st.lists(st.sampled_from(MARKUP), max_size=25).map("".join) | st.text(max_size=60))
def test_every_block_has_something_to_say(text: str) -> None:
    """Text between boundaries and blank lines has a letter or digit, or is not given; nothing without a shape is."""
    items = clean([text])
    said = ""
    for item in [*items, Boundary()]:
        if isinstance(item, Run):
            said += item.text
        elif isinstance(item, Boundary):
            for block in said.split("\n\n"):
                assert not block.strip() or any(character.isalnum() for character in block), (text, said)
            said = ""
    assert not any(character in "\u200d\ufe0f\u200b\x00\ud83d" for character in spoken(items)) or "`" in text


@settings(max_examples=examples(60))
@given(st.lists(st.sampled_from(MARKUP), max_size=25).map("".join))
def test_the_whole_path_loses_nothing_of_what_the_cleaner_gives(text: str) -> None:
    items = clean([text], read_tags=True)
    splitter = SentenceSplitter()
    pieces = [piece for item in items for piece in splitter.feed(item)] + splitter.flush()
    assert "".join("".join(piece.text for piece in pieces).split()) == "".join(spoken(items).split())


@pytest.mark.parametrize("file", sorted(CORPUS.iterdir()), ids=lambda file: file.name)
def test_the_fuzz_corpus_keeps_its_promises(file: Path) -> None:
    check(file.read_bytes())


HOSTILE = {
    "no blank": "a" * 1_000_000,
    "brackets": "[" * 20_000,
    "stars": "*" * 100_000,
    "openers": "*a " * 10_000,
    "underscores": "_a " * 10_000,
    "angles": "<" * 50_000,
    "reasoning": "<think>" + "x y " * 50_000,
    "tool calls": "[TOOL_CALLS] [{" + '"a": 1, ' * 20_000,
    "json": '{"name": "' + "x" * 200_000,
    "other json": '{"q": "' + "x" * 200_000,
    "url": "http://" + "a/" * 50_000,
    "url of brackets": "http://a" + ")" * 50_000,
    "blanks": "a" + " " * 100_000,
    "newlines": "a" + "\n" * 100_000,
    "marks": "." * 100_000,
    "fence": "```\n" + "x y\n" * 20_000,
    "cells": "| a " * 20_000,
    "bullets": "- " * 20_000,
    "quotes": "> " * 20_000,
    "emoji": "😊" * 50_000,
    "images": "![" * 10_000,
    "links": "[a](" * 10_000,
    "tags": "<a " * 10_000,
    "comment": "<!--" * 10_000,
    "entities": "&" * 20_000,
    "data image": "![x](data:image/png;base64," + "A" * 200_000 + ")",
    "prosody": '<prosody rate="90%">a' * 5_000,
}


@pytest.mark.parametrize("size", [5, None])
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_takes_linear_time_and_little_memory(text: str, size: int | None) -> None:
    start_s = time.process_time()
    reader, cleaner = TagReader(), Cleaner()
    for chunk in chunked(text, size):
        for item in reader.feed(chunk):
            cleaner.feed(item)
        page = cleaner._page
        assert len(page.window.text) <= 2100
        assert len(page.output.tail) <= 50
        assert len(page.output._asleep) <= 300
        assert len(page.opened) <= 32
    cleaner.flush()
    assert time.process_time() - start_s < 10
