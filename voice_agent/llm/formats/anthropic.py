"""Reads Anthropic Messages events, whole messages, and the events of its SDK's stream helper.

https://docs.anthropic.com/en/docs/build-with-claude/streaming
"""

from __future__ import annotations

from typing import Any

from voice_agent.llm.assembly import Assembly
from voice_agent.llm.chunks import block_text, count, field, items, plain, word

EVENTS = frozenset(
    {
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "ping",
    }
)
HELPER_EVENTS = frozenset({"text", "input_json", "thinking", "citation", "signature", "compaction"})
"""Events of the SDK's stream helper: they repeat the deltas and carry a ``snapshot`` or the like beside."""


def read(event: Any, assembly: Assembly) -> None:
    """Thinking, signatures, citations and tool input are not text; tools that the provider runs give only a break."""
    kind = field(event, "type")
    index = field(event, "index")
    if kind == "message_start":
        assembly.block("message")
        _message(field(event, "message"), assembly)
    elif kind == "message":
        _message(event, assembly)
    elif kind == "content_block_start":
        _block(index, field(event, "content_block"), assembly)
    elif kind == "content_block_delta":
        delta = field(event, "delta")
        if field(delta, "type") == "input_json_delta":
            if index not in assembly.streamed:
                assembly.call(index, arguments=field(delta, "partial_json"))
        else:
            assembly.text(block_text(delta))
    elif kind == "content_block_stop":
        assembly.close_call(index)
        assembly.block()
    elif kind == "message_delta":
        _usage(field(event, "usage"), assembly)
        assembly.finish(word(field(field(event, "delta"), "stop_reason")))


def _message(message: Any, assembly: Assembly) -> None:
    for index, block in enumerate(items(field(message, "content"))):
        _block(index, block, assembly)
        assembly.close_call(index)
    _usage(field(message, "usage"), assembly)
    if reason := word(field(message, "stop_reason")):
        assembly.finish(reason)


def _block(index: Any, block: Any, assembly: Assembly) -> None:
    kind = field(block, "type")
    assembly.streamed.discard(index)
    if kind == "tool_use":
        assembly.call(index, id=field(block, "id"), name=field(block, "name"), arguments=plain(field(block, "input")) or None)
    elif isinstance(kind, str) and kind.endswith("_tool_use"):
        assembly.streamed.add(index)
        assembly.hidden_call()
    else:
        assembly.block()
        assembly.text(block_text(block))


def _usage(usage: Any, assembly: Assembly) -> None:
    assembly.usage(count(field(usage, "input_tokens")), count(field(usage, "output_tokens")))
