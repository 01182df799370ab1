"""Reads the items of an LLM stream one by one, whatever their shape, and gives deltas: the wire format is told by the
chunk.
"""

from __future__ import annotations

import codecs
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any, Literal, get_args

from voice_agent.errors import InputError
from voice_agent.llm.assembly import Assembly
from voice_agent.llm.chunks import field, has, items
from voice_agent.llm.deltas import Break, Delta, End, TextDelta, ToolCall
from voice_agent.llm.failures import from_chunk, shape_of, unknown_shape
from voice_agent.llm.formats import anthropic, cohere, gemini, langchain, ollama, openai_chat, openai_responses, simple
from voice_agent.llm.wire import DONE, JsonDecoder, SseDecoder, WireDecoder

log = logging.getLogger(__name__)

ChunkFormat = Literal[
    "openai_chat", "openai_responses", "anthropic_messages", "ollama", "gemini", "cohere", "langchain", "simple"
]
WireFormat = Literal["text", "sse", "ndjson"]
FORMATS: tuple[str, ...] = (*get_args(WireFormat), *get_args(ChunkFormat))

_READERS: dict[ChunkFormat, Callable[[Any, Assembly], None]] = {
    "openai_chat": openai_chat.read,
    "openai_responses": openai_responses.read,
    "anthropic_messages": anthropic.read,
    "ollama": ollama.read,
    "gemini": gemini.read,
    "cohere": cohere.read,
    "langchain": langchain.read,
    "simple": simple.read,
}
_IGNORED = object()
_GRAPH_MODES = frozenset({"values", "updates", "custom", "debug", "tasks", "checkpoints"})


class ChunkReader:
    """Turns the items of one stream into deltas. ``format`` None tells the format by the items themselves.

    Items are strings, bytes (UTF-8), chunk objects or mappings, and deltas, which pass. Strings are plain text, or the
    raw bytes of an SSE or NDJSON response cut anywhere: told by how the stream starts (see `voice_agent.llm.wire`).
    `feed` raises `SourceError` for an error chunk or an unknown shape, after it gave what came before.
    """

    def __init__(self, format: str | None = None, name: str = "the LLM stream") -> None:
        if format is not None and format not in FORMATS:
            raise InputError(f"unknown stream format {format!r}: use one of {', '.join(FORMATS)}, or None to detect it")
        self.done = False
        """The stream said that nothing more comes (``[DONE]``)."""
        self._fixed: ChunkFormat | None = next((name for name in _READERS if name == format), None)
        self._name = name
        self._known = self._fixed is not None
        self._warned = False
        self._assembly = Assembly()
        self._utf8 = codecs.getincrementaldecoder("utf-8-sig")("replace")
        self._wire = WireDecoder(_decoder(format), is_chunk)

    def feed(self, item: Any) -> Iterator[Delta]:
        """The deltas that this item completes."""
        if isinstance(item, bytes | bytearray | memoryview):
            yield from self._strings(self._wire.feed(self._utf8.decode(bytes(item))))
        elif isinstance(item, str):
            yield from self._strings(self._wire.feed(item))
        elif item is not None:
            yield from self._chunk(item)

    def cut_off(self) -> Iterator[Delta]:
        """What was held back when the source failed: text that might have become SSE or JSON."""
        yield from self._strings(self._wire.release())

    def flush(self) -> Iterator[Delta]:
        """The rest, and `End`. Raises `SourceError` where the stream was cut inside an event."""
        if rest := self._utf8.decode(b"", final=True):
            yield from self._strings(self._wire.feed(rest))
        yield from self._strings(self._wire.flush())
        self._assembly.close()
        yield from self._assembly.take()

    def _strings(self, parts: Iterator[Any]) -> Iterator[Delta]:
        for part in parts:
            if isinstance(part, str):
                self._assembly.text(part)
                yield from self._assembly.take()
            elif part is DONE:
                self.done = True
                return
            else:
                yield from self._chunk(part)

    def _chunk(self, chunk: Any) -> Iterator[Delta]:
        if isinstance(chunk, TextDelta):
            self._assembly.text(chunk.text)
        elif isinstance(chunk, Break | ToolCall):
            yield from self._assembly.take()
            yield chunk
        elif isinstance(chunk, End):
            self._assembly.usage(chunk.input_tokens, chunk.output_tokens)
            self._assembly.finish(chunk.reason)
        else:
            yield from self._wire_chunk(unwrapped(chunk))
        yield from self._assembly.take()

    def _wire_chunk(self, chunk: Any) -> Iterator[Delta]:
        if chunk is DONE:
            self.done = True
            return
        if chunk is _IGNORED:
            return
        if isinstance(chunk, str):
            self._assembly.text(chunk)
            return
        kind = self._fixed or classify(chunk)
        if kind is not None:
            self._known = True
            _READERS[kind](chunk, self._assembly)
            yield from self._assembly.take()
        if (error := error_in(chunk)) is not None:
            raise from_chunk(error, self._name)
        if kind is None:
            if not self._known:
                raise unknown_shape(chunk, FORMATS)
            if not self._warned:
                self._warned = True
                log.warning("left out a chunk of the LLM stream with an unknown shape: %s", shape_of(chunk))


