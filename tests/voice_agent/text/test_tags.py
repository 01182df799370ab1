"""The tag reader: what is a tag, exact offsets, the same answer for any chunking, and no tag left in the text."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.voice_agent.text.markup_fragments import MARKUP, TAGS, WITHOUT_ESCAPE
from tts_engine.types import Mark, Run, Tag
from voice_agent.text.pieces import Boundary, Item
from voice_agent.text.speakable import Cleaner
from voice_agent.text.tags import TagReader, render

TESTS = Path(__file__).parents[2]
CASES = [
    case
    for folder in ("cases", "cases_more")
    for case in yaml.safe_load((TESTS / folder / "tags.yaml").read_text(encoding="utf-8"))
]
SIZES = [1, 2, 3, 7, 50, None]


def chunked(text: str, size: int | None) -> list[str]:
    return [text] if size is None else [text[i : i + size] for i in range(0, len(text), size)]


def read(chunks: list[str], **options: Any) -> list[Item]:
    reader = TagReader(**options)
    return [item for chunk in chunks for item in reader.feed(chunk)] + reader.flush()


def parts(items: list[Item]) -> list[str | tuple[str, float]]:
    joined: list[str | tuple[str, float]] = []
    for item in items:
        if isinstance(item, Tag):
            joined.append((item.name, pytest.approx(item.value, abs=1e-6)))
        elif isinstance(item, Run) and joined and isinstance(joined[-1], str):
            joined[-1] += item.text
        elif isinstance(item, Run):
            joined.append(item.text)
    return joined


def characters(items: list[Item]) -> list[object]:
    """Runs as single characters with their raw offsets, so that it does not matter how they were cut."""
    return [
        single
        for item in items
        for single in (
            [(character, item.start + i, item.literal) for i, character in enumerate(item.text)]
            if isinstance(item, Run)
            else [item]
        )
    ]


def expected(case: dict[str, Any]) -> list[str | tuple[str, float]]:
    return [part if isinstance(part, str) else (part["tag"], part["value"]) for part in case["parts"]]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_parts(case: dict[str, Any], size: int | None) -> None:
    options = {"dialect": case["dialect"]} if "dialect" in case else {}
    items = read(chunked(case["text"], size), **options)
    assert parts(items) == expected(case)
    assert all(case["text"][item.start : item.end] == item.text for item in items if isinstance(item, Run))


@pytest.mark.parametrize("case", [case for case in CASES if "chunks" in case], ids=lambda case: case["id"])
def test_parts_in_given_chunks(case: dict[str, Any]) -> None:
    assert parts(read(case["chunks"])) == expected(case)


def test_tags_have_the_raw_span_of_what_was_written() -> None:
    text = 'a[break_300]b<prosody rate="90%">c</prosody>'
    spans = [text[item.start : item.end] for item in read([text]) if isinstance(item, Tag)]
    assert spans == ["[break_300]", '<prosody rate="90%">', "</prosody>"]


def test_warns_of_what_is_dropped_or_clamped() -> None:
    reader = TagReader()
    reader.feed("[speed_9]a[speed_fast]b[mood_3]c</prosody>d<break/>e[break_3")
    reader.flush()
    found = [(warning.excerpt, warning.reason.split(",")[0]) for warning in reader.take_warnings()]
    assert found == [
        ("[speed_9]", "speed 9 clamped to 2"),
        ("[speed_fast]", "dropped"),
        ("[mood_3]", "dropped"),
        ("</prosody>", "dropped"),
        ("<break/>", "dropped"),
        ("[break_3", "dropped"),
    ]
    assert reader.take_warnings() == []


def test_warnings_are_bounded() -> None:
    reader = TagReader()
    reader.feed("[mood_3]" * 1000)
    assert len(reader.take_warnings()) == 64


@pytest.mark.parametrize("opened", ["```\n", "`", "<think>", "[break_3", '{"name": '])
def test_a_boundary_ends_what_is_open(opened: str) -> None:
    boundary = Boundary(reason="tool call")
    reader = TagReader()
    before = reader.feed(opened) + reader.feed(boundary)
    assert before[-1] is boundary
    after = reader.feed("[speed_0.8]Hi") + reader.flush()
    start = len(opened)
    assert after == [Tag("speed", 0.8, start, start + 11), Run("Hi", start + 11, start + 13)]


def test_prosody_goes_on_over_a_boundary() -> None:
    reader = TagReader()
    items = [item for part in ("[speed_0.8]<prosody rate='2'>a", Boundary(), "b</prosody>c") for item in reader.feed(part)]
    assert [item.value for item in items if isinstance(item, Tag)] == [0.8, 2.0, 0.8]


def test_reset_starts_a_new_stream() -> None:
    reader = TagReader()
    reader.feed("[speed_0.8]```\nabc[bre")
    reader.reset()
    assert reader.feed('<prosody rate="2">x</prosody>') == [
        Tag("speed", 2, 0, 18),
        Run("x", 18, 19),
        Tag("speed", 1, 19, 29),
    ]


@settings(max_examples=examples(60))
@given(st.lists(st.sampled_from(MARKUP), max_size=25).map("".join) | st.text(max_size=60), st.data())
def test_chunks_make_no_difference(text: str, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=12)))
    whole = characters(read([text]))
    assert characters(read(list(text))) == whole
    assert characters(read([text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)])) == whole


TAG_LIKE = re.compile(
    r"[\[［]\s*(?:(?:speed|break|pause|pitch|volume)\s*[_:=]|uv_break|lbreak|laugh|[A-Za-z]\w*_[+-]?\d)|"
    r"</?(?:break|prosody|speak|expr)[\s/>]",
    re.IGNORECASE,
)


@settings(max_examples=examples(120))
@example("a[](", [(2, "[break_300]")], (0, "[break_300]"), 1)
@example("a[]()", [(2, "[break_300]")], (0, "a"), None)
@given(
    st.lists(st.sampled_from(WITHOUT_ESCAPE), max_size=20).map("".join),
    st.lists(st.tuples(st.integers(0, 200), st.sampled_from(TAGS)), min_size=1, max_size=6),
    st.tuples(st.integers(0, 200), st.sampled_from(TAGS)),
    st.sampled_from(SIZES),
)
def test_tags_never_leak(text: str, tags: list[tuple[int, str]], last: tuple[int, str], size: int | None) -> None:
    """Tags anywhere in a text, and one more that may stand inside another: none of it is left to be spoken."""
    for place, tag in sorted(((place % (len(text) + 1), tag) for place, tag in tags), reverse=True):
        text = text[:place] + tag + text[place:]
    place = last[0] % (len(text) + 1)
    text = text[:place] + last[1] + text[place:]
    cleaner = Cleaner()
    items = [clean for item in read(chunked(text, size)) for clean in cleaner.feed(item)] + cleaner.flush()
    # the label of a link is spoken even if it looks like a tag, and a bracket may happen to stand in front of it
    assume(all(skipped.kind != "link" for skipped in cleaner.take_skipped()))
    spoken = "".join(item.text for item in items if isinstance(item, Run))
    found = TAG_LIKE.search(spoken)
    assert found is None, (text, spoken)


@settings(max_examples=examples(60))
@given(
    st.lists(st.sampled_from(MARKUP), max_size=12).map("".join),
    st.lists(
        st.tuples(
            st.integers(0, 200),
            st.sampled_from([("speed", 0.5, 2.0), ("break", 0, 5000), ("pitch", -12, 12), ("volume", 0, 2)]),
            st.floats(0, 1),
        ),
        max_size=5,
    ),
)
def test_what_is_rendered_reads_back(text: str, tags: list[tuple[int, tuple[str, float, float], float]]) -> None:
    places = sorted(place % (len(text) + 1) for place, _, _ in tags)
    marks = [
        Mark(place, Tag(name, round(low + (high - low) * share, 3)))  # type: ignore[arg-type]
        for place, (_, (name, low, high), share) in zip(places, tags, strict=True)
    ]
    items = read([render(text, marks)])
    found, length = [], 0
    for item in items:
        if isinstance(item, Run):
            length += len(item.text)
        elif isinstance(item, Tag):
            found.append((length, item.name, pytest.approx(item.value, abs=1e-6)))
    assert "".join(item.text for item in items if isinstance(item, Run)) == text
    assert found == [(mark.index, mark.tag.name, mark.tag.value) for mark in marks]


def test_render() -> None:
    marks = [
        Mark(0, Tag("speed", 0.8)),
        Mark(3, Tag("break", 300)),
        Mark(3, Tag("pitch", 2)),
        Mark(5, Tag("volume", 0.5)),
    ]
    assert render("Hi there", marks) == "[speed_0.8]Hi [break_300][pitch_+2]th[volume_0.5]ere"
    assert render("Hi [x_1] there", marks[1:2], "chattts") == "Hi [uv_break] x_1  there"
    assert render("一二", [Mark(0, Tag("speed", 1.0)), Mark(1, Tag("break", 500))], "chattts") == "[speed_5]一[lbreak]二"
    assert render("x", []) == "x"


HOSTILE = {
    "no blank": "a" * 1_000_000,
    "brackets": "[" * 50_000,
    "angles": "<break " * 10_000,
    "never closed": '<break time="' + "x" * 200_000,
    "backticks": "`" * 100_000,
    "single backticks": "a` " * 30_000,
    "backslashes": "\\" * 100_000,
    "reasoning": "<think>" + "[speed_2] " * 30_000,
    "nested prosody": '<prosody rate="90%">' * 10_000 + "</prosody>" * 11_000,
    "tags": "[break_1]" * 20_000,
    "json": '{"name": "' + "[" * 100_000,
    "links": "[break_1](" * 10_000,
}


@pytest.mark.parametrize("size", [5, None])
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_takes_linear_time_and_little_memory(text: str, size: int | None) -> None:
    start_s = time.process_time()
    reader = TagReader()
    for chunk in chunked(text, size):
        reader.feed(chunk)
        assert len(reader._held) <= 1100
    reader.flush()
    assert len(reader._stack) <= 64
    assert time.process_time() - start_s < 10
