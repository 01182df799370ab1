"""Reads OpenAI Responses events and whole responses.

https://platform.openai.com/docs/api-reference/responses-streaming
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from voice_agent.llm.assembly import Assembly
from voice_agent.llm.chunks import block_text, count, field, first, items, word

_TEXT = {"response.output_text.delta", "response.refusal.delta"}
_TEXT_DONE = {"response.output_text.done", "response.refusal.done"}
_ARGUMENTS = {"response.function_call_arguments.delta", "response.custom_tool_call_input.delta"}
_ARGUMENTS_DONE = {"response.function_call_arguments.done", "response.custom_tool_call_input.done"}
_CALLS = {"function_call", "custom_tool_call"}
_ENDS = {"response.completed", "response.incomplete", "response.cancelled"}


def read(event: Any, assembly: Assembly) -> None:
    """The full texts that closing events repeat are read only where no delta came for them."""
    kind = field(event, "type")
    index = field(event, "output_index")
    part = (index, field(event, "content_index"), str(kind).rsplit(".", 1)[0])
    if kind in _TEXT:
        assembly.streamed.add(part)
        assembly.text(field(event, "delta"))
    elif kind in _TEXT_DONE:
        if part not in assembly.streamed:
            assembly.streamed.add(part)
            assembly.text(first(event, "text", "refusal"))
        assembly.block()
    elif kind == "response.output_item.added":
        _item_added(index, field(event, "item"), assembly)
    elif kind == "response.content_part.added":
        assembly.block()
    elif kind in _ARGUMENTS:
        assembly.call(index, arguments=field(event, "delta"))
    elif kind in _ARGUMENTS_DONE:
        assembly.close_call(index, name=field(event, "name"), arguments=_input(event))
    elif kind == "response.output_item.done":
        item = field(event, "item")
        if field(item, "type") in _CALLS:
            assembly.close_call(index, name=field(item, "name"), arguments=_input(item))
    elif kind in _ENDS:
        _end(field(event, "response"), assembly)
    elif field(event, "object") == "response":
        _end(event, assembly)


def _item_added(index: Hashable, item: Any, assembly: Assembly) -> None:
    kind = field(item, "type")
    if kind in _CALLS:
        assembly.call(index, id=field(item, "call_id"), name=field(item, "name"), arguments=_input(item))
    elif isinstance(kind, str) and kind.endswith("_call"):
        assembly.hidden_call()
    else:
        assembly.block("message")


def _input(item: Any) -> Any:
    return first(item, "arguments", "input")


def _end(response: Any, assembly: Assembly) -> None:
    if assembly.empty:
        for item in items(field(response, "output")):
            _whole_item(item, assembly)
    usage = field(response, "usage")
    assembly.usage(count(field(usage, "input_tokens")), count(field(usage, "output_tokens")))
    assembly.finish(word(field(field(response, "incomplete_details"), "reason")) or word(field(response, "status")))


def _whole_item(item: Any, assembly: Assembly) -> None:
    kind = field(item, "type")
    if kind == "message":
        assembly.block("message")
        for part in items(field(item, "content")):
            assembly.block()
            assembly.text(block_text(part))
    elif kind in _CALLS:
        assembly.whole_call(id=field(item, "call_id"), name=field(item, "name"), arguments=_input(item))
