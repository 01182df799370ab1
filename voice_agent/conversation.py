"""The history of a conversation, in OpenAI's message format."""

from __future__ import annotations

from dataclasses import dataclass, field

from voice_agent.llm.deltas import Message


@dataclass(slots=True)
class Conversation:
    """What was said so far. ``messages`` can be handed to any OpenAI-compatible model."""

    messages: list[Message] = field(default_factory=list)

    def user(self, text: str) -> None:
        """The user said ``text``."""
        self.messages.append({"role": "user", "content": text})

    def assistant(self, text: str) -> None:
        """The assistant said ``text``; nothing is kept of an empty answer."""
        if text:
            self.messages.append({"role": "assistant", "content": text})