def classify(chunk: Any) -> ChunkFormat | None:
    """The wire format that this chunk belongs to; None where it is none that we know."""
    if has(chunk, "choices"):
        return "openai_chat"
    kind = field(chunk, "type")
    if isinstance(kind, str):
        if kind.startswith("response."):
            return "openai_responses"
        if kind in anthropic.EVENTS or (kind in anthropic.HELPER_EVENTS and _is_helper_event(chunk)):
            return "anthropic_messages"
        if kind == "message" and isinstance(field(chunk, "content"), list | tuple):
            return "anthropic_messages"
        if kind in cohere.EVENTS:
            return "cohere"
        if kind.endswith("MessageChunk") or (kind in langchain.SPOKEN | langchain.SILENT and has(chunk, "content")):
            return "langchain"
    if field(chunk, "object") == "response":
        return "openai_responses"
    if any(field(chunk, name) is not None for name in gemini.FIELDS):
        return "gemini"
    if has(chunk, "done") and (field(chunk, "message") is not None or field(chunk, "response") is not None):
        return "ollama"
    if has(chunk, "content") and (has(chunk, "tool_call_chunks") or has(chunk, "response_metadata")):
        return "langchain"
    return "simple" if simple.knows(chunk) else None


def is_chunk(value: Any) -> bool:
    """Whether a JSON value is surely a chunk of an LLM's wire format, and not an answer that happens to be JSON."""
    return isinstance(value, dict) and (classify(value) not in (None, "simple") or error_in(value) is not None)


def error_in(chunk: Any) -> Any:
    """The error that the chunk carries (a text or an object), or None."""
    error = field(chunk, "error")
    if error is not None and not isinstance(error, bool | int) and error != "":
        return error
    for choice in items(field(chunk, "choices")):
        if field(choice, "finish_reason") == "error":
            return field(choice, "error") or "the provider stopped with an error"
    if has(chunk, "choices"):
        return None
    kind = field(chunk, "type")
    if kind == "response.failed":
        return field(field(chunk, "response"), "error") or "the response failed"
    return chunk if kind == "error" or field(chunk, "object") == "error" else None


def unwrapped(chunk: Any) -> Any:
    """The model's own chunk out of what frameworks wrap around it; `_IGNORED` for their other events."""
    while isinstance(chunk, tuple) and len(chunk) > 1:
        # LangGraph: (message, metadata), behind a namespace tuple and a mode where several are streamed.
        if isinstance(chunk[-1], tuple):
            chunk = chunk[-1]
        elif isinstance(chunk[-2], str):
            return _IGNORED if chunk[-2] in _GRAPH_MODES else chunk
        else:
            chunk = chunk[0]
    if has(chunk, "choices"):
        return chunk
    kind = field(chunk, "type")
    event = field(chunk, "event")
    data = field(chunk, "data")
    if kind == "chunk" and field(chunk, "chunk") is not None:
        return field(chunk, "chunk")
    if kind == "raw_response_event":
        return data
    if kind in ("run_item_stream_event", "agent_updated_stream_event"):
        return _IGNORED
    if isinstance(kind, str) and kind.startswith(openai_chat.HELPER_EVENTS):
        return _IGNORED
    if isinstance(event, str) and event.startswith("on_"):
        return field(data, "chunk") if event == "on_chat_model_stream" else _IGNORED
    if isinstance(data, str) and isinstance(event, str | None) and has(chunk, "retry"):
        return _sse_object(data)
    if data is not None and field(data, "choices") is not None:
        return data
    return chunk


def _sse_object(data: str) -> Any:
    if data.strip() == "[DONE]":
        return DONE
    try:
        return json.loads(data) if data.strip() else _IGNORED
    except (ValueError, RecursionError):
        return data


def _is_helper_event(event: Any) -> bool:
    return any(has(event, name) for name in ("snapshot", "partial_json", "thinking", "signature", "citation"))


def _decoder(format: str | None) -> SseDecoder | JsonDecoder | Literal["text", "wire"] | None:
    if format == "sse":
        return SseDecoder()
    if format in ("ndjson", "ollama"):
        return JsonDecoder()
    return "text" if format == "text" else "wire" if format is not None else None
