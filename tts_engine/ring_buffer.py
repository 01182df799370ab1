"""A wait-free ring of float32 samples between exactly one writing and one reading thread."""

from __future__ import annotations

import numpy as np

from tts_engine.types import Samples


class RingBuffer:
    """Holds at most ``capacity`` samples; neither side ever waits, locks or allocates a buffer.

    One thread calls ``write``, one thread calls ``read`` and ``drop``. Each side owns one counter, which only grows,
    and publishes it after the samples are in place, so the other side sees whole samples in order (Lamport's
    single-producer single-consumer queue). ``written`` and ``taken`` count samples since the ring was made; dropped
    ones count as taken.
    """

    __slots__ = ("_samples", "_taken", "_written")

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError(f"a ring needs room for at least one sample, not {capacity}")
        self._samples = np.zeros(capacity, dtype=np.float32)
        self._written = 0
        self._taken = 0

    @property
    def capacity(self) -> int:
        return len(self._samples)

    @property
    def written(self) -> int:
        return self._written

    @property
    def taken(self) -> int:
        return self._taken

    def __len__(self) -> int:
        """Samples that wait to be read. The other thread may change it at any time, but only in its own direction."""
        # The reader's counter first: in the other order a read between the two could make the difference negative.
        taken = self._taken
        return self._written - taken

    def write(self, samples: Samples) -> int:
        """Take as many of ``samples`` ([samples] float32) as there is room for, from the front; returns how many."""
        start = self._written
        count = min(len(samples), self.capacity - (start - self._taken))
        at = start % self.capacity
        first = min(count, self.capacity - at)
        self._samples[at : at + first] = samples[:first]
        self._samples[: count - first] = samples[first:count]
        self._written = start + count
        return count

    def read(self, out: Samples) -> int:
        """Fill ``out`` ([samples] float32) from its front with what waits, leave the rest; returns how many."""
        start = self._taken
        count = min(len(out), self._written - start)
        at = start % self.capacity
        first = min(count, self.capacity - at)
        out[:first] = self._samples[at : at + first]
        out[first:count] = self._samples[: count - first]
        self._taken = start + count
        return count

    def drop(self, until: int) -> None:
        """Forget what waits of the first ``until`` samples ever written (a call of the reading side)."""
        self._taken = max(self._taken, min(until, self._written))
