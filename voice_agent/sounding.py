"""Where speech sounds and where it is silent, by its level, as it is made."""

from __future__ import annotations

import numpy as np

from tts_engine.types import Samples

__all__ = ["Sounding"]

_BLOCK_S = 0.01
_BELOW_PEAK = 10 ** (-35 / 10)
"""Of the power of the loudest block so far: what is below counts as silence. Weak endings of words are above."""


class Sounding:
    """The samples of one utterance go in, in order; spans of them come out without the silence at their edges."""

    def __init__(self, sample_rate: int) -> None:
        self._block = max(1, round(_BLOCK_S * sample_rate))
        self._powers: list[float] = []  # of whole blocks
        self._rest = np.zeros(0, np.float32)  # powers of the samples behind them
        self._peak = 0.0
        self.samples = 0

    def feed(self, samples: Samples) -> None:
        """``samples``: [samples] or [samples, channels] float32."""
        powers = np.square(samples if samples.ndim == 1 else samples.mean(axis=1, dtype=np.float32))
        self.samples += len(samples)
        whole = np.concatenate([self._rest, powers])
        count = len(whole) // self._block
        blocks = whole[: count * self._block].reshape(count, self._block).mean(axis=1)
        self._powers += blocks.tolist()
        self._peak = max(self._peak, float(blocks.max(initial=0.0)))
        self._rest = whole[count * self._block :]

    def begins(self, start: int, end: int) -> int:
        """Where between ``start`` and ``end`` it begins to sound; ``start`` where that cannot be told (yet)."""
        loud = self._loud(start, end)
        return max(start, loud[0] * self._block) if loud else start

    def ends(self, start: int, end: int) -> int:
        """Where between ``start`` and ``end`` it sounds for the last time; ``end`` where it does not sound at all."""
        loud = self._loud(start, end)
        return min(end, (loud[-1] + 1) * self._block) if loud else end

    def _loud(self, start: int, end: int) -> list[int]:
        first, behind = start // self._block, -(-end // self._block)
        blocks = self._powers[first:behind]
        if behind > len(self._powers) and len(self._rest):
            blocks.append(float(self._rest.mean()))
        bound = self._peak * _BELOW_PEAK
        return [first + position for position, power in enumerate(blocks) if power > bound]
