"""Reads LangChain messages and message chunks.

https://python.langchain.com/docs/concepts/streaming
"""

from __future__ import annotations

from typing import Any

from voice_agent.llm.assembly import Assembly
from voice_agent.llm.chunks import block_text, count, field, first, has, items, word

SPOKEN = frozenset({"ai", "AIMessageChunk"})
SILENT = frozenset({"human", "system", "tool", "function", "chat", "remove"})
"""Messages that a graph streams beside the answer: they are not the model's words."""


def read(message: Any, assembly: Assembly) -> None:
    """``content`` is a string or a list of blocks; a change of the block's index closes the one before."""
    kind = field(message, "type")
    if kind in SILENT or (isinstance(kind, str) and kind.endswith("MessageChunk") and kind not in SPOKEN):
        return
    content = field(message, "content")
    if isinstance(content, str):
        assembly.text(content)
    for block in items(content):
        if isinstance(block, str):
            assembly.text(block)
        elif text := block_text(block):
            assembly.at_block(field(block, "index"))
            assembly.text(text)
    assembly.text(field(field(message, "additional_kwargs"), "refusal"))
    _calls(message, assembly)
    metadata = field(message, "response_metadata")
    if reason := word(first(metadata, "finish_reason", "stop_reason", "done_reason")):
        assembly.finish(reason)
    if (usage := field(message, "usage_metadata")) is not None:
        assembly.usage(count(field(usage, "input_tokens")), count(field(usage, "output_tokens")))


def _calls(message: Any, assembly: Assembly) -> None:
    if has(message, "tool_call_chunks"):
        for call in items(field(message, "tool_call_chunks")):
            index = field(call, "index")
            assembly.call(
                0 if index is None else index,
                id=field(call, "id"),
                name=field(call, "name"),
                arguments=field(call, "args"),
            )
    else:
        for call in items(field(message, "tool_calls")):
            assembly.whole_call(id=field(call, "id"), name=field(call, "name"), arguments=field(call, "args"))
