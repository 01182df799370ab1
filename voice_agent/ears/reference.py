"""Lines up what the agent sounded with what the microphone took: the reference that the echo guard compares with."""

from __future__ import annotations

import statistics
from collections import deque

import numpy as np

from tts_engine.types import Samples
from voice_agent.audio import map_channels
from voice_agent.ears.config import RATE
from voice_agent.ears.resampling import QuickResampler

__all__ = ["Reference", "SampleClock"]

_JUDGED = 128  # moments that are looked back on
_ENOUGH = 24  # of them tell something
_LEAST_JUMP_S = 0.005
_JUMP_SPREADS = 4
_UNKNOWN_SPREAD_S = 0.05
_LATE_S = 1.0  # what comes from another thread or program may be late by so much while the machine is busy
_DRIFT_S = 0.04  # less the canceller follows by itself; a new start costs it what it has learnt
_KEPT_S = 5.0
_WAITING = 2048  # pieces that may wait while nobody asks for them


class SampleClock:
    """When the samples of a stream sound, by counting them.

    The moments that come with buffers jitter, while an echo canceller needs every sample in its place. So the first moment
    counts, and the samples from there on. A new start is made where the moments are off by 40 ms in the median, or one
    of them by more than such moments ever are.
    """

    def __init__(self, rate: int, *, scheduled: bool) -> None:
        """``scheduled``: the moments are planned ones, so a gap between pieces is one; else they tell when pieces came."""
        self._rate = rate
        self._scheduled = scheduled
        self._expected_s: float | None = None
        self._off_s: deque[float] = deque(maxlen=_JUDGED)
        self._spread_s = _UNKNOWN_SPREAD_S

    def feed(self, count: int, at_s: float) -> float | None:
        """The next ``count`` samples begin at ``at_s``, more or less; gives the moment where a new start is made."""
        start_s = self._new_start(at_s)
        if start_s is not None:
            self._expected_s = start_s
            self._off_s.clear()
        assert self._expected_s is not None
        self._expected_s += count / self._rate
        return start_s

    def _new_start(self, at_s: float) -> float | None:
        if self._expected_s is None:
            return at_s
        off_s = at_s - self._expected_s
        if abs(off_s) > (_LEAST_JUMP_S + _JUMP_SPREADS * self._spread_s if self._scheduled else _LATE_S):
            return at_s
        self._off_s.append(off_s)
        if len(self._off_s) < _ENOUGH:
            return None
        self._spread_s = max(self._off_s) - min(self._off_s)
        middle_s = statistics.median_low(self._off_s)
        return self._expected_s + middle_s if abs(middle_s) > _DRIFT_S else None


class Reference:
    """What sounded in the last seconds, 16 kHz mono. ``take`` may come from another thread than the rest."""

    def __init__(self, rate: int) -> None:
        """``rate``: of what is taken, in Hz."""
        self._rate = rate
        self._clock = SampleClock(rate, scheduled=True)
        self._waiting: deque[tuple[Samples, float]] = deque(maxlen=_WAITING)
        self._resampler = QuickResampler(rate)
        self._kept = np.zeros(round(_KEPT_S * RATE), dtype=np.float32)  # sample n of time is at n modulo its length
        self._end = 0  # the sample of time behind the newest

    def take(self, frames: Samples, begins_s: float) -> None:
        """``frames`` ([frames, channels] float32) sound from ``begins_s`` on: a sink's monitor."""
        self._waiting.append((frames, begins_s))

    def between(self, first: int, stop: int) -> Samples | None:
        """The samples of time ``first`` to ``stop`` (16,000 a second, as ``round(seconds * 16000)``), None for silence."""
        while self._waiting:
            frames, begins_s = self._waiting.popleft()
            self._add(map_channels(frames, 1), begins_s)
        oldest = self._end - len(self._kept)
        begin, end = max(first, oldest), min(stop, self._end)
        if begin >= end:
            return None
        places = np.arange(begin, end) % len(self._kept)
        found = self._kept[places]
        if not found.any():
            return None
        return np.pad(found, (begin - first, stop - end))

    def _add(self, samples: Samples, begins_s: float) -> None:
        start_s = self._clock.feed(len(samples), begins_s)
        if start_s is not None:
            self._write(self._resampler.flush())
            self._skip_to(round(start_s * RATE))
        self._write(self._resampler.feed(samples))

    def _skip_to(self, place: int) -> None:
        """The next sample is the one of ``place``; what lies between is silence."""
        if place > self._end:
            gap = min(place - self._end, len(self._kept))
            self._kept[np.arange(place - gap, place) % len(self._kept)] = 0.0
        self._end = place

    def _write(self, samples: Samples) -> None:
        samples = samples[-len(self._kept) :]
        self._kept[np.arange(self._end, self._end + len(samples)) % len(self._kept)] = samples
        self._end += len(samples)
