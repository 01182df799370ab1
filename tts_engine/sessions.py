"""A session is one listener: utterances go in, packets come out, both in order.

The listener's side belongs to one event loop; the worker's side is called by whichever worker serves the session.
Both sides hold the host's lock for what they share.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Protocol

from tts_engine.admission import Priority
from tts_engine.engine import Engine, Speech
from tts_engine.errors import SaylineError
from tts_engine.planning import FRAME_MS
from tts_engine.types import AudioChunk, Utterance

BULK_DUE_S = 2.0
"""A bulk session counts as due so far ahead: behind every listener with less audio in hand, before those with more."""
FIRST_DUE_S = 0.03
"""A newcomer's first packet is due so long after it asked; a listener who would run dry before comes first."""


class Host(Protocol):
    """What a session needs of the scheduler that made it."""

    lock: threading.Condition
    failure: SaylineError | None

    @property
    def ahead_s(self) -> float:
        """Seconds of audio that are made ahead of the taker."""
        ...

    @property
    def queued_utterances(self) -> int:
        """How many a session may have waiting."""
        ...

    def leave(self, session: Session) -> None:
        """Forgets a session. The lock is held."""
        ...


@dataclass(frozen=True, slots=True)
class Row:
    """An utterance that has begun, and the engine that it ends with."""

    engine: Engine
    speech: Speech

    @property
    def rest_s(self) -> float:
        """About how long what is not made yet will sound."""
        return max(0, self.speech.frames - self.speech.frame) * FRAME_MS / 1000


