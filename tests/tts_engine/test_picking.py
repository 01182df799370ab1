"""What is done next, in virtual time: deadlines, who shares a step, and how many listeners two workers carry."""

from __future__ import annotations

import heapq
import random
import threading
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
import pytest

from tts_engine.admission import Priority
from tts_engine.batching import CROWD_STEPS
from tts_engine.engine import FLUSH_FRAMES, FORMAT, Engine
from tts_engine.errors import EngineError
from tts_engine.picking import BULK_SHARE, Job, Picker
from tts_engine.planning import FRAME_SAMPLES
from tts_engine.sessions import Row, Session
from tts_engine.types import AudioChunk, Utterance

ENGINE = Engine(None, None, None)  # type: ignore[arg-type]  # only its packet sizes are asked for
FIRST = 14 + ENGINE.config.chunk_frames[0]
"""Frames of a first packet, those that are not heard with them."""
SENTENCE = Utterance("A sentence.")


@dataclass
class Host:
    """The scheduler, as far as a session sees it."""

    lock: threading.Condition = field(default_factory=threading.Condition)
    failure: None = None
    ahead_s: float = 10.0
    queued_utterances: int = 4

    def leave(self, session: Session) -> None: ...


@dataclass(frozen=True)
class Budget:
    """What a step may hold."""

    row_frames: int = 1000

    @property
    def crowd_row_frames(self) -> int:
        return CROWD_STEPS * self.row_frames


@dataclass
class Speech:
    """An utterance that has begun, without what it says."""

    frames: int
    utterance: Utterance = SENTENCE
    unheard: int = 14
    frame: int = 0
    packets: int = 0
    closes: tuple[int, ...] = ()
    partial: bool = False

    @property
    def sounds(self) -> bool:
        return self.packets > 0

    @property
    def plan(self) -> Speech:
        return self

    @property
    def tail(self) -> int:
        return self.frames - 20

    @property
    def done(self) -> bool:
        return self.frame >= self.frames + FLUSH_FRAMES

    def step(self, frames: int) -> AudioChunk:
        """Moves on, and gives the packet: of the frames that are heard."""
        before, self.frame = self.frame, self.frame + frames
        self.packets += 1
        low, high = (min(max(at - FLUSH_FRAMES, self.unheard), self.frames) for at in (before, self.frame))
        return AudioChunk(np.zeros((high - low) * FRAME_SAMPLES, np.float32), FORMAT, self.utterance, last=self.done)


def new_session(priority: Priority = "interactive", *, now_s: float | None = None, **options: Any) -> Session:
    session = Session(Host(**options), None, priority)  # type: ignore[arg-type]  # no loop: nobody is told
    if now_s is not None:
        session.add(SENTENCE, now_s)
    return session


def begin(session: Session, now_s: float, frames: int = 200) -> Speech:
    speech = Speech(frames, session.take_utterance())
    session.begun(Row(ENGINE, speech), now_s)  # type: ignore[arg-type]
    return speech


def make(session: Session, frames: int, now_s: float) -> None:
    """One packet of the session's row."""
    speech: Any = session.row.speech  # type: ignore[union-attr]
    session.made(speech.step(frames), now_s, ended=speech.done)


def begun(now_s: float, *, packets: tuple[int, ...] = (), **options: Any) -> Session:
    """A session with a row that has made ``packets``."""
    session = new_session(now_s=now_s, **options)
    begin(session, now_s)
    for frames in packets:
        make(session, frames, now_s)
    return session


def pick(*sessions: Session, now_s: float = 0.0, row_frames: int = 1000, workers: int = 1, idle: int = 0) -> Job | None:
    return Picker(workers).pick(sessions, now_s, Budget(row_frames), idle)


# ---- what comes first ------------------------------------------------------------------------------------------------


def test_nothing_to_do_is_none() -> None:
    assert pick() is None
    assert pick(new_session()) is None


