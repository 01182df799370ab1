"""Recorded LLM streams as test data: their chunks in any shape, their timing, and what must come out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import yaml

from voice_agent.errors import SourceError
from voice_agent.llm.any_stream import stream_deltas
from voice_agent.llm.deltas import Delta, TextDelta, ToolCall

STREAMS = Path(__file__).parent / "cases" / "llm_streams"
S = TypeVar("S", str, bytes)
SIZES = (1, 2, 3, 7, 50, None)


@dataclass(frozen=True)
class RecordedStream:
    """One recording: ``chunks`` as they came from the wire (dicts, or strings for "sse" and "text")."""

    id: str
    format: str
    inner: str | None
    chunks: tuple[Any, ...]
    delay_ms: tuple[float, ...]
    expected_text: str
    expected_spoken_pieces: tuple[str, ...]
    expected_tool_calls: tuple[dict[str, Any], ...]
    expected_error: bool
    optional_tail: str | None

    @property
    def is_strings(self) -> bool:
        return self.format in ("sse", "text")

    def as_sse(self) -> str:
        """The body of the HTTP response that a server of this format sends."""
        if self.format == "sse":
            return "".join(self.chunks)
        named = self.format in ("openai_responses", "anthropic_messages")
        events = [(f"event: {chunk['type']}\n" if named else "") + f"data: {json.dumps(chunk)}\n\n" for chunk in self.chunks]
        return "".join(events) + "data: [DONE]\n\n" * (self.format == "openai_chat")

    def as_ndjson(self) -> str:
        return "".join(json.dumps(chunk, ensure_ascii=False) + "\n" for chunk in self.chunks)


def load_stream(sidecar: Path) -> RecordedStream:
    """Reads ``NAME.yaml`` and the ``.jsonl`` that it names."""
    case = yaml.safe_load(sidecar.read_text(encoding="utf-8"))
    lines = (sidecar.parent / case["stream"]).read_text(encoding="utf-8").split("\n")
    return RecordedStream(
        id=case["id"],
        format=case["format"],
        inner=case.get("inner"),
        chunks=tuple(json.loads(line) for line in lines if line.strip()),
        delay_ms=tuple(case.get("delay_ms", ())),
        expected_text=case["expected_text"],
        expected_spoken_pieces=tuple(case["expected_spoken_pieces"]),
        expected_tool_calls=tuple(case.get("expected_tool_calls", ())),
        expected_error=case.get("expected_error", False),
        optional_tail=case.get("optional_tail"),
    )


def load_streams(*formats: str) -> list[RecordedStream]:
    """All recordings, or those of the named formats."""
    streams = [load_stream(sidecar) for sidecar in sorted(STREAMS.glob("*.yaml"))]
    return [stream for stream in streams if not formats or stream.format in formats]


def recut(body: S, size: int | None) -> list[S]:
    """A string or bytes cut every ``size``; None: in one piece."""
    return [body] if size is None else [body[at : at + size] for at in range(0, len(body), size)]


def as_object(value: Any) -> Any:
    """Dicts as objects with attributes, all the way down."""
    if isinstance(value, dict):
        return SimpleNamespace(**{key: as_object(inner) for key, inner in value.items()})
    if isinstance(value, list):
        return [as_object(inner) for inner in value]
    return value


async def replay(
    stream: RecordedStream,
    *,
    chunks: Sequence[Any] | None = None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    scale: float = 1.0,
) -> AsyncIterator[Any]:
    """The chunks with their recorded waits, by ``sleep`` (seconds), which a virtual clock may replace."""
    for position, chunk in enumerate(stream.chunks if chunks is None else chunks):
        if position < len(stream.delay_ms):
            await sleep(stream.delay_ms[position] * scale / 1000)
        yield chunk


@dataclass
class Outcome:
    """What came out of a stream."""

    deltas: list[Delta]
    error: SourceError | None = None

    @property
    def text(self) -> str:
        return "".join(delta.text for delta in self.deltas if isinstance(delta, TextDelta))

    @property
    def tool_calls(self) -> list[dict[str, Any]]:
        return [{"name": d.name, "arguments": d.arguments} for d in self.deltas if isinstance(d, ToolCall)]


async def outcome(deltas: AsyncIterator[Delta]) -> Outcome:
    """Reads the stream to its end or its error."""
    got = Outcome([])
    try:
        async for delta in deltas:
            got.deltas.append(delta)
    except SourceError as error:
        got.error = error
    return got


async def read(source: Any, format: str | None = None) -> Outcome:
    return await outcome(stream_deltas(source, format=format))


def check(stream: RecordedStream, got: Outcome) -> None:
    """Asserts that the outcome is what the recording says."""
    assert got.text == stream.expected_text
    assert got.tool_calls == list(stream.expected_tool_calls)
    if stream.expected_error:
        assert got.error is not None, "the error did not reach the caller"
    elif got.error is not None:
        raise got.error


async def from_async(items: Iterable[Any]) -> AsyncIterator[Any]:
    for item in items:
        yield item
