"""Turns new speech away while the engine cannot keep up, so that what it has begun goes on without gaps.

How many it can serve depends on the machine and on what else it does. Our engine measures its ``capacity``, and most of that
is promised. Of another engine it is learned: the limit falls by a part when a listener has waited for long, and grows by one
for each that did not while the house was full (additive increase, multiplicative decrease: Chiu and Jain, "Analysis of the
increase and decrease algorithms", 1989).

Who stays connected and may speak at any time has a *seat*: it is turned away when it comes, or not at all. A seat counts
whole while it speaks and fades in silence; where more of them speak than was to be expected, turns wait for those that sound.

Nobody gets in the others' way: whoever holds less than an equal share of the places is let in as long as somebody else holds
more than theirs. What one asks for beyond its share is the first to be turned away, and of many that it begins at once while
others are here a few do at a time: the rest waits behind its own.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import defaultdict
from collections.abc import Callable, Generator
from contextlib import contextmanager

from tts_engine.admission import Priority
from voice_agent.errors import BusyError
from voice_agent.protocols import SpeechSession, Synthesizer
from voice_agent.server.watched_session import WatchedSession

__all__ = ["Seat", "WatchedEngine"]

_PROMISED = 0.9
"""Of the measured capacity. What larger steps bring while many wait (``tts_engine.batching``) is a reserve beyond it."""
_OVERFULL = 1.5
"""So many times the places are never exceeded, neither by those who are owed one nor by all seats that speak."""
_FADE_S = 30.0
"""A seat that has been silent for so long counts for a third."""
_PATIENCE_S = 5.0
"""How long a seat's turn waits to begin."""
_LATE_S = 0.1
_FIRST_LATE_S = 0.4
"""Late is a packet that comes so long after it was needed. Many who begin at once wait for one another, and that is all."""
_FIRST_LIMIT = 48
_LEAST_LIMIT = 8
_FALL = 0.85
_FALL_EVERY_S = 0.5
"""What a lower limit changes shows only after a while."""
_RETRY_AFTER_S = 1.0
_OWED_WAITS = 4.0
"""How many times the longest wait somebody may wait while one account is let in because of another that has too much."""
_BEGIN_AT_ONCE = 4
"""How many of one account wait for their first packet while others are here: enough for the engine's workers."""


class Seat:
    """The engine as one account has it, for a request or as long as a client is connected."""

    def __init__(self, engine: WatchedEngine, account: str, *, kept: bool) -> None:
        """``kept``: its turns are let in, since it counted when it came."""
        self.account = account
        self.speaking = 0
        self._engine = engine
        self._kept = kept
        self._quiet_s = engine.now_s()

    async def ready(self) -> None:
        await self._engine.ready()

    def open(self, priority: Priority = "interactive") -> SpeechSession:
        return self._engine.open(priority, self.account, self if self._kept else None)

    def fell_silent(self) -> None:
        """One of its sessions is over."""
        self.speaking -= 1
        self._quiet_s = self._engine.now_s()

    def weight(self, now_s: float) -> float:
        """How much of a place it takes."""
        return 1.0 if self.speaking else math.exp((self._quiet_s - now_s) / _FADE_S)


