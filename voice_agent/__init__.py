"""Sayline makes any LLM speak while it is still writing.

    from voice_agent import say

    say("Hello! 你好！")                      # to the speaker
    say(openai_stream, "answer.wav")          # any LLM stream, to a file

``speak`` is the same for ``asyncio``, ``stream`` gives the audio packets, ``Agent`` holds a conversation, ``inject_prompt``
plans speed and breaks for a text.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from voice_agent.agent import Agent
    from voice_agent.api import say, speak, stream
    from voice_agent.text.tagged_text import inject_prompt

__all__ = ["Agent", "inject_prompt", "say", "speak", "stream"]

_HOMES = {
    "Agent": "voice_agent.agent",
    "inject_prompt": "voice_agent.text.tagged_text",
    "say": "voice_agent.api",
    "speak": "voice_agent.api",
    "stream": "voice_agent.api",
}


def __getattr__(name: str) -> Any:
    """The public names load when they are first used, so that importing one module does not import all."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
