"""Turns new speech away while the engine cannot keep up, so that what it has begun goes on without gaps.

How many it can serve depends on the machine and on what else it does. Our engine measures its ``capacity``, and most of that
is promised. Of another engine it is learned: the limit falls by a part when a listener has waited for long, and grows by one
for each that did not while the house was full (additive increase, multiplicative decrease: Chiu and Jain, "Analysis of the
increase and decrease algorithms", 1989).

Who stays connected and may speak at any time has a *seat*: it is turned away when it comes, or not at all. A seat counts
whole while it speaks and fades in silence; where more of them speak than was to be expected, turns wait for those that sound.

Nobody gets in the others' way: whoever holds less than an equal share of the places is let in as long as somebody else holds
more than theirs. What one asks for beyond its share is the first to be turned away. And of one account no more is begun than
the engine keeps up with: while a few of its turns have little audio in hand its next ones wait, behind its own only. So what a
burst has begun is ahead of its listeners, and who comes new is served before it (``tts_engine.picking``).
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
"""How long a turn waits to begin."""
_LOOK_AGAIN_S = 0.02
"""How often those that wait are looked at, besides when a packet is taken."""
_LATE_S = 0.1
_FIRST_LATE_S = 0.4
"""Late is a packet that comes so long after it was needed. Many who begin at once wait for one another, and that is all."""
_FIRST_LIMIT = 48
_LEAST_LIMIT = 8
_FALL = 0.85
_FALL_EVERY_S = 0.5
"""What a lower limit changes shows only after a while."""
_RETRY_AFTER_S = 1.0
_LENIENT_WAITS = 4.0
"""So many times the longest wait somebody may wait while one is let in that is owed a place, or while few are here: then it is
the machine that was busy elsewhere for a moment."""
_SHORT_AT_ONCE = 4
"""So many turns of one account may be short of audio, enough for the engine's workers; then its next one waits."""


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
        self._line: dict[WatchedSession, asyncio.Future[None]] = {}  # turns that wait to begin
        self._look: asyncio.TimerHandle | None = None  # at them
        self._loaded = False
        self._fell_s = -_FALL_EVERY_S

    async def ready(self) -> None:
        await self._engine.ready()
        self._loaded = True

    def open(self, priority: Priority = "interactive", account: str = "", seat: Seat | None = None) -> SpeechSession:
        """``account``: on whose behalf, see :meth:`of`; who has a ``seat`` is not turned away."""
        if seat is None:
            self.check(account)
        session = WatchedSession(self._engine.open(priority), self, self.now_s, priority=priority, account=account)
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
        if not self._loaded:
            return
        owed = self._is_owed(account)
        lenient = owed or self._taken < _LEAST_LIMIT
        if (self.full and not owed) or self._wait_for(account) > self._most_wait_s * (_LENIENT_WAITS if lenient else 1.0):
            raise self._busy()

    @property
    def full(self) -> bool:
        """Whether all places are taken."""
        return self._loaded and round(self._taken) >= int(self.places)

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

    async def begin(self, session: WatchedSession) -> None:
        """Returns when a session may ask for its first packet. Raises BusyError where it has waited for long."""
        if self._may_begin(session) and all(other.account != session.account for other in self._line):
            session.start()
            return
        called = self._line[session] = asyncio.get_running_loop().create_future()
        self._look_again()
        asked_s = self.now_s()
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await called
        except BaseException as error:
            self._line.pop(session, None)
            session.begun = False  # or it was called and does not come
            self.call_next()
            if isinstance(error, TimeoutError):
                raise self._busy() from None
            raise
        if (waited_s := self.now_s() - asked_s) > _FIRST_LATE_S:
            self.waited(waited_s, first=True)

    def leave(self, session: WatchedSession) -> None:
        """The session is over; who waited for that begins."""
        seat = self._open.pop(session, None)
        if seat is not None:
            seat.fell_silent()
        self.call_next()

    def call_next(self) -> None:
        """Whoever may begin now does: of each account one after the other."""
        held_up: set[str] = set()
        for session, called in list(self._line.items()):
            if called.done():  # it has just given up
                continue
            if session.account not in held_up and self._may_begin(session):
                del self._line[session]
                session.start()
                called.set_result(None)
            else:
                held_up.add(session.account)

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

        What others hold beyond their shares is not laid to its charge; all that is within a share has to find a place.
        """
        held = self._held()
        share = max(1.0, self.places / len(held.keys() | {account}))
        others = max((count for other, count in held.items() if other != account), default=0.0)
        within = sum(min(count, share) for count in held.values())
        return held.get(account, 0.0) < share < others and within < self.places

    def _may_begin(self, session: WatchedSession) -> bool:
        """Whether the engine keeps up with its account, and has room."""
        now_s = self.now_s()
        short = sum(other.account == session.account and other.is_short(now_s) for other in self._open)
        if short >= _SHORT_AT_ONCE:
            return False
        if self._open.get(session) is None:  # it was let in for this one turn
            return True
        begun = sum(other.begun for other in self._open)
        return begun < max(1.0, _OVERFULL * self.places) or self._is_owed(session.account)

    def _wait_for(self, account: str) -> float:
        """How long who waits longest does, of those who have begun and of the account's own that have not."""
        now_s = self.now_s()
        return max([self.wait_s, *(now_s - session.asked_s for session in self._line if session.account == account)])

    def _look_again(self) -> None:
        """Calls at intervals while anybody waits: what is in hand may grow without a packet being taken."""
        if self._look is None and self._line:
            self._look = asyncio.get_running_loop().call_later(_LOOK_AGAIN_S, self._looked)

    def _looked(self) -> None:
        self._look = None
        self.call_next()
        self._look_again()

    def _busy(self) -> BusyError:
        return BusyError(
            f"the engine serves {len(self._open)} at once, who wait for {self.wait_s:.1f} s at most, and cannot serve more: "
            "try again later",
            _RETRY_AFTER_S,
        )