class Session:
    """One listener's line through the engine: ``put`` utterances, ``end``, and iterate over the packets.

    Made by :meth:`Scheduler.open`; its methods belong to the event loop that opened it. A failed utterance raises
    from ``__anext__`` in its place; iterating on gives the utterances after it.
    """

    def __init__(self, host: Host, loop: asyncio.AbstractEventLoop, priority: Priority = "interactive") -> None:
        self.priority: Priority = priority
        self._host = host
        self._loop = loop
        self._changed = asyncio.Event()  # something came out, or room was made
        self._told = False  # the loop is about to set the event
        self._waiting: deque[Utterance] = deque()
        self._made: deque[AudioChunk | SaylineError] = deque()
        self._buffered_s = 0.0
        self._asked_s = 0.0  # since when it has had something to make
        self._sounds_until_s = 0.0  # when all that was made has been played, if it is played as it comes
        self._ended = False
        self._cancelled = False
        self._next: Row | AudioChunk | SaylineError | None = None  # the utterance behind the row, begun
        self.row: Row | None = None  # the utterance under way
        self.stepping = False  # a worker makes the row's next packet
        self.beginning = False  # a worker begins an utterance
        self.served_s = 0.0  # when a worker last took it up

    # ---- the listener's side --------------------------------------------------------------------------------------

    async def put(self, utterance: Utterance) -> None:
        """Hands an utterance in; waits while too many are waiting.

        Does nothing after ``cancel``, nor once the whole engine has failed, which the iteration tells.
        """
        while len(self._waiting) >= self._host.queued_utterances and not self._is_over:
            await self._wait_for_change()
        with self._host.lock:
            if self._is_over:
                return
            self.add(utterance, time.monotonic())
            self._host.lock.notify()

    def end(self) -> None:
        """No more utterances will come: iteration stops after the last packet."""
        with self._host.lock:
            self._ended = True
        self._changed.set()

    def cancel(self) -> None:
        """Drops everything that was put in or made. A worker that is in a step of it drops what comes of that."""
        with self._host.lock:
            self.drop()
            self._host.leave(self)
        self._changed.set()

    @property
    def buffered_s(self) -> float:
        """Seconds of audio that are made but not taken."""
        return self._buffered_s

    @property
    def has_more(self) -> bool:
        """Something that was put in is not made yet."""
        return bool(self._waiting) or self.row is not None or self._next is not None or self.stepping or self.beginning

    def __aiter__(self) -> AsyncIterator[AudioChunk]:
        return self

    async def __anext__(self) -> AudioChunk:
        while True:
            with self._host.lock:
                rested = not self._has_room
                item = self.take()
                if isinstance(item, SaylineError):
                    raise item
                if item is not None:
                    if rested:
                        self._host.lock.notify()
                    return item
                if self._host.failure is not None and not self._cancelled:
                    self.drop()
                    raise self._host.failure
                if self._cancelled or (self._ended and not self.has_more):
                    self._host.leave(self)
                    raise StopAsyncIteration
            await self._wait_for_change()

    @property
    def _is_over(self) -> bool:
        """Nothing that is put in will be spoken any more."""
        return self._cancelled or self._host.failure is not None

    async def _wait_for_change(self) -> None:
        await self._changed.wait()
        self._changed.clear()

    # ---- the worker's side: the lock is held, but for wake -------------------------------------------------------

    @property
    def wants_step(self) -> bool:
        """The row's next packet can be made: there is room for it, and nobody is at it."""
        return self.row is not None and not self.stepping and self._has_room

    @property
    def wants_begin(self) -> bool:
        """An utterance can be begun: the next one, or the one behind it, so that it is ready when the row ends."""
        return bool(self._waiting) and not self.beginning and self._next is None and self._has_room

    @property
    def _has_room(self) -> bool:
        return self._buffered_s < self._host.ahead_s

    def due_s(self, now_s: float) -> float:
        """When the next packet is needed: the listener runs dry, or has waited long enough since it asked."""
        if self.priority == "bulk":
            return now_s + max(self._buffered_s, BULK_DUE_S)
        due_s = max(self._asked_s + FIRST_DUE_S, self._sounds_until_s)
        return max(due_s, now_s + self._buffered_s) if self._buffered_s else due_s

    @property
    def sounds(self) -> bool:
        """Something of what it asked for has been made, so a delay is a gap and not a later start."""
        return self._sounds_until_s > self._asked_s and self.priority == "interactive"

    def begin_due_s(self, now_s: float) -> float:
        """When the next utterance must have begun: with its first packet, when the row's audio will have sounded."""
        return self.due_s(now_s) + (self.row.rest_s if self.row is not None else 0.0)

    def add(self, utterance: Utterance, now_s: float) -> None:
        """An utterance was handed in."""
        if not self.has_more:
            self._asked_s = now_s
        self._waiting.append(utterance)

    def take(self) -> AudioChunk | SaylineError | None:
        """What comes next, if it is made."""
        if not self._made:
            return None
        item = self._made.popleft()
        if isinstance(item, AudioChunk):
            self._buffered_s -= item.duration_s
        return item

    def take_utterance(self) -> Utterance:
        """The next utterance, to begin it."""
        self.beginning = True
        return self._waiting.popleft()

    def begun(self, begun: Row | AudioChunk | SaylineError, now_s: float) -> None:
        """An utterance that was taken: its row, its only packet if it is silent, or why it cannot be spoken."""
        self.beginning = False
        if not self._cancelled:
            self._next = begun
            self._advance(now_s)

    def made(self, item: AudioChunk | SaylineError, now_s: float, *, ended: bool) -> None:
        """The row's packet, or why it failed; ``ended``: the row has nothing more to give."""
        self.stepping = False
        if not self._cancelled:
            self._deliver(item, now_s)
            if ended:
                self.row = None
                self._advance(now_s)

    def begin_again(self, engine: Engine) -> None:
        """An utterance that another engine has begun, and of which nothing is made, goes back to be begun by ``engine``."""
        if isinstance(self._next, Row) and self._next.engine is not engine:
            self._waiting.appendleft(self._next.speech.utterance)
            self._next = None

    def _advance(self, now_s: float) -> None:
        """Once the row has ended, the utterance behind it takes its place."""
        if self.row is None and self._next is not None:
            begun, self._next = self._next, None
            if isinstance(begun, Row):
                self.row = begun
            else:
                self._deliver(begun, now_s)

    def _deliver(self, item: AudioChunk | SaylineError, now_s: float) -> None:
        if isinstance(item, AudioChunk):
            self._buffered_s += item.duration_s
            self._sounds_until_s = max(self._sounds_until_s, now_s) + item.duration_s
        self._made.append(item)

    def drop(self) -> None:
        """Forgets everything; the iteration ends."""
        self._cancelled = self._ended = True
        self._waiting.clear()
        self._made.clear()
        self._buffered_s = 0.0
        self.row = self._next = None

    @property
    def gone(self) -> bool:
        """Its event loop was closed: nobody will take anything any more."""
        return self._loop.is_closed()

    def wake(self) -> None:
        """Tells the event loop that something changed; once, until it has seen it.

        Best without the lock: the loop runs at once and asks for it. A loop that is closed takes nothing any more.
        """
        if self._told and not self.gone:
            return
        self._told = True
        try:
            self._loop.call_soon_threadsafe(self._tell)
        except RuntimeError:
            with self._host.lock:
                self.drop()
                self._host.leave(self)

    def _tell(self) -> None:
        self._told = False  # before the event: what is made from here on tells again
        self._changed.set()
