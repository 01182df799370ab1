"""What may be brought from outside: the Protocols that a turn works with.

A speech engine is a :class:`Synthesizer`. A model is a ``voice_agent.llm.deltas.ChatModel`` and a place to play a
``voice_agent.sinks.base.Sink``; their Protocols stand with them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from tts_engine.types import AudioChunk, Utterance

__all__ = ["SpeechSession", "Synthesizer"]


class SpeechSession(Protocol):
    """A line through a speech engine: utterances in, packets out, both in order (``tts_engine.scheduler.Session``).

    An utterance that fails raises a SaylineError from the iteration in its place; iterating on gives those after it.
    """

    async def put(self, utterance: Utterance) -> None:
        """Hand in an utterance; wait while too many are waiting."""
        ...

    def end(self) -> None:
        """No more will come."""
        ...

    def cancel(self) -> None:
        """Drop everything; the iteration stops."""
        ...

    @property
    def buffered_s(self) -> float:
        """Seconds of audio that are made but not taken."""
        ...

    def __aiter__(self) -> AsyncIterator[AudioChunk]: ...


class Synthesizer(Protocol):
    """A speech engine that can serve several listeners (``tts_engine.scheduler.Scheduler``)."""

    async def ready(self) -> None:
        """Return when it can speak; raise why it cannot."""
        ...

    def open(self) -> SpeechSession:
        """A new line through the engine."""
        ...
