"""Runs the engine for many sessions at once on a few worker threads, so that the event loop never touches a tensor.

Whichever worker is free takes what is due first (``tts_engine.picking``): the next packet of some rows, all in one batch
(continuous batching: rows join and leave between steps), or the beginning of an utterance, also while the one before it is
still being made.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tts_engine.admission import Admission, Priority
from tts_engine.batching import StepBudget
from tts_engine.engine import Engine
from tts_engine.errors import EngineError, InputError, SaylineError, WeightsError
from tts_engine.hot_swap import HotSwap
from tts_engine.models.choice import is_slower
from tts_engine.picking import Job, Picker
from tts_engine.resources import memory_bytes, worker_count
from tts_engine.sessions import Row, Session
from tts_engine.throughput import Throughput
from tts_engine.types import AudioChunk, Language, Utterance

MEMORY_SHARE = 0.8
"""Of the machine's memory, before new sessions are refused."""
PROOF: dict[Language, str] = {"en": "Hello there.", "zh": "你好。"}
"""What a newly loaded engine must be able to say before it is used."""
LOOK_S = 1.0
"""How often idle workers look for sessions whose event loop is closed: nothing tells of that."""
EXIT_S = 5.0
"""How long the interpreter waits at its end for a thread that still loads."""


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    """How much is made ahead, by how many threads, for how many sessions.

    ``ahead_s``: seconds of audio made ahead of the taker; ``queued_utterances``: how many a session may have waiting.
    ``workers``: threads that compute, None: by the machine's cores. ``sessions`` are served at once,
    ``queued_sessions`` more wait for a place; beyond, opening raises BusyError. ``memory_limit_mb``: MiB that the process may
    hold (None: by the machine's memory); batches get smaller as they are used up, and then opening raises BusyError.
    ``step_ms``: how long a step may take, which a newcomer may have to wait. ``reload``: use replaced files without restart.
    """

    ahead_s: float = 10.0
    queued_utterances: int = 4
    workers: int | None = None
    sessions: int = 128
    queued_sessions: int = 128
    memory_limit_mb: float | None = None
    step_ms: float = 10.0
    reload: bool = True

    def __post_init__(self) -> None:
        for name in ("ahead_s", "queued_utterances", "workers", "sessions", "memory_limit_mb", "step_ms"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and value > 0):
                raise InputError(f"{name} is {value!r}: use a number above 0")
        if not (isinstance(self.queued_sessions, int | float) and self.queued_sessions >= 0):
            raise InputError(f"queued_sessions is {self.queued_sessions!r}: use 0 or more")


