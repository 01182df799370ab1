"""How many seconds of audio a second the workers can make, learned from how long they took for what they made lately.

Plain bookkeeping: no clock, no lock, no thread. It counts by the clock on the wall, so what else the machine does is in it.
"""

from __future__ import annotations

import math

FIRST_GUESS = 60.0
"""Seconds of audio for each second of a worker, until it is known better."""
MEMORY_S = 3.0
"""Seconds of work after which what was measured counts for a third."""


class Throughput:
    """What ``workers`` workers make if they are always busy, as they are while too many listen."""

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._busy_s = 1.0
        self._audio_s = FIRST_GUESS

    def feed(self, took_s: float, audio_s: float = 0.0) -> None:
        """A worker was busy for ``took_s`` and made ``audio_s`` of audio."""
        kept = math.exp(-took_s / MEMORY_S)
        self._busy_s = kept * self._busy_s + took_s
        self._audio_s = kept * self._audio_s + audio_s

    @property
    def audio_s_per_s(self) -> float:
        return self._workers * self._audio_s / self._busy_s
