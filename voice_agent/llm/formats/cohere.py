"""Reads Cohere's chat events (v2).

https://docs.cohere.com/v2/docs/streaming
"""

from __future__ import annotations

from typing import Any

from voice_agent.llm.assembly import Assembly
from voice_agent.llm.chunks import count, field, word

EVENTS = frozenset(
    {
        "message-start",
        "content-start",
        "content-delta",
        "content-end",
        "tool-plan-delta",
        "tool-call-start",
        "tool-call-delta",
        "tool-call-end",
        "citation-start",
        "citation-end",
        "message-end",
        "debug",
    }
)


def read(event: Any, assembly: Assembly) -> None:
    """The tool plan and thinking are not text."""
    kind = field(event, "type")
    index = field(event, "index")
    delta = field(event, "delta")
    message = field(delta, "message")
    if kind in ("content-start", "content-delta"):
        assembly.text(field(field(message, "content"), "text"))
    elif kind == "content-end":
        assembly.block()
    elif kind in ("tool-call-start", "tool-call-delta"):
        call = field(message, "tool_calls")
        tool = field(call, "function")
        assembly.call(index, id=field(call, "id"), name=field(tool, "name"), arguments=field(tool, "arguments"))
    elif kind == "tool-call-end":
        assembly.close_call(index)
    elif kind == "message-end":
        tokens = field(field(delta, "usage"), "tokens")
        assembly.usage(count(field(tokens, "input_tokens")), count(field(tokens, "output_tokens")))
        assembly.finish(word(field(delta, "finish_reason")))
