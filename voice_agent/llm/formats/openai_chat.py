"""Reads OpenAI chat.completions chunks and whole completions, and what speaks the same: LiteLLM, vLLM, llama.cpp,
Mistral …

https://platform.openai.com/docs/api-reference/chat-streaming
"""

from __future__ import annotations

from typing import Any

from voice_agent.llm.assembly import Assembly
from voice_agent.llm.chunks import content_text, count, field, first, items, word

HELPER_EVENTS = ("content.", "refusal.", "tool_calls.", "logprobs.")
"""Events of the SDK's ``.stream()`` helper that repeat what its ``chunk`` events carry."""


def read(chunk: Any, assembly: Assembly) -> None:
    """Only the first choice is spoken; reasoning fields and audio are not read."""
    for choice in items(field(chunk, "choices")):
        if field(choice, "index"):
            continue
        message = first(choice, "delta", "message")
        if message is None:
            assembly.text(field(choice, "text"))
        else:
            assembly.text(content_text(field(message, "content")))
            assembly.text(field(message, "refusal"))
            _calls(message, assembly)
        reason = word(field(choice, "finish_reason"))
        if reason and reason != "error":
            assembly.finish(reason)
    if (usage := field(chunk, "usage")) is not None:
        assembly.usage(count(field(usage, "prompt_tokens")), count(field(usage, "completion_tokens")))


def _calls(message: Any, assembly: Assembly) -> None:
    for call in items(field(message, "tool_calls")):
        tool = first(call, "function", "custom")
        index = field(call, "index")
        assembly.call(
            0 if index is None else index,
            id=field(call, "id"),
            name=field(tool, "name"),
            arguments=first(tool, "arguments", "input"),
        )
    if (legacy := field(message, "function_call")) is not None:
        assembly.call("function_call", name=field(legacy, "name"), arguments=field(legacy, "arguments"))