class Scheduler:
    """Owns the workers. ``load`` makes the engine, on one of them; its error reaches :meth:`ready` and all sessions.

    With ``reload`` it is called again whenever one of the engine's ``files`` was replaced: utterances that begin from
    then on are spoken by the new engine, those under way end with the old one. If it raises, the old one stays.
    """

    def __init__(self, load: Callable[[], Engine] = Engine.load, config: SchedulerConfig | None = None) -> None:
        self.config = config or SchedulerConfig()
        self.lock = threading.Condition()
        self.failure: SaylineError | None = None
        limit_mb = self.config.memory_limit_mb
        limit_bytes = MEMORY_SHARE * memory_bytes() if limit_mb is None else limit_mb * 2**20
        self._admission: Admission[Session] = Admission(self.config.sessions, self.config.queued_sessions, int(limit_bytes))
        self._load = load
        self._engine: Engine | None = None
        self._hot_swap: HotSwap[Engine] | None = None
        self._awaited: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []  # ready() that wait
        self._workers = worker_count() if self.config.workers is None else self.config.workers
        self._picker = Picker(self._workers)
        self._throughput = Throughput(self._workers)
        self._idle = 0  # workers that wait for something to do
        self._closing = False
        self._loaded = False
        self._threads: list[threading.Thread] = []
        self._process = os.getpid()

    # ---- the event loop's side ------------------------------------------------------------------------------------

    def start(self) -> None:
        """Starts the workers, the first of which loads the engine. Starting twice does nothing.

        Raises EngineError if it was closed, or belongs to the process that this one was forked from.
        """
        if self._closing:
            raise EngineError("the engine was closed: make a new one")
        if self._process != os.getpid():
            raise EngineError("the engine belongs to the process that this one was forked from: make one in each process")
        if self._threads:
            return
        atexit.register(self._end)
        self._threads = [
            threading.Thread(target=self._run, args=(i == 0,), name=f"sayline-engine-{i}", daemon=True)
            for i in range(self._workers)
        ]
        for thread in self._threads:
            thread.start()

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

    def open(self, priority: Priority = "interactive") -> Session:
        """A new session for the running event loop. Raises BusyError when all places are taken, and as :meth:`start` does."""
        self.start()
        session = Session(self, asyncio.get_running_loop(), priority)
        with self.lock:
            self._drop_gone()
            self._admission.enter(session, priority, time.monotonic())
        return session

    def leave(self, session: Session) -> None:
        """Forgets a session, so that the next one gets its place. The lock is held by the caller."""
        self._admission.leave(session, time.monotonic())
        self.lock.notify()

    def _drop_gone(self) -> None:
        """Frees the places of sessions whose event loop is closed. The lock is held by the caller."""
        for guest in [guest for guest in self._admission.guests if guest.gone]:
            guest.drop()
            self.leave(guest)

    def close(self) -> None:
        """Stops the workers after the step that they are in; sessions that are open end."""
        with self.lock:
            self._closing = True
            for session in self._admission.guests:
                session.drop()
                session.wake()
            self._admission.clear()
            self.lock.notify_all()
        if self._loaded:
            for thread in self._threads:
                thread.join()  # a thread that still loads is left: it ends by itself
        if self._hot_swap is not None:
            self._hot_swap.stop()
        if not any(thread.is_alive() for thread in self._threads):
            atexit.unregister(self._end)
            self._engine = None  # what is left of this may wait for the collector, which knows nothing of an engine's memory

    def _end(self) -> None:
        """At the end of the interpreter: a thread that it ends inside ONNX Runtime would abort the process."""
        if self._process != os.getpid():
            return
        self.close()
        for thread in self._threads:
            thread.join(EXIT_S)

    @property
    def engine(self) -> Engine | None:
        """What the next utterance is spoken by; None: still loading, or it could not be loaded."""
        return self._engine

    @property
    def sessions(self) -> int:
        """How many are open, those that wait for a place included."""
        return len(self._admission.guests)

    @property
    def capacity(self) -> float:
        """How many listeners it could serve at once, by what the workers made lately: seconds of audio a second."""
        return self._throughput.audio_s_per_s

    @property
    def ahead_s(self) -> float:
        return self.config.ahead_s

    @property
    def queued_utterances(self) -> int:
        return self.config.queued_utterances

    # ---- loading --------------------------------------------------------------------------------------------------

    def _load_first(self) -> None:
        try:
            engine = self._load()
        except SaylineError as error:
            self._finish_loading(None, error)
        except Exception as error:
            self._finish_loading(None, _as_engine_error("the engine could not be loaded", error))
        else:
            self._finish_loading(engine, None)

    def _finish_loading(self, engine: Engine | None, failure: SaylineError | None) -> None:
        """Tells everyone who waits that the engine is there, or why not."""
        with self.lock:
            self._engine = engine
            if engine is not None and self.config.reload and not self._closing:
                self._hot_swap = HotSwap(engine.files, self._load_proven, self._use)
                self._hot_swap.start()
            self._loaded = True
            self._fail(failure)
            for loop, loaded in self._awaited:
                with contextlib.suppress(RuntimeError):  # the loop was closed
                    loop.call_soon_threadsafe(_resolve, loaded)
            self._awaited.clear()
            self.lock.notify_all()

    def _fail(self, failure: SaylineError | None) -> None:
        self.failure = failure
        for session in self._admission.guests:
            session.wake()

    def _load_proven(self) -> Engine:
        """Loads the replaced files and speaks a little: the next sentence shall neither fail nor wait for tables.

        Raises WeightsError if the same voice would be computed more slowly, because its compiled file is bad.
        """
        engine, old = self._load(), self._engine
        assert old is not None
        if engine.voice.files == old.voice.files and is_slower(engine.model.form, old.model.form):
            raise WeightsError(f"the voice would be computed as {engine.model.form} instead of {old.model.form}")
        for language in engine.voice.auto:
            for _ in engine.speak(Utterance(PROOF[language], language=language)):
                pass
        return engine

    def _use(self, engine: Engine) -> None:
        with self.lock:
            self._engine = engine
            for session in self._admission.guests:
                session.begin_again(engine)
            self.lock.notify_all()

    # ---- the workers' side ----------------------------------------------------------------------------------------

    def _run(self, loads: bool) -> None:
        try:
            if loads:
                self._load_first()
            budget = StepBudget(self.config.step_ms / 1000)
            while self._work(budget):
                pass
        except BaseException as error:  # an error of ours: nobody shall wait for ever
            with self.lock:
                self._fail(_as_engine_error("the scheduler failed", error))
                self.lock.notify_all()

    def _work(self, budget: StepBudget) -> bool:
        """Waits for something to do and does it; False when there will be nothing more."""
        with self.lock:
            job: Job | None = None
            while job is None:
                if self._closing or self.failure is not None:
                    return False
                now_s = time.monotonic()
                if self._loaded:
                    job = self._picker.pick(self._admission.served, now_s, budget, self._idle)
                if job is None:
                    self._idle += 1
                    self.lock.wait(LOOK_S if self._admission.guests else None)
                    self._idle -= 1
                    self._drop_gone()
            if not job.alone:
                self.lock.notify()  # whoever else is idle
            for session in job.sessions:
                session.served_s = now_s
            first, engine = job.sessions[0], self._engine
            assert engine is not None
            rows: list[Row] = []
            if job.frames or job.completes:
                for session in job.sessions:
                    assert session.row is not None
                    session.stepping = True
                    rows.append(session.row)
            else:
                utterance = first.take_utterance()
        if job.frames:
            self._step(job.sessions, rows, job.frames, budget)
        elif job.completes:
            self._complete(first, rows[0])
        else:
            first.wake()  # there is room for another one
            self._begin(first, engine, utterance)
        return True

    def _begin(self, session: Session, engine: Engine, utterance: Utterance) -> None:
        """Begins a session's next utterance. One without anything to say is made at once."""
        begun: Row | AudioChunk | SaylineError
        started_s = time.monotonic()
        try:
            speech = engine.begin(utterance)
            begun = Row(engine, speech) if speech.frames else engine.step(speech)
        except Exception as error:
            begun = _named(error, utterance)
        with self.lock:
            now_s = time.monotonic()
            self._throughput.feed(now_s - started_s)
            session.begun(begun, now_s)
            if engine is not self._engine and self._engine is not None:
                session.begin_again(self._engine)
        if not isinstance(begun, Row):
            session.wake()

    def _complete(self, session: Session, row: Row) -> None:
        """Reads the utterance of a session's row to its end."""
        failure: SaylineError | None = None
        try:
            row.engine.complete(row.speech)
        except Exception as error:
            failure = _named(error, row.speech.utterance)
        with self.lock:
            if failure is None:
                session.stepping = False
            else:
                session.made(failure, time.monotonic(), ended=True)
        if failure is not None:
            session.wake()

    def _step(self, sessions: Sequence[Session], rows: Sequence[Row], count: int, budget: StepBudget) -> None:
        """Makes the next packet of each; if the batch fails each is tried alone, so that only those to blame fail."""
        started_s = time.monotonic()
        items: list[AudioChunk | SaylineError]
        try:
            items = list(rows[0].engine.step_together([row.speech for row in rows], count))
        except Exception as error:
            if len(rows) > 1:
                budget.halve()
                for session, row in zip(sessions, rows, strict=True):
                    self._step([session], [row], count, budget)
                return
            items = [_named(error, rows[0].speech.utterance)]
        else:
            budget.feed(len(rows) * count, time.monotonic() - started_s)
            spare_bytes = self._admission.spare_bytes
            budget.bound(None if spare_bytes is None else spare_bytes / self._workers)
        with self.lock:
            now_s = time.monotonic()
            self._throughput.feed(now_s - started_s, sum(item.duration_s for item in items if isinstance(item, AudioChunk)))
            for session, row, item in zip(sessions, rows, items, strict=True):
                session.made(item, now_s, ended=row.speech.done or isinstance(item, SaylineError))
        for session in sessions:
            session.wake()


def _as_engine_error(what: str, error: BaseException) -> EngineError:
    failure = EngineError(f"{what}: {error!r}")
    failure.__cause__ = error
    return failure


def _named(error: Exception, utterance: Utterance) -> SaylineError:
    """The error as one of ours, with the text that is not spoken because of it."""
    failure = error if isinstance(error, SaylineError) else _as_engine_error("the engine failed", error)
    failure.unspoken = utterance.text
    return failure


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
