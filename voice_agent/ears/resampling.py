"""Brings what the ears hear to 16 kHz with a delay of 2 ms, where libsoxr would hold back 40."""

from __future__ import annotations

from functools import lru_cache
from math import gcd

import numpy as np

from tts_engine.types import Samples
from voice_agent.ears.config import RATE
from voice_agent.errors import InputError

__all__ = ["QuickResampler"]

_CROSSINGS = 16  # of the sinc to each side, at the lower of the two rates
_CUTOFF = 0.9  # of the lower rate's half
_KAISER = 7.0  # the stop band is 70 dB down


class QuickResampler:
    """Mono audio of any rate to 16 kHz; any chunking gives the same samples, and sample n sounds n / 16000 s after the start.

    A windowed sinc, one row of taps for each place that an output sample can have between two input samples (Smith and
    Gossett, "A flexible sampling-rate conversion method", ICASSP 1984). Up to 6 kHz nothing is lost. At most
    ``held_back`` samples of the input wait for those behind them; ``flush`` hands out the rest.
    """

    def __init__(self, rate: int) -> None:
        """``rate``: of the input, in Hz. Raises InputError where it is not positive."""
        if rate <= 0:
            raise InputError(f"a sample rate of {rate} Hz cannot be")
        self._rate = rate
        self._taps = _taps(rate)
        self.held_back = self._taps.shape[1] // 2
        self.reset()

    def reset(self) -> None:
        """Forget the stream so far."""
        self._input = np.zeros(self.held_back, dtype=np.float32)
        self._first = -self.held_back  # the input sample that _input begins with
        self._next = 0  # output sample

    def feed(self, samples: Samples) -> Samples:
        """``samples``: [samples] float32; gives those of 16 kHz that are known by now."""
        if self._rate == RATE:
            return samples
        self._input = np.concatenate([self._input, np.asarray(samples, dtype=np.float32)])
        end = self._first + len(self._input)
        # Output k lies at k * rate / RATE of the input and needs half the taps on each side of it.
        count = max(0, ((end - self.held_back) * RATE - 1) // self._rate + 1 - self._next)
        places = np.arange(self._next, self._next + count, dtype=np.int64) * self._rate
        below = places // RATE - self.held_back - self._first
        phases = places % RATE // gcd(self._rate, RATE)
        windows = self._input[below[:, None] + np.arange(self._taps.shape[1])]
        made: Samples = np.einsum("kt,kt->k", windows, self._taps[phases])
        self._next += count
        kept = self._next * self._rate // RATE - self.held_back
        self._input = self._input[max(0, kept - self._first) :]
        self._first = max(kept, self._first)
        return made

    def flush(self) -> Samples:
        """The rest of the stream; afterwards a new stream begins."""
        rest = self.feed(np.zeros(self.held_back, dtype=np.float32))
        self.reset()
        return rest if self._rate != RATE else rest[:0]


@lru_cache(maxsize=8)
def _taps(rate: int) -> Samples:
    """[phases, taps]: row p for outputs that lie p / phases of a sample behind an input sample."""
    lower = min(rate, RATE)
    half = -(-_CROSSINGS * rate // lower)
    phases = RATE // gcd(rate, RATE)
    away = np.arange(-half, half + 1) - np.arange(phases)[:, None] / phases  # in input samples
    window = np.i0(_KAISER * np.sqrt(np.maximum(0.0, 1 - (away / (half + 1)) ** 2))) / np.i0(_KAISER)
    cutoff = _CUTOFF * lower / rate
    weights = cutoff * np.sinc(cutoff * away) * window
    taps: Samples = (weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)
    return taps
