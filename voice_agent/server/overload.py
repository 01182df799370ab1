"""Turns new speech away while the engine cannot keep up, so that what it has begun goes on without gaps."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable

from tts_engine.admission import Priority
from tts_engine.types import AudioChunk, Utterance
from voice_agent.errors import BusyError
from voice_agent.protocols import SpeechSession, Synthesizer

__all__ = ["WatchedEngine"]

_RETRY_AFTER_S = 1.0


class WatchedEngine:
    """A synthesizer that knows how long its listeners wait; opening raises BusyError while that is over ``most_wait_s``.

    A listener waits from the moment when it has handed in a text, or has played what was made, until there is more. Bulk
    work has no listener.
    """

    def __init__(self, engine: Synthesizer, most_wait_s: float, now_s: Callable[[], float] = time.monotonic) -> None:
        self._engine = engine
        self._most_wait_s = most_wait_s
        self._now_s = now_s
        self._open: set[_Watched] = set()
        self._loaded = False

    async def ready(self) -> None:
        await self._engine.ready()
        self._loaded = True

    def open(self, priority: Priority = "interactive") -> SpeechSession:
        self.check()
        session = _Watched(self._engine.open(priority), priority, self._now_s, self._open.discard)
        self._open.add(session)
        return session

    def check(self) -> None:
        """Raises BusyError while the engine cannot keep up."""
        wait_s = self.wait_s
        if self._loaded and wait_s > self._most_wait_s:  # loading takes as long as it takes
            raise BusyError(
                f"a listener has waited for {wait_s:.1f} s: the engine cannot keep up; try again later", _RETRY_AFTER_S
            )

    @property
    def wait_s(self) -> float:
        """How long the listener waits, at the moment, that waits longest."""
        now_s = self._now_s()
        return max((session.waits_s(now_s) for session in self._open), default=0.0)

    @property
    def sessions(self) -> int:
        """How many are open, those that wait for a place included."""
        return len(self._open)


class _Watched:
    """A line through the engine, with an eye on the clock."""

    def __init__(
        self,
        session: SpeechSession,
        priority: Priority,
        now_s: Callable[[], float],
        closed: Callable[[_Watched], None],
    ) -> None:
        self._session = session
        self._listened_to = priority == "interactive"
        self._packets = aiter(session)
        self._now_s = now_s
        self._closed = closed
        self._unmade = 0  # utterances that were handed in and are not taken whole
        self._dry_s = 0.0  # since when it waits, or when what was taken has sounded

    async def put(self, utterance: Utterance) -> None:
        if not self._unmade:
            self._dry_s = max(self._dry_s, self._now_s())
        self._unmade += 1
        await self._session.put(utterance)

    def end(self) -> None:
        self._session.end()

    def cancel(self) -> None:
        self._closed(self)
        self._session.cancel()

    @property
    def buffered_s(self) -> float:
        return self._session.buffered_s

    def waits_s(self, now_s: float) -> float:
        """How long it waits at this moment."""
        waits = self._listened_to and self._unmade and not self._session.buffered_s
        return max(0.0, now_s - self._dry_s) if waits else 0.0

    def __aiter__(self) -> AsyncIterator[AudioChunk]:
        return self

    async def __anext__(self) -> AudioChunk:
        try:
            chunk = await anext(self._packets)
        except StopAsyncIteration:
            self._closed(self)
            raise
        except BaseException:
            self._unmade = max(0, self._unmade - 1)  # an utterance that failed
            raise
        self._unmade -= chunk.last
        self._dry_s = max(self._dry_s, self._now_s()) + chunk.duration_s
        return chunk
