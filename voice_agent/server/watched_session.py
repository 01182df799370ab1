"""A line through a speech engine, with an eye on the clock: how long its listener waits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Protocol

from tts_engine.admission import Priority
from tts_engine.types import AudioChunk, Utterance
from voice_agent.protocols import SpeechSession

__all__ = ["Host", "WatchedSession"]

_SHORT_S = 0.5
"""Who has less in hand counts as short: what the engine makes next is for them."""


class Host(Protocol):
    """What a session needs of the engine that made it."""

    async def begin(self, session: WatchedSession) -> None:
        """Returns when the session may ask for its first packet; before, its ``start`` is called."""
        ...

    def call_next(self) -> None:
        """Something is in hand that was not: others may begin."""
        ...

    def waited(self, wait_s: float, first: bool) -> None:
        """A listener has got a packet after so long, below 0: so long before it needed it; ``first``: of its session."""
        ...

    def leave(self, session: WatchedSession) -> None:
        """The session is over."""
        ...


class WatchedSession:
    """A session of an engine, on behalf of ``account``."""

    def __init__(
        self,
        session: SpeechSession,
        host: Host,
        now_s: Callable[[], float],
        *,
        priority: Priority,
        account: str,
    ) -> None:
        self.account = account
        self.asked_s = 0.0
        """When the first utterance was handed in."""
        self.begun = False
        """It may ask for its first packet, or has got it."""
        self._session = session
        self._listened_to = priority == "interactive"
        self._packets = aiter(session)
        self._now_s = now_s
        self._host = host
        self._taken = False  # anything
        self._asked = False
        self._unmade = 0  # utterances that were handed in and are not taken whole
        self._dry_s = 0.0  # since when it waits, or when what was taken has sounded

    async def put(self, utterance: Utterance) -> None:
        """Hands an utterance in. Raises BusyError where the first one is not begun for long."""
        if not self._unmade:
            self._dry_s = max(self._dry_s, self._now_s())
        self._unmade += 1
        if not self._asked:
            self._asked = True
            self.asked_s = self._now_s()
            await self._host.begin(self)
        await self._session.put(utterance)

    def start(self) -> None:
        """From here on it waits for the engine."""
        self.begun = True
        self._dry_s = self._now_s()

    def end(self) -> None:
        self._session.end()

    def cancel(self) -> None:
        self._host.leave(self)
        self._session.cancel()

    @property
    def buffered_s(self) -> float:
        return self._session.buffered_s

    def waits_s(self, now_s: float) -> float:
        """How long it waits at this moment."""
        waits = self._wants and not self._session.buffered_s
        return max(0.0, now_s - self._dry_s) if waits else 0.0

    def is_short(self, now_s: float) -> bool:
        """Whether the engine has to make something for it soon."""
        in_hand_s = max(0.0, self._dry_s - now_s) + self._session.buffered_s
        return self._wants and in_hand_s < _SHORT_S

    @property
    def _wants(self) -> bool:
        """Somebody listens, and not all that is to be said was taken."""
        return self.begun and self._listened_to and self._unmade > 0

    def __aiter__(self) -> AsyncIterator[AudioChunk]:
        return self

    async def __anext__(self) -> AudioChunk:
        try:
            chunk = await anext(self._packets)
        except StopAsyncIteration:
            self._host.leave(self)
            raise
        except BaseException:
            self._unmade = max(0, self._unmade - 1)  # an utterance that failed
            raise
        now_s = self._now_s()
        if self._listened_to:
            self._host.waited((now_s if chunk.made_s is None else chunk.made_s) - self._dry_s, first=not self._taken)
        self._taken = True
        self._unmade -= chunk.last
        self._dry_s = max(self._dry_s, now_s) + chunk.duration_s
        self._host.call_next()
        return chunk
