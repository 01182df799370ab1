"""Makes speech slower or faster without changing its pitch: WSOLA, for a stream.

The output is made of windows that overlap by half. Each is taken from about where the time line of the input, stretched,
puts it: from that place within ``REACH`` samples which goes on best from the window before, by normalised correlation
(Verhelst and Roelands, "An overlap-add technique based on waveform similarity", ICASSP 1993). The places are absolute, so
nothing adds up: the output is never more than ``REACH`` off, and its length is the input's divided by the tempo.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tts_engine.types import Samples
from voice_agent.errors import InputError

__all__ = ["TEMPO_RANGE", "Stretcher"]

TEMPO_RANGE = (0.2, 5.0)
HOP = 300
"""Output samples from window to window: 12.5 ms at 24 kHz, more than the period of a deep voice."""
WINDOW = 2 * HOP
REACH = 300
"""How far to each side a better place is looked for: 12.5 ms, so that a period of 80 Hz lies inside."""


class Stretcher:
    """Mono speech at ``tempo`` times its speed: [samples] float32 in and out; any chunking gives the same samples.

    The constants fit rates around 24 kHz. Up to 40 ms are held back, which ``flush`` hands out.
    """

    def __init__(self, tempo: float) -> None:
        """``tempo`` from 0.2 to 5; 2.0 takes half the time. Raises InputError."""
        if not TEMPO_RANGE[0] <= tempo <= TEMPO_RANGE[1]:
            raise InputError(f"tempo is {tempo!r}: use a number from {TEMPO_RANGE[0]:g} to {TEMPO_RANGE[1]:g}")
        self._tempo = tempo
        ramp = np.arange(HOP) + 0.5
        self._rise = (np.sin(np.pi / 2 * ramp / HOP) ** 2).astype(np.float32)
        self._fall = self._rise[::-1].copy()
        self.reset()

    def reset(self) -> None:
        """Forgets the stream; a new one begins."""
        self._input = np.zeros(0, np.float32)
        self._start = 0  # of _input in the stream
        self._taken = 0  # input samples so far
        self._windows = 0
        self._place = 0  # where the window before was taken from
        self._put_out = 0

    def feed(self, samples: Samples) -> Samples:
        """The next samples; gives what is ready."""
        self._input = np.concatenate((self._input, np.asarray(samples, np.float32)))
        self._taken += len(samples)
        return self._make(self._taken)

    def flush(self) -> Samples:
        """The rest of the stream; afterwards a new one begins."""
        total = round(self._taken / self._tempo)
        missing = total - self._put_out
        end = round((self._windows + missing // HOP + 3) * HOP * self._tempo) + 2 * REACH + 2 * WINDOW
        self._input = np.concatenate((self._input, np.zeros(max(0, end - self._taken), np.float32)))
        rest = self._make(end)[:missing]
        self.reset()
        return rest

    def _make(self, taken: int) -> Samples:
        """All windows that the input reaches for, half of each: the other half waits for the next window."""
        made: list[Samples] = []
        while True:
            aim = self._aim()
            # The window that goes on from the one before is needed as well as all candidates.
            if max(aim + REACH, self._place + HOP) + WINDOW > taken:
                break
            before = self._place
            self._place = self._best(aim) if self._windows else 0
            window = self._cut(self._place, HOP)
            made.append(self._cut(before + HOP, HOP) * self._fall + window * self._rise if self._windows else window)
            self._windows += 1
            self._forget(min(self._place + HOP, self._aim() - REACH))
        out = np.concatenate(made) if made else np.zeros(0, np.float32)
        self._put_out += len(out)
        return out

    def _aim(self) -> int:
        """Where the next window would be taken from, so that its middle is in time."""
        return max(0, round((self._windows + 1) * HOP * self._tempo) - HOP)

    def _best(self, aim: int) -> int:
        """The place near ``aim`` that is most like what follows the window before, where the two overlap.

        Only there: over more, the windows would be in step behind their seam, and where the pitch falls or rises each seam
        would add to that.
        """
        first = max(0, aim - REACH)
        wanted = self._cut(self._place + HOP, HOP)
        candidates = self._cut(first, aim + REACH - first + HOP)
        likeness = np.correlate(candidates, wanted, "valid")
        squares: NDArray[np.float64] = np.concatenate(([0.0], np.cumsum(np.square(candidates, dtype=np.float64))))
        energy = squares[HOP:] - squares[:-HOP]
        score = likeness / np.sqrt(energy + 1e-6)
        return first + int(np.argmax(score))

    def _cut(self, place: int, length: int) -> Samples:
        return self._input[place - self._start : place - self._start + length]

    def _forget(self, before: int) -> None:
        count = max(0, before - self._start)
        self._input = self._input[count:]
        self._start += count
