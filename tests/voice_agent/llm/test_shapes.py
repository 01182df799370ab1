"""Chunks of many providers, as dicts, objects and raw bodies; unknown shapes; our own deltas."""

from __future__ import annotations

import json
import queue
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from openai.types.chat import ChatCompletionChunk

from tests.llm_replay import Outcome, as_object, from_async, load_streams, outcome, read, recut
from voice_agent.errors import InputError, SourceError
from voice_agent.llm.any_stream import stream_deltas
from voice_agent.llm.deltas import Break, End, TextDelta, ToolCall

CASES = yaml.safe_load((Path(__file__).parent / "shapes.yaml").read_text(encoding="utf-8"))
each = pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])


def pieces(got: Outcome) -> list[str]:
    out = [""]
    for delta in got.deltas:
        if isinstance(delta, TextDelta):
            out[-1] += delta.text
        elif isinstance(delta, Break):
            out.append("")
    return [piece for piece in out if piece]


def check(case: dict[str, Any], got: Outcome) -> None:
    assert got.text == case["text"]
    assert got.tool_calls == case.get("calls", [])
    if "pieces" in case:
        assert pieces(got) == case["pieces"]
    if "error" in case:
        assert got.error is not None
        assert case["error"] in str(got.error)
        assert got.error.retryable is case.get("retryable", got.error.retryable)
    else:
        if got.error is not None:
            raise got.error
        end = got.deltas[-1]
        assert isinstance(end, End)
        assert "reason" not in case or end.reason == case["reason"]


@each
async def test_dicts(case: dict[str, Any]) -> None:
    check(case, await read(from_async(case["chunks"])))


@each
async def test_objects(case: dict[str, Any]) -> None:
    check(case, await read(from_async([as_object(chunk) for chunk in case["chunks"]])))


@each
async def test_raw_sse(case: dict[str, Any]) -> None:
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in case["chunks"])
    for size in (1, 3, 100, None):
        check(case, await read(from_async(recut(body, size))))


@each
async def test_one_chunk_at_a_time_is_the_same(case: dict[str, Any]) -> None:
    """What a chunk completes is given before the next one is read."""
    source: queue.Queue[Any] = queue.Queue()
    for chunk in (*case["chunks"], None):
        source.put(chunk)
    check(case, await read(source))


async def test_pydantic_objects() -> None:
    for stream in load_streams("openai_chat"):
        chunks = [ChatCompletionChunk.model_validate(c) for c in stream.chunks if "choices" in c]
        got = await read(from_async(chunks))
        assert got.text == stream.expected_text
        assert got.tool_calls == list(stream.expected_tool_calls)


async def test_single_chunks_and_responses() -> None:
    whole = {"object": "chat.completion", "choices": [{"message": {"content": "Hi."}, "finish_reason": "stop"}]}
    for source in (whole, as_object(whole), ChatCompletionChunk.model_construct(**as_object(whole).__dict__)):
        assert (await read(source)).text == "Hi."
    assert (await read(SimpleNamespace(text="Hi."))).text == "Hi."
    assert (await read(TextDelta("Hi."))).text == "Hi."


async def test_deltas_in_a_stream() -> None:
    call = ToolCall("f", {"a": 1}, "id")
    got = await read([TextDelta("A"), Break("tool_call"), call, "B", TextDelta(""), End("stop", 1, 2)])
    assert got.deltas == [TextDelta("A"), Break("tool_call"), call, TextDelta("B"), End("stop", 1, 2)]


async def test_langgraph_tuples() -> None:
    chunk = {"type": "AIMessageChunk", "content": "Hi", "tool_call_chunks": [], "response_metadata": {}}
    metadata = {"langgraph_node": "agent"}
    for item in ((chunk, metadata), ("messages", (chunk, metadata)), (("ns:1",), "messages", (chunk, metadata))):
        assert (await read([("values", {"messages": ["state"]}), item])).text == "Hi"


async def test_sse_event_objects() -> None:
    events = [
        SimpleNamespace(event="message", data=json.dumps({"choices": [{"delta": {"content": "Hi"}}]}), id="", retry=None),
        SimpleNamespace(event="message", data="[DONE]", id="", retry=None),
        SimpleNamespace(event="message", data=json.dumps({"choices": [{"delta": {"content": "no"}}]}), id="", retry=None),
    ]
    assert (await read(from_async(events))).text == "Hi"


async def test_null_content_is_never_spoken() -> None:
    chunks = [None, {"choices": [{"delta": {"content": None}}]}, {"choices": []}, {"choices": None}, "", "ok"]
    assert (await read(chunks)).text == "ok"


@pytest.mark.parametrize("item", [3, 2.5, object(), ["x"], {"a": 1}, {}, SimpleNamespace(a=1), True])
async def test_unknown_shapes_show_themselves(item: object) -> None:
    with pytest.raises(SourceError, match="unknown shape") as caught:
        [delta async for delta in stream_deltas([item])]
    assert type(item).__name__ in str(caught.value)
    assert "format=" in str(caught.value)
    assert not caught.value.retryable


async def test_unknown_source() -> None:
    with pytest.raises(SourceError, match="unknown shape"):
        [delta async for delta in stream_deltas(12)]


async def test_shape_hides_secrets_and_stays_short() -> None:
    chunk = {
        "api_key": "hunter2hunter2",
        "authorization": "Bearer abcdefgh",
        "note": "sk-abcdefghijklmnop " + "x" * 5000,
        **{f"field_{i}": [1, 2, 3] for i in range(100)},
    }
    got = await read([chunk])
    said = str(got.error)
    assert "hunter2" not in said
    assert "abcdefgh" not in said
    assert "note" in said
    assert len(said) < 1500


def test_unknown_format_is_refused_at_once() -> None:
    with pytest.raises(InputError, match="openai_chat"):
        stream_deltas([], format="openai")


async def test_named_format_pins_the_reader() -> None:
    got = await read([{"message": {"content": "Hi"}}], "ollama")
    assert got.text == "Hi"


async def test_endless_arguments_are_bounded() -> None:
    def chunks() -> Any:
        yield {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": "{"}}]}}]}
        while True:
            yield {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": "x" * 10_000}}]}}]}

    got = await read(chunks())
    assert got.error is not None
    assert "longer than" in str(got.error)


async def test_properties_that_raise_are_no_fields() -> None:
    class Response:
        text = "Hi"

        @property
        def content(self) -> str:
            raise ValueError("no parts")

    assert (await outcome(stream_deltas([Response()]))).text == "Hi"
