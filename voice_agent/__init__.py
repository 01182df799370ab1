"""Sayline makes any LLM speak while it is still writing.

    from voice_agent import say

    say("Hello! 你好！")                      # to the speaker
    say(openai_stream, "answer.wav")          # any LLM stream, to a file

``speak`` is the same for ``asyncio``, ``stream`` gives the audio packets, ``Agent`` holds a conversation, ``inject_prompt``
plans speed and breaks for a text.
"""

from __future__ import annotations

from voice_agent.agent import Agent
from voice_agent.api import say, speak, stream
from voice_agent.text.prosody import inject_prompt

__all__ = ["Agent", "inject_prompt", "say", "speak", "stream"]
