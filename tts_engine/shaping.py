"""What happens to samples after the vocoder: volume, breaks of exact length, silence before and after.

Positions of the model's own samples and of the samples that are put out differ by the silence that was put in;
:class:`SampleShaper` knows both.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from tts_engine.types import Samples

FADE_SAMPLES = 120
"""Ramp to each side of a silence that is put into sound: 5 ms at 24 kHz."""
RAMP_SAMPLES = 480
"""Ramp of a change in volume: 20 ms at 24 kHz."""


@dataclass(frozen=True, slots=True)
class Silence:
    """``length`` samples of silence before model sample ``at``."""

    at: int
    length: int


@dataclass(frozen=True, slots=True)
class Level:
    """From model sample ``at`` on the volume goes to ``gain`` (a factor), over ``RAMP_SAMPLES``."""

    at: int
    gain: float


class SampleShaper:
    """Applies levels and silences to one utterance's samples, in order, for any chunking.

    ``silences`` and ``levels`` are sorted; the first level holds from the start. ``total`` is the number of model samples.
    """

    def __init__(self, total: int, silences: list[Silence], levels: list[Level]) -> None:
        self._total = total
        self._silences = silences = [silence for silence in silences if silence.length]
        self._levels = levels
        self._starts = [silence.at for silence in silences]
        self._added = np.cumsum([0] + [silence.length for silence in silences]).tolist()
        self._plain = len(levels) <= 1 and (not levels or levels[0].gain == 1.0)
        self._taken = 0

    @property
    def total(self) -> int:
        """Samples that will have been put out at the end."""
        return self._total + int(self._added[-1])

    def placed(self, at: int) -> int:
        """Where model sample ``at`` is put out."""
        return at + int(self._added[bisect_right(self._starts, at)])

    def feed(self, samples: Samples) -> list[Samples]:
        """The next model samples -> what is put out for them, silences included. The last call closes with the tail."""
        start, stop = self._taken, self._taken + len(samples)
        self._taken = stop
        shaped = self._fade(self._amplify(samples, start), start)
        out: list[Samples] = []
        at = start
        for silence in self._silences:
            if start <= silence.at < stop or silence.at == stop == self._total:
                out.append(shaped[at - start : silence.at - start])
                out.append(np.zeros(silence.length, np.float32))
                at = silence.at
        out.append(shaped[at - start :])
        return [part for part in out if len(part)]

    def _amplify(self, samples: Samples, start: int) -> Samples:
        if self._plain or not len(samples):
            return samples
        corners: list[tuple[int, float]] = []
        for level in self._levels:
            if corners:
                corners.append((max(level.at, corners[-1][0]), corners[-1][1]))
                corners.append((max(level.at, corners[-1][0]) + RAMP_SAMPLES, level.gain))
            else:
                corners.append((level.at, level.gain))
        where, gains = zip(*corners, strict=True)
        gain = np.interp(np.arange(start, start + len(samples)), where, gains)
        return (samples * gain).astype(np.float32)

    def _fade(self, samples: Samples, start: int) -> Samples:
        """Ramps down to and up from each silence that stands inside the sound."""
        stop = start + len(samples)
        for silence in self._silences:
            if silence.at in (0, self._total) or silence.at + FADE_SAMPLES <= start or silence.at - FADE_SAMPLES >= stop:
                continue
            distance = np.abs(np.arange(start, stop) + 0.5 - silence.at) / FADE_SAMPLES
            samples = (samples * np.minimum(distance, 1.0)).astype(np.float32)
        return samples
