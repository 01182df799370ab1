"""What a free worker does next: begins an utterance, or makes the next packet of some rows in one batch.

Earliest deadline first. A listener's next packet is due when what it has runs dry, its first one soon after it asked, and the
utterance behind the present one when that one will have sounded. Who sounds and would run dry soon comes before who hears
nothing yet. Decisions only: no clock, no lock, no thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from tts_engine.batching import Want, choose
from tts_engine.engine import FLUSH_FRAMES
from tts_engine.sessions import Row, Session

BULK_SHARE = 16
"""Bulk work comes behind listeners, but gets every so many-th turn at least."""
URGENT_S = 0.5
"""A row that runs dry so soon joins a step that makes less of it than it would like."""
RUSH_S = 0.2
"""A listener who runs dry so soon comes before all who hear nothing yet, and a first packet shares its step with no others:
a burst of newcomers begins as fast as it can be kept up, and costs nobody a gap."""
CROWD = 4
"""So many urgent rows for each worker are a crowd: the first packet of an utterance is twice as long, and
steps hold more."""


class Budget(Protocol):
    """How many rows x frames a step may hold."""

    @property
    def row_frames(self) -> int: ...

    @property
    def crowd_row_frames(self) -> int:
        """The same for a crowd."""
        ...


@dataclass(frozen=True, slots=True)
class Job:
    """The next ``frames`` frames of each session's row; 0 frames: the beginning of the only session's next utterance, or, where
    it ``completes``, the reading of its row's utterance to the end.

    ``alone``: nothing is left for another worker.
    """

    sessions: Sequence[Session]
    frames: int
    alone: bool
    completes: bool = False


@dataclass(frozen=True, slots=True)
class _Open:
    """Something that could be done for a session."""

    session: Session
    begins: bool
    due_s: float

    @property
    def row(self) -> Row:
        assert self.session.row is not None
        return self.session.row

    @property
    def completes(self) -> bool:
        """Its utterance must be read to the end before its next packet can be made."""
        return not self.begins and self.row.speech.partial and self.row.speech.packets > 0


class Picker:
    """Picks for ``workers`` workers. Keeps only the count of turns, for the share of bulk work."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._turns = 0

    def pick(self, sessions: Iterable[Session], now_s: float, budget: Budget, idle: int = 0) -> Job | None:
        """The job that is due first. ``budget``: what a step may hold; ``idle``: workers that wait."""
        jobs = []
        for session in sessions:
            if session.wants_step:
                jobs.append(_Open(session, False, session.due_s(now_s)))
            if session.wants_begin:
                jobs.append(_Open(session, True, session.begin_due_s(now_s)))
        if not jobs:
            return None
        rush_s = now_s + RUSH_S
        jobs.sort(key=lambda job: (not (job.session.sounds and job.due_s < rush_s), job.due_s, job.session.served_s))
        self._turns += 1
        if self._turns % BULK_SHARE == 0:
            bulk = [job for job in jobs if job.session.priority == "bulk"]
            if bulk:
                first = min(bulk, key=lambda job: job.session.served_s)
                jobs.remove(first)
                jobs.insert(0, first)
        if jobs[0].begins:
            return Job([jobs[0].session], 0, alone=len(jobs) == 1)
        if jobs[0].completes:
            return Job([jobs[0].session], 0, alone=len(jobs) == 1, completes=True)
        chosen, frames = self._batch([job for job in jobs if not job.begins and not job.completes], now_s, budget, idle)
        return Job([job.session for job in chosen], frames, alone=len(jobs) == len(chosen))

    def _batch(self, steps: Sequence[_Open], now_s: float, budget: Budget, idle: int) -> tuple[list[_Open], int]:
        """Rows that share a step with the first, and its frames."""
        first = steps[0]
        rushed = not first.row.speech.packets and first.session.priority == "interactive"
        latest_s = now_s + RUSH_S if rushed else float("inf")
        steps = [step for step in steps if step.row.engine is first.row.engine and (step is first or step.due_s <= latest_s)]
        urgent = sum(step.due_s < now_s + URGENT_S for step in steps)
        crowd = urgent >= CROWD * self._workers
        wants = [_want(step.row, larger=crowd, urgent=step.due_s < now_s + URGENT_S) for step in steps]
        share = -(-len(wants) // (1 + idle))
        chosen, frames = choose(wants[:share], budget.crowd_row_frames if crowd else budget.row_frames)
        return [steps[i] for i in chosen], frames


def _want(row: Row, *, larger: bool, urgent: bool) -> Want:
    speech = row.speech
    rest = speech.frames + FLUSH_FRAMES - speech.frame
    # A first packet that is cut short is all lead-in.
    least = 1 if speech.packets else row.engine.wanted_frames(speech)
    return Want(row.engine.wanted_frames(speech, larger=larger), rest, urgent, least)
