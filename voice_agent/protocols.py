"""What may be brought from outside: the Protocols of all plug-in points, in one place.

| you bring | Protocol | what comes with Sayline |
|---|---|---|
| a model | :class:`ChatModel` | ``llm.openai_client.OpenAIChat``, ``llm.demo.DemoChat`` |
| a speech engine | :class:`Synthesizer`, :class:`SpeechSession` | ``tts_engine.scheduler.Scheduler``, ``synthesizers`` |
| a place to play | :class:`Sink` | ``sinks`` |
| a speech detector | :class:`Vad` | ``ears.vad`` |
| the end of a turn | :class:`EndOfTurn` | ``ears.endpoint`` |
| a recogniser | :class:`Recognizer` | ``ears.whisper``, ``ears.remote`` |
| a clock | :class:`Clock` | ``pacing.MonotonicClock``, ``testing.clock.LoopClock`` |

Classes need not inherit from them. One stream of tokens needs no Protocol: ``llm.any_stream`` takes what there is.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from tts_engine.admission import Priority
from tts_engine.types import AudioChunk, Utterance

if TYPE_CHECKING:
    from voice_agent.ears.endpoint import EndOfTurn
    from voice_agent.ears.recognizer import Recognizer
    from voice_agent.ears.vad import Vad
    from voice_agent.llm.deltas import ChatModel
    from voice_agent.pacing import Clock
    from voice_agent.sinks.base import Sink

__all__ = ["ChatModel", "Clock", "EndOfTurn", "Recognizer", "Sink", "SpeechSession", "Synthesizer", "Vad"]

_HOMES = {
    "ChatModel": "voice_agent.llm.deltas",
    "Clock": "voice_agent.pacing",
    "EndOfTurn": "voice_agent.ears.endpoint",
    "Recognizer": "voice_agent.ears.recognizer",
    "Sink": "voice_agent.sinks.base",
    "Vad": "voice_agent.ears.vad",
}


def __getattr__(name: str) -> Any:
    """Each Protocol stands with what it is about; a program that only speaks need not load the ears."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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

    def open(self, priority: Priority = "interactive") -> SpeechSession:
        """A new line through the engine; "bulk" where nobody waits: listeners come first, as far as the engine can tell."""
        ...
