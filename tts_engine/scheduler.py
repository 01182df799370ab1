"""Runs the engine for many sessions on one worker thread, so that the event loop never touches a tensor.

A session is one listener: it puts utterances in and takes packets out, in order. The worker always serves the session that
is nearest to running dry (least audio made but not yet taken) and rests a session that is far enough ahead.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from tts_engine.engine import Engine, Speech
from tts_engine.errors import EngineError, SaylineError
from tts_engine.types import AudioChunk, Utterance


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    """``ahead_s``: seconds of audio made ahead of the taker; ``queued_utterances``: how many a session may have waiting."""

    ahead_s: float = 10.0
    queued_utterances: int = 4


class Session:
    """One listener's line through the engine: ``put`` utterances, ``end``, and iterate over the packets.

    Made by :meth:`Scheduler.open`; all methods belong to the event loop that opened it. A failed utterance raises from
    ``__anext__`` in its place; iterating on gives the utterances after it.
    """

    def __init__(self, scheduler: Scheduler, loop: asyncio.AbstractEventLoop) -> None:
        self._scheduler = scheduler
        self._loop = loop
        self._changed = asyncio.Event()  # something came out, or room was made
        # everything below is guarded by the scheduler's lock
        self.waiting: deque[Utterance] = deque()
        self.running: Speech | None = None
        self.busy = False  # the worker is in a step of it
        self.made: deque[AudioChunk | SaylineError] = deque()
        self.buffered_s = 0.0
        self.ended = False
        self.cancelled = False

    async def put(self, utterance: Utterance) -> None:
        """Hands an utterance in; waits while too many are waiting. Does nothing after ``cancel``."""
        limit = self._scheduler.config.queued_utterances
        while len(self.waiting) >= limit and not self.cancelled:
            await self._wait_for_change()
        with self._scheduler.lock:
            if not self.cancelled:
                self.waiting.append(utterance)
                self._scheduler.lock.notify()

    def end(self) -> None:
        """No more utterances will come: iteration stops after the last packet."""
        with self._scheduler.lock:
            self.ended = True
        self._changed.set()

    def cancel(self) -> None:
        """Drops everything that was put in or made. The worker leaves the session within the step that it is in."""
        with self._scheduler.lock:
            self.cancelled = self.ended = True
            self.waiting.clear()
            self.made.clear()
            self.running = None
            self._scheduler.leave(self)
        self._changed.set()

    def __aiter__(self) -> AsyncIterator[AudioChunk]:
        return self

    async def __anext__(self) -> AudioChunk:
        while True:
            with self._scheduler.lock:
                if self.made:
                    item = self.made.popleft()
                    if isinstance(item, SaylineError):
                        raise item
                    self.buffered_s -= item.duration_s
                    self._scheduler.lock.notify()
                    return item
                if self._scheduler.failure is not None and not self.cancelled:
                    self.cancelled = True
                    raise self._scheduler.failure
                if self.cancelled or (self.ended and not self.has_more):
                    self._scheduler.leave(self)
                    raise StopAsyncIteration
            await self._wait_for_change()

    async def _wait_for_change(self) -> None:
        await self._changed.wait()
        self._changed.clear()

    def wake(self) -> None:
        """Tells the event loop that something changed. Called by the worker."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._changed.set)

    @property
    def has_more(self) -> bool:
        """Something that was put in is not made yet."""
        return bool(self.waiting) or self.running is not None or self.busy

    @property
    def wants_work(self) -> bool:
        """There is something to make and room for it."""
        return self.has_more and not self.cancelled and self.buffered_s < self._scheduler.config.ahead_s


class Scheduler:
    """Owns the worker thread. ``load`` makes the engine, on that thread; its error reaches :meth:`ready` and all sessions."""

    def __init__(self, load: Callable[[], Engine] = Engine.load, config: SchedulerConfig | None = None) -> None:
        self.config = config or SchedulerConfig()
        self.lock = threading.Condition()
        self.failure: SaylineError | None = None
        self._load = load
        self._sessions: list[Session] = []
        self._awaited: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []  # ready() that wait
        self._closing = False
        self._loaded = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Starts the worker, which begins to load the engine. Starting twice does nothing."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="sayline-engine", daemon=True)
            self._thread.start()

    async def ready(self) -> None:
        """Returns when the engine is loaded. Raises its error if it cannot be."""
        self.start()
        loop = asyncio.get_running_loop()
        loaded = loop.create_future()
        with self.lock:
            if self._loaded:
                loaded.set_result(None)
            else:
                self._awaited.append((loop, loaded))
        await loaded
        if self.failure is not None:
            raise self.failure

    def open(self) -> Session:
        """A new session for the running event loop."""
        self.start()
        session = Session(self, asyncio.get_running_loop())
        with self.lock:
            self._sessions.append(session)
        return session

    def leave(self, session: Session) -> None:
        """Forgets a session. The lock is held by the caller."""
        if session in self._sessions:
            self._sessions.remove(session)

    def close(self) -> None:
        """Stops the worker after the step that it is in; sessions that are open end."""
        with self.lock:
            self._closing = True
            for session in self._sessions:
                session.cancelled = True
                session.wake()
            self._sessions.clear()
            self.lock.notify()
        if self._thread is not None and self._loaded:
            self._thread.join()  # a thread that still loads is left: it ends by itself

    def _work(self) -> None:
        try:
            engine = self._load()
        except SaylineError as error:
            self._finish_loading(error)
            return
        except Exception as error:
            failure = EngineError(f"the engine could not be loaded: {error!r}")
            failure.__cause__ = error
            self._finish_loading(failure)
            return
        self._finish_loading(None)
        while True:
            with self.lock:
                self.lock.wait_for(lambda: self._closing or any(session.wants_work for session in self._sessions))
                if self._closing:
                    return
                session = min((s for s in self._sessions if s.wants_work), key=lambda s: s.buffered_s)
                speech = session.running
                utterance = session.waiting.popleft() if speech is None else None
                session.busy = True
            self._serve(engine, session, speech, utterance)

    def _serve(self, engine: Engine, session: Session, speech: Speech | None, utterance: Utterance | None) -> None:
        """One step for one session: begins its next utterance, or makes a packet of the one that runs."""
        item: AudioChunk | SaylineError
        try:
            if speech is None:
                assert utterance is not None
                speech = engine.begin(utterance)
            item = engine.step(speech)
        except SaylineError as error:
            item = error
        except Exception as error:
            item = EngineError(f"the engine failed: {error!r}")
            item.__cause__ = error
        if isinstance(item, SaylineError):
            item.unspoken = utterance.text if utterance is not None else speech.utterance.text if speech else ""
        with self.lock:
            session.busy = False
            if session.cancelled:
                return
            if isinstance(item, AudioChunk):
                assert speech is not None
                session.running = None if speech.done else speech
                session.buffered_s += item.duration_s
            else:
                session.running = None
            session.made.append(item)
            session.wake()

    def _finish_loading(self, failure: SaylineError | None) -> None:
        """Tells everyone who waits that the engine is there, or why not."""
        with self.lock:
            self.failure = failure
            self._loaded = True
            for loop, loaded in self._awaited:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(_resolve, loaded)
            self._awaited.clear()
            for session in self._sessions:
                session.wake()


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
