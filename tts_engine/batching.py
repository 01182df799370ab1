"""Which rows share a step, and how many frames it may hold. Pure decisions: the scheduler brings the rows in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LEAST_ROW_FRAMES = 20
"""A step may always hold so much: one first packet with its unheard opening."""
MOST_ROW_FRAMES = 256
"""Beyond this (90 MiB) a larger step costs memory and gains nothing: benchmarks/batch.py."""
ROW_FRAME_BYTES = 360 << 10
"""What a step needs for each row and frame: 0.23 to 0.35 MiB (benchmarks/batch.py)."""
CROWD_STEPS = 3
"""Where many wait, a step may take so many times as long: 4 rows of 24 frames cost a fifth less each than one alone."""


@dataclass(frozen=True, slots=True)
class Want:
    """What a row asks of the next step.

    ``frames``: of its next packet; ``rest``: until its utterance ends; ``urgent``: it will run dry soon. ``least``: with
    fewer frames there would be nothing to hear.
    """

    frames: int
    rest: int
    urgent: bool
    least: int = 1


def choose(wants: Sequence[Want], budget: int) -> tuple[list[int], int]:
    """Rows for one step, of those that wait (the most urgent first), and the frames that it makes of each.

    The first row is always in. Others join while rows x frames stay within ``budget``, if the step suits them: their
    own packet is about as long, or longer while they are in no position to wait. A row near its end may be filled up
    by half a step at most; none else is given more than it asks for, and none less than its least.
    """
    count = min(wants[0].frames, max(budget, LEAST_ROW_FRAMES, wants[0].least))
    shortest = max(-(-3 * count // 4), wants[0].least)
    chosen = [0]
    for i, want in enumerate(wants[1:], 1):
        if (len(chosen) + 1) * count > budget:
            break
        if want.frames >= shortest:
            if want.least > count or (want.frames > 2 * count and not want.urgent):
                continue
            count = min(count, want.frames)
            shortest = max(shortest, want.least)
        elif not (want.frames == want.rest and 2 * want.rest >= count):
            continue
        chosen.append(i)
    return chosen, count


class StepBudget:
    """How many rows x frames a step may hold so that it takes about ``step_s``: learned from the steps that were made.

    A newcomer waits for the step that is under way, so its length bounds the time to first sound.
    """

    def __init__(self, step_s: float, row_frames: int = 48) -> None:
        self._step_s = step_s
        self._row_frames = float(row_frames)
        self._fit = MOST_ROW_FRAMES  # into the memory that is left

    @property
    def row_frames(self) -> int:
        return min(int(self._row_frames), self._fit)

    @property
    def crowd_row_frames(self) -> int:
        """The same where so many wait that what is made in all counts for more than how soon a newcomer gets its turn."""
        return min(int(CROWD_STEPS * self._row_frames), self._fit)

    def bound(self, spare_bytes: float | None) -> None:
        """A step may take so much memory; None: as much as it likes."""
        fit = MOST_ROW_FRAMES if spare_bytes is None else int(spare_bytes / ROW_FRAME_BYTES)
        self._fit = min(max(fit, LEAST_ROW_FRAMES), MOST_ROW_FRAMES)

    def feed(self, row_frames: int, took_s: float) -> None:
        """A step of so many rows x frames took so long."""
        fits = row_frames * self._step_s / took_s
        if took_s > self._step_s:
            wanted = max(fits, 0.7 * self._row_frames)  # one slow step may be the machine's fault
            self._set(min(wanted, self._row_frames))
        elif 2 * row_frames > self._row_frames:
            self._set(min(max(fits, self._row_frames), 1.25 * self._row_frames))

    def halve(self) -> None:
        """A step failed, perhaps for want of memory."""
        self._set(self._row_frames / 2)

    def _set(self, row_frames: float) -> None:
        self._row_frames = min(max(row_frames, LEAST_ROW_FRAMES), MOST_ROW_FRAMES)