def test_who_asked_first_begins_first() -> None:
    late, early = new_session(now_s=1.0), new_session(now_s=0.5)
    assert pick(late, early, now_s=1.0) == Job([early], 0, alone=False)
    assert pick(late, now_s=1.0) == Job([late], 0, alone=True)


def test_a_listener_about_to_run_dry_comes_before_a_newcomer_and_one_with_audio_behind() -> None:
    newcomer = new_session(now_s=0.095)
    dry = begun(0.0, packets=(20,))  # 100 ms in hand, which is taken
    dry.take()
    assert pick(newcomer, dry, now_s=0.096).sessions == [dry]  # type: ignore[union-attr]
    rich = begun(0.0, packets=(20, 20))
    rich.take()
    assert pick(rich, newcomer, now_s=0.1).sessions == [newcomer]  # type: ignore[union-attr]


def test_who_sounds_and_runs_dry_soon_comes_before_who_asked_long_ago() -> None:
    newcomer, sounding = begun(0.0), begun(1.0, packets=(20,))
    sounding.take()
    assert pick(newcomer, sounding, now_s=1.05).sessions[0] is sounding  # type: ignore[union-attr]
    again = begun(0.0, packets=(202,))  # what it heard has sounded long ago: it begins anew
    while again.take() is not None:
        pass
    again.add(SENTENCE, 10.0)
    begin(again, 10.0)
    newcomer = begun(9.99)
    assert pick(newcomer, again, now_s=10.2).sessions[0] is newcomer  # type: ignore[union-attr]


def test_a_first_packet_shares_its_step_only_with_other_first_ones() -> None:
    newcomer, other, rich = begun(1.0), begun(1.02), begun(0.9, packets=(20, 20))
    while rich.take() is not None:
        pass
    assert pick(newcomer, other, rich, now_s=1.06).sessions == [newcomer, other]  # type: ignore[union-attr]
    make(newcomer, 20, 1.06)
    assert rich in pick(newcomer, rich, now_s=1.06).sessions  # type: ignore[union-attr]


def test_a_long_utterance_is_read_to_its_end_behind_its_first_packet_and_shares_no_step() -> None:
    session, other = begun(0.0), begun(-1.0, packets=(20,))
    other.take()
    session.row.speech.partial = True  # type: ignore[union-attr,misc]
    assert pick(session).frames == FIRST  # type: ignore[union-attr]
    make(session, 20, 0.0)
    assert pick(session, other, now_s=0.01).sessions == [other]  # type: ignore[union-attr]
    assert pick(session) == Job([session], 0, alone=True, completes=True)


def test_rows_of_another_engine_do_not_share_a_step() -> None:
    session, other = begun(0.0), begun(0.0)
    other.row = Row(Engine(None, None, None), other.row.speech)  # type: ignore[arg-type,union-attr]
    assert len(pick(session, other, now_s=0.0).sessions) == 1  # type: ignore[union-attr]


def test_idle_workers_get_their_share_of_the_rows() -> None:
    sessions = [begun(0.0) for _ in range(4)]
    assert len(pick(*sessions).sessions) == 4  # type: ignore[union-attr]
    assert len(pick(*sessions, idle=1).sessions) == 2  # type: ignore[union-attr]


def test_a_crowd_makes_first_packets_larger() -> None:
    sizes = [pick(*[begun(0.0) for _ in range(rows)], workers=2).frames for rows in (1, 7, 8, 16, 100)]  # type: ignore[union-attr]
    assert sizes == [FIRST, FIRST, *[FIRST + ENGINE.config.chunk_frames[0]] * 3]


def test_a_crowd_makes_steps_larger_and_few_do_not() -> None:
    rows = [len(pick(*[begun(0.0) for _ in range(rows)], row_frames=40, workers=2).sessions) for rows in (7, 8, 100)]  # type: ignore[union-attr]
    assert rows == [2, 4, 4]


