"""The newest stretch of audio, addressed by hops since the start."""

from __future__ import annotations

from collections import deque
from itertools import islice

import numpy as np

from tts_engine.types import Samples

__all__ = ["Recording"]


class Recording:
    """Hops of audio in order; what is older than asked for is forgotten."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._hops: deque[Samples] = deque()
        self._first = 0  # number of the oldest hop

    def feed(self, hop: Samples) -> None:
        self._hops.append(hop)

    def forget(self, before: int) -> None:
        """Drop the hops before this one."""
        while self._hops and self._first < before:
            self._hops.popleft()
            self._first += 1

    def between(self, first: int, stop: int) -> Samples:
        """The samples of hops ``[first, stop)``, as far as they are there."""
        hops = list(islice(self._hops, max(first - self._first, 0), max(stop - self._first, 0)))
        return np.concatenate(hops) if hops else np.zeros(0, dtype=np.float32)
