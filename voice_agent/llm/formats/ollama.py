"""Reads Ollama's lines: ``/api/chat`` with ``message``, ``/api/generate`` with ``response``.

https://github.com/ollama/ollama/blob/main/docs/api.md
"""

from __future__ import annotations

from typing import Any

from voice_agent.llm.assembly import Assembly
from voice_agent.llm.chunks import content_text, count, field, items, word


def read(line: Any, assembly: Assembly) -> None:
    """``thinking`` is not text; tool calls come complete."""
    message = field(line, "message")
    assembly.text(field(line, "response") if message is None else content_text(field(message, "content")))
    for call in items(field(message, "tool_calls")):
        tool = field(call, "function")
        assembly.whole_call(id=field(call, "id"), name=field(tool, "name"), arguments=field(tool, "arguments"))
    if field(line, "done"):
        assembly.usage(count(field(line, "prompt_eval_count")), count(field(line, "eval_count")))
        assembly.finish(word(field(line, "done_reason")))