def test_bulk_work_waits_for_listeners_and_gets_its_share() -> None:
    picker = Picker(1)
    listener, bulk = begun(0.0), new_session("bulk", now_s=0.0)
    jobs = [picker.pick([bulk, listener], 0.0, Budget()) for _ in range(2 * BULK_SHARE)]
    assert [job.sessions[0] is bulk for job in jobs] == ([False] * (BULK_SHARE - 1) + [True]) * 2  # type: ignore[union-attr]


# ---- the utterance behind --------------------------------------------------------------------------------------------


def test_the_next_utterance_begins_while_the_row_is_made_and_takes_its_place() -> None:
    session = begun(0.0, packets=(20,))
    for _ in range(2):
        session.add(SENTENCE, 0.0)
    assert session.wants_begin
    assert session.begin_due_s(0.0) == pytest.approx(0.1 + (200 - 20) * 0.025)
    session.stepping = True
    following = begin(session, 0.1)  # a worker is in a step meanwhile
    assert not session.wants_begin  # one at a time
    assert session.row.speech is not following  # type: ignore[union-attr]
    make(session, 182, 0.2)
    assert session.row.speech is following  # type: ignore[union-attr]
    assert session.wants_begin
    assert session.wants_step


def test_what_cannot_be_begun_is_told_in_its_place() -> None:
    session = begun(0.0, packets=(20,))
    session.add(SENTENCE, 0.0)
    session.take_utterance()
    error = EngineError("no")
    session.begun(error, 0.1)
    make(session, 182, 0.2)
    assert [type(session.take()) for _ in range(4)] == [AudioChunk, AudioChunk, EngineError, type(None)]
    assert not session.has_more


def test_cancel_drops_what_was_begun_ahead_and_what_comes_late() -> None:
    session = begun(0.0)
    for _ in range(2):
        session.add(SENTENCE, 0.0)
    begin(session, 0.0)
    session.drop()
    assert (session.row, session.take(), session.wants_begin, session.wants_step) == (None, None, False, False)
    session.begun(EngineError("late"), 0.1)
    session.made(Speech(200).step(30), 0.1, ended=False)
    assert (session.row, session.take(), session.has_more) == (None, None, False)


def test_what_another_engine_has_begun_ahead_is_begun_again() -> None:
    session = begun(0.0)
    first = session.row
    session.add(SENTENCE, 0.0)
    begin(session, 0.0)
    session.begin_again(ENGINE)
    assert not session.wants_begin
    session.begin_again(Engine(None, None, None))  # type: ignore[arg-type]
    assert session.wants_begin
    assert session.row is first


def test_nothing_is_begun_for_a_listener_who_has_enough() -> None:
    session = begun(0.0, packets=(120,), ahead_s=2.0)
    session.add(SENTENCE, 0.0)
    assert not session.wants_begin
    session.take()
    assert session.wants_begin


# ---- many listeners --------------------------------------------------------------------------------------------------

BEGIN_MS = (3.0, 9.0)
STEP_MS, ROW_FRAME_MS = 1.5, 0.24
"""What a step takes, and each row and frame of it (benchmarks/batch.py, int8, one core)."""
HICCUP = (0.02, 20.0)
"""How often the machine is busy elsewhere for so many ms."""


