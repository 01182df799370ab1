"""What happens in a conversation, as events: captions as they are heard, sentences, tools, interruptions, turns."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import asdict, dataclass
from typing import Any, TextIO
from weakref import WeakSet

from voice_agent.report import Report

__all__ = [
    "Caption", "Ducked", "Event", "Events", "Held", "Interruption", "Level", "Listening", "RecognitionFailed", "Resumed",
    "SentenceHeard", "Speaking", "Thinking", "ToolUsed", "Transcribed", "TurnBegan", "TurnEnded", "write_events",
]  # fmt: skip

_KEPT_EVENTS = 10_000


@dataclass(frozen=True, slots=True)
class TurnBegan:
    """A turn begins to speak. ``epoch``: of the agent; an interruption raises it, and all that is older is void."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Caption:
    """A word was heard. It comes when half of the word has sounded: all captions of a turn are what was heard of it.

    ``text``: the word as it is spoken, with the marks behind it. ``start``, ``end``: raw offsets. ``begins_s``,
    ``ends_s``: when it sounds, in seconds from the start of the turn. ``sentence``: index of its sentence.
    """

    epoch: int
    text: str
    start: int
    end: int
    begins_s: float
    ends_s: float
    sentence: int


@dataclass(frozen=True, slots=True)
class SentenceHeard:
    """The last sample of a sentence was heard, ``heard_s`` seconds after the turn began."""

    epoch: int
    sentence: int
    text: str
    heard_s: float


@dataclass(frozen=True, slots=True)
class ToolUsed:
    """A tool began (``result`` None) or ended."""

    epoch: int
    name: str
    arguments: dict[str, Any] | None
    result: str | None


@dataclass(frozen=True, slots=True)
class Ducked:
    """The agent speaks ``gain_db`` louder than before: lower, that is."""

    epoch: int
    gain_db: float


@dataclass(frozen=True, slots=True)
class Held:
    """The agent stopped in the middle, and may go on. ``silence_s``: from the call until the sink stood still."""

    epoch: int
    silence_s: float


@dataclass(frozen=True, slots=True)
class Resumed:
    """The agent goes on where it was held, and as loud as before."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Interruption:
    """The agent was silenced.

    ``epoch``: the new one. ``heard``: what was heard of the turn; ``unheard_s``: synthesised and dropped;
    ``silence_s``: from the call until the sink was silent, its device included as far as the sink knows.
    """

    epoch: int
    heard: str
    unheard_s: float
    silence_s: float


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """A turn is over: heard to its end, interrupted, or failed (``error``)."""

    epoch: int
    report: Report
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Listening:
    """A spoken dialogue waits for the user, or hears him. The epoch of this and the next four is the agent's."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Thinking:
    """The user is done; nothing of the answer is heard yet."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Speaking:
    """The answer began to sound."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Transcribed:
    """What the user has said, so far or (``final``) altogether. ``language``: as recognised, None if nobody knows.

    ``unanswered``: why a final text gets no answer, empty where it does: it was no question to the agent.
    """

    epoch: int
    text: str
    final: bool
    language: str | None = None
    unanswered: str = ""


@dataclass(frozen=True, slots=True)
class RecognitionFailed:
    """What the user said could not be written down; the dialogue goes on. ``error`` says what to do."""

    epoch: int
    error: str


@dataclass(frozen=True, slots=True)
class Level:
    """How loud the microphone is, ten times a second: dB below full scale. ``speech``: the user seems to speak."""

    db: float
    speech: bool


Event = (
    TurnBegan | Caption | SentenceHeard | ToolUsed | Ducked | Held | Resumed | Interruption | TurnEnded
    | Listening | Thinking | Speaking | Transcribed | RecognitionFailed | Level
)  # fmt: skip


class Events:
    """Hands events to everyone who listens. Nobody is waited for: a listener that lags loses its oldest events."""

    def __init__(self) -> None:
        self._listeners: WeakSet[_Listener] = WeakSet()  # an iteration that nobody holds any more takes its own along
        self._closed = False

    def emit(self, event: Event) -> None:
        for listener in self._listeners:
            listener.take(event)

    def close(self) -> None:
        """Ends all iterations, after what they have not taken yet."""
        self._closed = True
        for listener in self._listeners:
            listener.take(None)

    def listen(self) -> AsyncGenerator[Event, None]:
        """The events from this call on, until the agent closes."""
        listener = _Listener()
        if not self._closed:
            self._listeners.add(listener)
        else:
            listener.take(None)
        return listener.events()


class _Listener:
    """What one listener has not taken yet."""

    def __init__(self) -> None:
        self._waiting: deque[Event | None] = deque(maxlen=_KEPT_EVENTS)
        self._changed = asyncio.Event()

    def take(self, event: Event | None) -> None:
        self._waiting.append(event)
        self._changed.set()

    async def events(self) -> AsyncGenerator[Event, None]:
        """Up to None."""
        while True:
            while not self._waiting:
                self._changed.clear()
                await self._changed.wait()
            event = self._waiting.popleft()
            if event is None:
                return
            yield event


def as_json(event: Event) -> str:
    """An event as one line of JSON, its kind under "event"."""
    values = (
        {"epoch": event.epoch, "error": event.error, **event.report.as_dict()}
        if isinstance(event, TurnEnded)
        else asdict(event)
    )
    rounded = {key: round(value, 5) if isinstance(value, float) else value for key, value in values.items()}
    return json.dumps({"event": type(event).__name__, **rounded}, ensure_ascii=False, default=str)


async def write_events(events: AsyncGenerator[Event, None], file: TextIO) -> None:
    """Writes events as JSON lines, each at once; levels are left out."""
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Level):
                continue
            file.write(f"{as_json(event)}\n")
            file.flush()
