"""Turns new speech away while the engine cannot keep up, so that what it has begun goes on without gaps.

How many it can serve depends on the machine and on what else it does, so that is learned: the limit falls by a part when a
listener has waited for long, and grows by one for each that did not while the house was full (additive increase,
multiplicative decrease: Chiu and Jain, "Analysis of the increase and decrease algorithms", 1989).

Nobody gets in the others' way: whoever holds less than an equal share of the places is let in as long as somebody else holds
more than theirs. What one asks for beyond its share is the first to be turned away, and of many that it begins at once while
others are here a few do at a time: the rest waits behind its own.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from tts_engine.admission import Priority
from tts_engine.types import AudioChunk, Utterance
from voice_agent.errors import BusyError
from voice_agent.protocols import SpeechSession, Synthesizer

__all__ = ["WatchedEngine"]

_LATE_S = 0.1
_FIRST_LATE_S = 0.4
"""Late is a packet that comes so long after it was needed. Many who begin at once wait for one another, and that is all."""
_FIRST_LIMIT = 48
_LEAST_LIMIT = 8
_FALL = 0.85
_FALL_EVERY_S = 0.5
"""What a lower limit changes shows only after a while."""
_RETRY_AFTER_S = 1.0
_BEGIN_AT_ONCE = 4
"""How many of one account wait for their first packet while others are here: enough for the engine's workers."""


class WatchedEngine:
    """A synthesizer that knows how long its listeners wait. Opening raises BusyError while that is over ``most_wait_s``, or
    when as many are open as it is able to serve.

    A listener waits from the moment when it has handed in a text, or has played what was made, until there is more. Bulk
    work has no listener.
    """

    def __init__(self, engine: Synthesizer, most_wait_s: float, now_s: Callable[[], float] = time.monotonic) -> None:
        self.limit = float(_FIRST_LIMIT)
        """How many may be open at once."""
        self._engine = engine
        self._most_wait_s = most_wait_s
        self._now_s = now_s
        self._open: set[_Watched] = set()
        self._lanes: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(_BEGIN_AT_ONCE))
        self._loaded = False
        self._fell_s = -_FALL_EVERY_S

    async def ready(self) -> None:
        await self._engine.ready()
        self._loaded = True

    def open(self, priority: Priority = "interactive", account: str = "") -> SpeechSession:
        """``account``: on whose behalf, see :meth:`of`."""
        self.check(account)
        session = _Watched(self._engine.open(priority), priority, account, self._now_s, self)
        self._open.add(session)
        return session

    def of(self, account: str) -> Synthesizer:
        """The engine for one who shares it with others: a key, or an address."""
        return _Shared(self, account)

    def check(self, account: str = "") -> None:
        """Raises BusyError while nobody new can be served. Loading takes as long as it takes."""
        wait_s = self.wait_s
        busy = wait_s > self._most_wait_s or len(self._open) >= self.limit
        if self._loaded and busy and not self._is_owed(account):
            raise BusyError(
                f"the engine serves {len(self._open)} at once, who wait for {wait_s:.1f} s at most, and cannot serve more: "
                "try again later",
                _RETRY_AFTER_S,
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

    def _is_owed(self, account: str) -> bool:
        """Whether it holds less than its share of the places, while another holds more."""
        held = Counter(session.account for session in self._open)
        share = max(1.0, self.limit / len(held.keys() | {account}))
        return held[account] < share and max((held[other] for other in held if other != account), default=0) > share

    async def begin(self, account: str) -> asyncio.Semaphore | None:
        """Returns when a session of the account may ask for its first packet; what it gives is to be released with that."""
        if all(session.account == account for session in self._open):
            return None
        lane = self._lanes[account]
        await lane.acquire()
        return lane

    def leave(self, session: _Watched) -> None:
        """The session is over."""
        self._open.discard(session)
        if all(other.account != session.account for other in self._open):
            self._lanes.pop(session.account, None)  # nobody holds or waits for it

    def waited(self, wait_s: float, first: bool) -> None:
        """A listener has got a packet after so long; ``first``: of its session."""
        if not self._loaded:
            return
        if wait_s <= (_FIRST_LATE_S if first else _LATE_S):
            if len(self._open) >= self.limit - 1:
                self.limit += 1 / self.limit
        elif (now_s := self._now_s()) - self._fell_s >= _FALL_EVERY_S:
            self._fell_s = now_s
            self.limit = max(_LEAST_LIMIT, _FALL * min(self.limit, len(self._open)))


@dataclass(frozen=True, slots=True)
class _Shared:
    """The engine as one account has it."""

    engine: WatchedEngine
    account: str

    async def ready(self) -> None:
        await self.engine.ready()

    def open(self, priority: Priority = "interactive") -> SpeechSession:
        return self.engine.open(priority, self.account)


class _Watched:
    """A line through the engine, with an eye on the clock."""

    def __init__(
        self, session: SpeechSession, priority: Priority, account: str, now_s: Callable[[], float], host: WatchedEngine
    ) -> None:
        self.account = account
        self._session = session
        self._listened_to = priority == "interactive"
        self._packets = aiter(session)
        self._now_s = now_s
        self._host = host
        self._taken = False  # anything
        self._lane: asyncio.Semaphore | None = None  # until the first packet
        self._asked = self._over = False
        self._unmade = 0  # utterances that were handed in and are not taken whole
        self._dry_s = 0.0  # since when it waits, or when what was taken has sounded

    async def put(self, utterance: Utterance) -> None:
        if not self._asked:
            self._asked = True
            self._lane = await self._host.begin(self.account)
            if self._over:
                self._free_lane()
        if not self._unmade:
            self._dry_s = max(self._dry_s, self._now_s())
        self._unmade += 1
        await self._session.put(utterance)

    def end(self) -> None:
        self._session.end()

    def cancel(self) -> None:
        self._leave()
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
            self._leave()
            raise
        except BaseException:
            self._free_lane()
            self._unmade = max(0, self._unmade - 1)  # an utterance that failed
            raise
        self._free_lane()
        now_s = self._now_s()
        if self._listened_to:
            self._host.waited((now_s if chunk.made_s is None else chunk.made_s) - self._dry_s, first=not self._taken)
        self._taken = True
        self._unmade -= chunk.last
        self._dry_s = max(self._dry_s, now_s) + chunk.duration_s
        return chunk

    def _leave(self) -> None:
        self._over = True
        self._free_lane()
        self._host.leave(self)

    def _free_lane(self) -> None:
        if self._lane is not None:
            self._lane.release()
            self._lane = None