class Simulation:
    """Listeners who play what they get in real time, and workers that take as long as the measured ones."""

    def __init__(self, listeners: int, *, workers: int = 2, row_frames: int = 36, seed: int = 1, spread_s: float = 3.0) -> None:
        self.dice = random.Random(seed)
        self.budget = Budget(row_frames)
        self.picker = Picker(workers)
        self.idle = workers
        self.sessions: dict[int, Session] = {}
        self.asked_s: dict[int, float] = {}
        self.played_s: dict[int, float] = {}
        self.waking_s: dict[int, float] = {}
        self.first_ms: list[float] = []
        self.heard_by: list[int] = []
        self.gaps_ms: list[float] = []
        self.events: list[tuple[float, int, Any]] = []
        self.order = count()
        for i in range(listeners):
            self.at(spread_s * self.dice.random(), lambda now_s, i=i: self.ask(i, now_s))

    def at(self, when_s: float, what: Any) -> None:
        heapq.heappush(self.events, (when_s, next(self.order), what))

    def run(self, seconds: float) -> None:
        while self.events and self.events[0][0] < seconds:
            now_s, _, what = heapq.heappop(self.events)
            what(now_s)
            while self.idle and (job := self.picker.pick(list(self.sessions.values()), now_s, self.budget, self.idle - 1)):
                self.idle -= 1
                self.work(job, now_s)

    def work(self, job: Job, now_s: float) -> None:
        for session in job.sessions:
            session.served_s = now_s
        if job.frames:
            took_ms = STEP_MS + ROW_FRAME_MS * len(job.sessions) * job.frames
            for session in job.sessions:
                session.stepping = True
        else:
            took_ms = self.dice.uniform(*BEGIN_MS)
            job.sessions[0].take_utterance()
        if self.dice.random() < HICCUP[0]:
            took_ms += HICCUP[1]
        self.at(now_s + took_ms / 1000, lambda now_s: self.done(job, now_s))

    def done(self, job: Job, now_s: float) -> None:
        self.idle += 1
        for session in job.sessions:
            if job.frames:
                make(session, job.frames, now_s)
            else:
                session.begun(Row(ENGINE, Speech(self.dice.randint(50, 250))), now_s)  # type: ignore[arg-type]
        for i in [i for i, session in self.sessions.items() if session in job.sessions]:
            self.listen(i, now_s)

    def ask(self, i: int, now_s: float) -> None:
        """A reply of one to three sentences."""
        self.sessions[i] = session = new_session()
        for _ in range(self.dice.randint(1, 3)):
            session.add(SENTENCE, now_s)
        self.asked_s[i], self.played_s[i] = now_s, 0.0

    def listen(self, i: int, now_s: float) -> None:
        """Takes packets while less than half a second is in hand; asks again when all has sounded."""
        session = self.sessions.get(i)
        while session is not None and self.played_s[i] - now_s < 0.5:
            packet = session.take()
            if packet is None:
                if not session.has_more:
                    del self.sessions[i]
                    self.at(self.played_s[i] + self.dice.uniform(0.1, 1.0), lambda now_s: self.ask(i, now_s))
                return
            assert isinstance(packet, AudioChunk)
            if not self.played_s[i]:
                self.first_ms.append(1000 * (now_s - self.asked_s[i]))
                self.heard_by.append(i)
            elif self.played_s[i] < now_s:
                self.gaps_ms.append(1000 * (now_s - self.played_s[i]))
            self.played_s[i] = max(self.played_s[i], now_s) + packet.duration_s
        if session is not None and self.waking_s.get(i, 0.0) <= now_s:
            self.waking_s[i] = self.played_s[i] - 0.499
            self.at(self.waking_s[i], lambda now_s: self.listen(i, now_s))


def test_two_workers_carry_64_listeners_without_a_gap() -> None:
    run = Simulation(64)
    run.run(40.0)
    assert len(run.first_ms) > 300
    assert np.percentile(run.first_ms, 99) <= 55
    assert run.gaps_ms == []


@pytest.mark.parametrize(("listeners", "workers"), [(45, 1), (96, 2)])
def test_a_burst_of_newcomers_begins_later_and_costs_nobody_a_gap(listeners: int, workers: int) -> None:
    run = Simulation(listeners, workers=workers, spread_s=0.2)
    run.run(8.0)
    assert len(run.first_ms) >= listeners
    assert run.gaps_ms == []


def test_too_many_listeners_are_all_served() -> None:
    run = Simulation(250, seed=2)
    run.run(12.0)
    assert len(set(run.heard_by)) == 250
    assert run.gaps_ms == []
