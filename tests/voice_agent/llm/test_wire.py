"""Strings: plain text is told from raw SSE and JSON lines, nothing is lost, and every cut gives the same."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.llm_replay import SIZES, from_async, read, recut
from voice_agent.llm.deltas import TextDelta
from voice_agent.llm.shapes import ChunkReader

CHUNK = json.dumps({"choices": [{"index": 0, "delta": {"content": "Hi"}}]})
LINE = json.dumps({"model": "m", "message": {"role": "assistant", "content": "Hi"}, "done": False})

PLAIN = [
    "",
    " ",
    "\n\n Hello",
    "{",
    "{}",
    "{name} is here",
    '{"city": "Paris"}',
    '{"name": "get_weather", "arguments": {"city": "Paris"}}',
    '{"id": 5, "note": "an answer that is JSON"}',
    '{"type": "text", "text": "an answer that is JSON"}',
    '{"content": "an answer"}',
    '{"model": "unfinished',
    '{"model": }',
    "[break_500] Hello",
    "[1] first",
    "[",
    "[]",
    "[ {",
    "data",
    "data: 5 apples and 3 pears",
    "data:",
    "data:\n\ntext",
    "event: a party tonight",
    "event: party\nand more",
    "id: 5",
    "retry: never",
    ":",
    ":)",
    ":D how nice",
    ": a colon first",
    "datas are plural",
    "e",
    "\ufeffdata",
    "```json\n{}\n```",
    '"quoted"',
    "你好。",
    "\x00\x01",
    "\ud83d",
]

WIRE = [
    f"data: {CHUNK}\n\n",
    f"data:{CHUNK}\n\n",
    f"data: {CHUNK}",
    f"\n\ndata: {CHUNK}\n\n",
    f"\ufeffdata: {CHUNK}\n\n",
    f": keep-alive\n\n: OPENROUTER PROCESSING\n\ndata: {CHUNK}\n\ndata: [DONE]\n\n",
    f":\n\n:ok\r\rdata: {CHUNK}\r\r",
    f"event: message\nid: 7\nretry: 3000\ndata: {CHUNK}\n\n",
    "\n".join(f"data: {line}" for line in json.dumps(json.loads(CHUNK), indent=1).split("\n")) + "\n\n",
    f"{LINE}\n",
    LINE,
    f" \n{LINE}\r\n",
    f"[{LINE}]",
    json.dumps([json.loads(LINE)], indent=2),
]


def cuts(text: str) -> list[list[str]]:
    return [recut(text, size) for size in SIZES]


@pytest.mark.parametrize("text", PLAIN)
async def test_plain_text_stays_as_it_is(text: str) -> None:
    expected = text.removeprefix("\ufeff") if text == "\ufeff" else text
    for pieces in cuts(text):
        got = await read(from_async(pieces))
        assert got.error is None
        assert got.text == expected
    assert (await read(text)).text == expected


@pytest.mark.parametrize("text", WIRE)
async def test_wire_is_recognised(text: str) -> None:
    for pieces in cuts(text):
        got = await read(from_async(pieces))
        assert got.error is None
        assert got.text == "Hi"
    assert (await read(text)).text == "Hi"
    assert (await read(text.encode())).text == "Hi"


@pytest.mark.parametrize("text", WIRE)
async def test_text_format_takes_everything_as_it_is(text: str) -> None:
    for pieces in cuts(text):
        assert (await read(from_async(pieces), "text")).text == text


@given(st.lists(st.text(max_size=20), max_size=20))
async def test_any_strings_joined_are_the_text(pieces: list[str]) -> None:
    """Only strings that begin like SSE or JSON of a known format are anything but text."""
    got = await read(from_async(["Say: ", *pieces]))
    assert got.text == "".join(["Say: ", *pieces])


@given(st.text(alphabet='{}[]":,dateivnr \n\\\r0', max_size=60), st.integers(1, 9))
async def test_any_cut_of_anything_is_the_same(text: str, size: int) -> None:
    whole = await read(text)
    again = await read(from_async(recut(text, size)))
    assert (again.text, again.error is None) == (whole.text, whole.error is None)


@given(
    st.lists(st.text(max_size=12), min_size=1, max_size=8),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.booleans(),
    st.lists(st.integers(1, 30), min_size=1, max_size=6),
)
async def test_any_text_survives_sse(texts: list[str], line_end: str, ascii_only: bool, sizes: list[int]) -> None:
    events = [{"choices": [{"delta": {"content": text}}]} for text in texts]
    body = "".join(f"data: {json.dumps(event, ensure_ascii=ascii_only)}{line_end * 2}" for event in events)
    pieces, at, turn = [], 0, 0
    while at < len(body):
        pieces.append(body[at : at + sizes[turn % len(sizes)]])
        at, turn = at + sizes[turn % len(sizes)], turn + 1
    assert (await read(from_async(pieces))).text == "".join(texts)


@given(st.binary(max_size=40), st.integers(1, 5))
async def test_any_bytes_are_utf8_with_faults_replaced(data: bytes, size: int) -> None:
    pieces = [b"Say: ", *recut(data, size)]
    assert (await read(from_async(pieces))).text == (b"Say: " + data).decode("utf-8", "replace")


async def test_first_words_come_at_once() -> None:
    """Held back only while the start can still become SSE or JSON."""
    held_at_most = {"Hello": 0, "{name}": 1, '{"city": 1}': 3, ":D hi": 2, "data is": 4, "event!": 5}
    for text, held in held_at_most.items():
        reader = ChunkReader()
        at = next(i for i in range(len(text)) if list(reader.feed(text[i])))
        assert at <= held, text


async def test_events_come_at_once() -> None:
    """An event is given with the piece that completes its data, before the blank line."""
    reader = ChunkReader()
    assert list(reader.feed(f"data: {CHUNK}")) == [TextDelta("Hi")]
    assert list(reader.feed(f"\n\ndata: {CHUNK}\n")) == [TextDelta("Hi")]
    assert list(reader.feed("\n")) == []
    reader = ChunkReader()
    assert list(reader.feed(LINE)) == [TextDelta("Hi")]


async def test_nothing_is_read_after_done() -> None:
    taken = []

    async def endless() -> object:
        for piece in (f"data: {CHUNK}\n\n", "data: [DONE]\n\n", "data: {}\n\n", "data: {}\n\n"):
            taken.append(piece)
            yield piece

    got = await read(endless())
    assert got.text == "Hi"
    assert got.error is None
    assert len(taken) == 2


@pytest.mark.parametrize(
    "rest",
    [
        'data: {"choices": [{"de',
        f"data: {CHUNK[:-1]}",
        f"data: {CHUNK}\n\ndata: {{",
        'event: x\ndata: {"a":\ndata: "b"',
    ],
)
async def test_torn_sse_is_an_error(rest: str) -> None:
    got = await read(from_async([f"data: {CHUNK}\n\n", rest]))
    assert got.text.startswith("Hi")
    assert got.error is not None
    assert got.error.retryable
    assert "ended inside" in str(got.error)


async def test_torn_json_is_an_error() -> None:
    got = await read(from_async([f"{LINE}\n", LINE[:-4]]))
    assert got.text == "Hi"
    assert got.error is not None
    assert got.error.retryable


async def test_broken_events_are_errors() -> None:
    for pieces in (
        [f"data: {CHUNK}\n\n", "data: {oops}\n\n"],
        [f"{LINE}\n", "<html>502 Bad Gateway</html>\n"],
        [LINE, "{x}"],
    ):
        got = await read(from_async(pieces))
        assert got.text == "Hi"
        assert got.error is not None


async def test_error_events() -> None:
    for event in ('event: error\ndata: {"message": "overloaded"}\n\n', "event: error\ndata: overloaded\n\n"):
        got = await read(from_async([f"data: {CHUNK}\n\n", event]))
        assert got.text == "Hi"
        assert "overloaded" in str(got.error)


async def test_plain_text_events_by_name() -> None:
    got = await read("data: Hello\n\ndata:  there\ndata: friend\n\ndata: [DONE]\n\n", "sse")
    assert got.text == "Hello there\nfriend"


async def test_strings_of_a_named_chunk_format_are_wire() -> None:
    assert (await read(f": hi\n\ndata: {CHUNK}\n\n", "openai_chat")).text == "Hi"
    assert (await read(LINE, "ollama")).text == "Hi"
    assert (await read(LINE, "ndjson")).text == "Hi"


async def test_bytes_cut_inside_a_character() -> None:
    data = "你好，世界👍".encode()
    for size in (1, 2, 3, 5):
        assert (await read(from_async(recut(data, size)))).text == "你好，世界👍"
    assert (await read(b"\xef\xbb\xbfHi")).text == "Hi"
    assert (await read(bytearray(b"Hi"))).text == "Hi"
    assert (await read(memoryview(b"Hi"))).text == "Hi"
    assert (await read(b"cut \xe4\xbd")).text == "cut \ufffd"


@pytest.mark.parametrize("size", [4, 1000])
async def test_time_is_linear(size: int) -> None:
    """Long streams and long lines: a quarter of a megabyte of each kind takes a fraction of a second."""
    bodies = {
        "text": "word " * 50_000,
        "one long event": f"data: {json.dumps({'choices': [{'delta': {'content': 'x{}' * 80_000}}]})}\n\n",
        "one long object": json.dumps({"model": "m", "message": {"content": '{"a}' * 50_000}, "done": False}),
        "one open brace": "{" * 250_000,
        "colons": ":" * 250_000,
        "newlines": "\n" * 250_000,
    }
    for name, body in bodies.items():
        pieces = recut(body, size)
        started = time.perf_counter()
        got = await read(pieces)
        assert got.error is None, name
        assert time.perf_counter() - started < 5, name


async def test_endless_event_is_refused() -> None:
    def body() -> object:
        yield 'data: {"choices": ["'
        while True:
            yield "x" * 100_000

    got = await read(body())
    assert got.error is not None
    assert "longer than" in str(got.error)