class WatchedEngine:
    """A synthesizer that knows how long its listeners wait. Opening raises BusyError while that is over ``most_wait_s``, or
    when as many are served as it is able to, or ``most``.

    A listener waits from the moment when it has handed in a text, or has played what was made, until there is more. Bulk
    work has no listener.
    """

    def __init__(
        self,
        engine: Synthesizer,
        most_wait_s: float,
        now_s: Callable[[], float] = time.monotonic,
        *,
        most: float = math.inf,
    ) -> None:
        self.now_s = now_s
        self.limit = float(_FIRST_LIMIT)
        """How many may be served at once, as far as that is learned."""
        self._engine = engine
        self._most_wait_s = most_wait_s
        self._most = most
        self._open: dict[WatchedSession, Seat | None] = {}
        self._seats: set[Seat] = set()
        self._line: dict[WatchedSession, asyncio.Future[None]] = {}  # turns of seats that wait to begin
        self._lanes: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(_BEGIN_AT_ONCE))
        self._loaded = False
        self._fell_s = -_FALL_EVERY_S

    async def ready(self) -> None:
        await self._engine.ready()
        self._loaded = True

    def open(self, priority: Priority = "interactive", account: str = "", seat: Seat | None = None) -> SpeechSession:
        """``account``: on whose behalf, see :meth:`of`; who has a ``seat`` is not turned away."""
        if seat is None:
            self.check(account)
        session = WatchedSession(
            self._engine.open(priority), self, self.now_s, priority=priority, account=account, seated=seat is not None
        )
        self._open[session] = seat
        if seat is not None:
            seat.speaking += 1
        return session

    def of(self, account: str) -> Synthesizer:
        """The engine for one who shares it with others: a key, or an address."""
        return Seat(self, account, kept=False)

    @contextmanager
    def seat(self, account: str) -> Generator[Synthesizer, None, None]:
        """The engine for one who stays connected. Raises BusyError while nobody new can be served."""
        self.check(account)
        seat = Seat(self, account, kept=True)
        self._seats.add(seat)
        try:
            yield seat
        finally:
            self._seats.discard(seat)

    def check(self, account: str = "") -> None:
        """Raises BusyError while nobody new can be served. Loading takes as long as it takes."""
        if (self.full or (self._loaded and self.wait_s > self._most_wait_s)) and not self._is_owed(account):
            raise self._busy()

    @property
    def full(self) -> bool:
        """Whether all places are taken."""
        return self._loaded and (bool(self._line) or round(self._taken) >= int(self.places))

    @property
    def places(self) -> float:
        """How many may be served at once."""
        capacity: float | None = getattr(self._engine, "capacity", None)
        return min(self._most, self.limit if capacity is None else max(_LEAST_LIMIT, _PROMISED * capacity))

    @property
    def wait_s(self) -> float:
        """How long the listener waits, at the moment, that waits longest."""
        now_s = self.now_s()
        return max((session.waits_s(now_s) for session in self._open), default=0.0)

    @property
    def sessions(self) -> int:
        """How many are open, those that wait for a place included."""
        return len(self._open)

    # ---- the sessions' side ---------------------------------------------------------------------------------------

    async def begin(self, session: WatchedSession) -> asyncio.Semaphore | None:
        """Returns when a session may ask for its first packet; what it gives is to be released with that.

        Raises BusyError where a seat's turn has waited for long.
        """
        if session.seated:
            await self._wait_in_line(session)
        session.begun = True
        if all(other.account == session.account for other in self._open):
            return None
        lane = self._lanes[session.account]
        await lane.acquire()
        return lane

    def leave(self, session: WatchedSession) -> None:
        """The session is over; whoever is first in the line begins."""
        seat = self._open.pop(session, None)
        if seat is not None:
            seat.fell_silent()
        if all(other.account != session.account for other in self._open):
            self._lanes.pop(session.account, None)  # nobody holds or waits for it
        self._call_next()

    def waited(self, wait_s: float, first: bool) -> None:
        """A listener has got a packet after so long; ``first``: of its session."""
        if not self._loaded:
            return
        if wait_s <= (_FIRST_LATE_S if first else _LATE_S):
            if len(self._open) >= self.limit - 1:
                self.limit += 1 / self.limit
        elif (now_s := self.now_s()) - self._fell_s >= _FALL_EVERY_S:
            self._fell_s = now_s
            self.limit = max(_LEAST_LIMIT, _FALL * min(self.limit, len(self._open)))

    # ---- bookkeeping ----------------------------------------------------------------------------------------------

    @property
    def _taken(self) -> float:
        """The places that are taken."""
        return sum(self._held().values())

    def _held(self) -> dict[str, float]:
        """The places that each account has taken."""
        now_s = self.now_s()
        held: defaultdict[str, float] = defaultdict(float)
        for seat in self._seats:
            held[seat.account] += seat.weight(now_s)
        for session, at in self._open.items():
            held[session.account] += at not in self._seats
        return held

    def _is_owed(self, account: str) -> bool:
        """Whether it holds less than its share of the places, while another holds more.

        What others hold beyond their shares is not laid to its charge; all that is within a share has to find a place. Where
        they have the engine so full that a newcomer would only wait, nobody is owed one: a refusal is better than that.
        """
        if self.wait_s > _OWED_WAITS * self._most_wait_s:
            return False
        held = self._held()
        share = max(1.0, self.places / len(held.keys() | {account}))
        others = max((count for other, count in held.items() if other != account), default=0.0)
        within = sum(min(count, share) for count in held.values())
        return held.get(account, 0.0) < share < others and within < self.places

    @property
    def _has_room(self) -> bool:
        return sum(session.begun for session in self._open) < max(1.0, _OVERFULL * self.places)

    async def _wait_in_line(self, session: WatchedSession) -> None:
        if (not self._line and self._has_room) or self._is_owed(session.account):
            return
        called = self._line[session] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await called
        except BaseException as error:
            self._line.pop(session, None)
            if session.begun:  # it was called and does not come
                session.begun = False
                self._call_next()
            if isinstance(error, TimeoutError):
                raise self._busy() from None
            raise

    def _call_next(self) -> None:
        while self._line and self._has_room:
            session = next(iter(self._line))
            called = self._line.pop(session)
            if not called.done():  # or it has just given up
                session.begun = True
                called.set_result(None)

    def _busy(self) -> BusyError:
        return BusyError(
            f"the engine serves {len(self._open)} at once, who wait for {self.wait_s:.1f} s at most, and cannot serve more: "
            "try again later",
            _RETRY_AFTER_S,
        )
