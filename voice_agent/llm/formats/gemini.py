"""Reads Gemini's responses, from REST (camelCase) and from its SDK (snake_case).

https://ai.google.dev/api/generate-content
"""

from __future__ import annotations

from typing import Any

from voice_agent.llm.assembly import Assembly
from voice_agent.llm.chunks import count, field, first, items, word

FIELDS = ("candidates", "usageMetadata", "promptFeedback", "prompt_feedback")


def read(response: Any, assembly: Assembly) -> None:
    """Only the first candidate is spoken; parts marked ``thought`` are not text; function calls come complete."""
    for candidate in items(field(response, "candidates"))[:1]:
        for part in items(field(field(candidate, "content"), "parts")):
            if not field(part, "thought"):
                assembly.text(field(part, "text"))
            if (call := first(part, "functionCall", "function_call")) is not None:
                assembly.whole_call(id=field(call, "id"), name=field(call, "name"), arguments=field(call, "args"))
        if reason := word(first(candidate, "finishReason", "finish_reason")):
            assembly.finish(reason, message_ends=False)
    if (blocked := first(response, "promptFeedback", "prompt_feedback")) is not None:
        assembly.finish(word(first(blocked, "blockReason", "block_reason")), message_ends=False)
    if (usage := first(response, "usageMetadata", "usage_metadata")) is not None:
        assembly.usage(
            count(first(usage, "promptTokenCount", "prompt_token_count")),
            count(first(usage, "candidatesTokenCount", "candidates_token_count")),
        )
