"""Every recorded stream, in every shape that it can arrive in, gives its text, its tool calls, its breaks and its
error.
"""

from __future__ import annotations

import asyncio
import json
import queue

import pytest

from tests.llm_replay import (
    SIZES,
    RecordedStream,
    as_object,
    check,
    from_async,
    load_streams,
    outcome,
    read,
    recut,
    replay,
)
from voice_agent.llm.any_stream import stream_deltas
from voice_agent.llm.deltas import Break, End, TextDelta

ALL = load_streams()
OBJECTS = [stream for stream in ALL if not stream.is_strings]
STRINGS = [stream for stream in ALL if stream.is_strings]
each = pytest.mark.parametrize("stream", ALL, ids=lambda stream: stream.id)
each_object = pytest.mark.parametrize("stream", OBJECTS, ids=lambda stream: stream.id)
each_string = pytest.mark.parametrize("stream", STRINGS, ids=lambda stream: stream.id)


@each
@pytest.mark.parametrize("named", [False, True])
async def test_async_iterator(stream: RecordedStream, named: bool) -> None:
    check(stream, await read(from_async(stream.chunks), stream.format if named else None))


@each
async def test_sync_iterator_and_list(stream: RecordedStream) -> None:
    check(stream, await read(iter(stream.chunks)))
    check(stream, await read(list(stream.chunks)))


@each_object
async def test_attribute_objects(stream: RecordedStream) -> None:
    objects = [as_object(chunk) for chunk in stream.chunks]
    check(stream, await read(from_async(objects)))
    check(stream, await read(iter(objects)))


@each
async def test_queues(stream: RecordedStream) -> None:
    waiting: asyncio.Queue[object] = asyncio.Queue()
    blocking: queue.Queue[object] = queue.Queue()
    for chunk in (*stream.chunks, None):
        waiting.put_nowait(chunk)
        blocking.put_nowait(chunk)
    check(stream, await read(waiting))
    check(stream, await read(blocking))


@each
async def test_recorded_timing(stream: RecordedStream) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    check(stream, await read(replay(stream, sleep=sleep)))
    assert sum(waits) == pytest.approx(sum(stream.delay_ms[: len(waits)]) / 1000)


@each_string
async def test_recut_strings_and_bytes(stream: RecordedStream) -> None:
    body = "".join(stream.chunks)
    for size in SIZES:
        check(stream, await read(from_async(recut(body, size))))
        check(stream, await read(from_async(recut(body, size)), stream.format))
        check(stream, await read(from_async(recut(body.encode(), size))))


@each_object
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
async def test_as_raw_sse(stream: RecordedStream, line_end: str) -> None:
    body = stream.as_sse().replace("\n", line_end)
    for size in SIZES:
        check(stream, await read(from_async(recut(body, size))))


@each_object
async def test_as_raw_ndjson(stream: RecordedStream) -> None:
    body = stream.as_ndjson().encode()
    for size in SIZES:
        check(stream, await read(from_async(recut(body, size))))
        check(stream, await read(from_async(recut(body, size)), "ndjson"))


@each_object
async def test_as_lines_without_line_ends(stream: RecordedStream) -> None:
    check(stream, await read(from_async(stream.as_sse().split("\n"))))
    check(stream, await read(from_async(line for line in stream.as_sse().split("\n") if line)))
    check(stream, await read(from_async(stream.as_ndjson().splitlines())))


@each_object
async def test_pretty_printed_array(stream: RecordedStream) -> None:
    check(stream, await read(from_async(recut(json.dumps(stream.chunks, indent=2), 5))))


@each
async def test_deltas_pass(stream: RecordedStream) -> None:
    check(stream, await outcome(stream_deltas(stream_deltas(from_async(stream.chunks)))))


@each
async def test_pieces_end_where_breaks_are(stream: RecordedStream) -> None:
    """Text on both sides of a tool call, message or block is never in one piece."""
    got = await read(from_async(stream.chunks))
    pieces, running = [], ""
    for delta in got.deltas:
        if isinstance(delta, TextDelta):
            running += delta.text
        elif isinstance(delta, Break) and running:
            pieces.append(running)
            running = ""
    if stream.id == "anthropic_thinking_search":
        assert pieces == ["Let me look that up", "The level is 2.5 m. It is falling."]
    if stream.id == "openai_responses_reasoning_tool":
        assert pieces == ["One moment.", "It is 7 p.m. in Oslo."]
    if stream.id == "openai_chat_tools_between":
        assert [*pieces, running] == ["我查一下天气。", "北京25℃，晴。要带伞吗？"]
    if not stream.expected_error:
        assert isinstance(got.deltas[-1], End)
        assert sum(isinstance(delta, End) for delta in got.deltas) == 1
