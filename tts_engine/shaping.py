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
QUIET = 10 ** (-60 / 20)
"""The level below which the end of an utterance counts as silence: -60 dBFS."""
ENOUGH_QUIET_SAMPLES = 3600
"""So much silence in the last phonemes ends an utterance (150 ms): the closure of a final plosive is shorter."""
KEPT_QUIET_SAMPLES = 960
"""Silence that is kept behind the last sound: 40 ms."""


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
    From model sample ``tail`` on, silence at the end is cut: models are trained with up to a second of it, and how long a
    pause is shall be planned, not learned. ``closing`` samples of silence come last. ``fed``: as many samples went through
    another shaper, which had the same silences and levels up to there.
    """

    def __init__(
        self,
        total: int,
        silences: list[Silence],
        levels: list[Level],
        *,
        tail: int | None = None,
        closing: int = 0,
        fed: int = 0,
    ) -> None:
        self._total = total
        self._silences = silences = [silence for silence in silences if silence.length]
        self._levels = levels
        self._tail = total if tail is None else tail
        self._closing = closing
        self._starts = [silence.at for silence in silences]
        self._added = np.cumsum([0] + [silence.length for silence in silences]).tolist()
        self._plain = len(levels) <= 1 and (not levels or levels[0].gain == 1.0)
        self.fed = fed  # model samples so far
        self._held = self._held_raw = np.zeros(0, np.float32)  # silence of the tail that may be the end
        self.done = False

    def placed(self, at: int) -> int:
        """Where model sample ``at`` is put out."""
        return at + int(self._added[bisect_right(self._starts, at)])

    def feed(self, samples: Samples) -> list[Samples]:
        """The next model samples -> what is put out for them, silences included.

        Once ``done`` everything is out: all samples have come, or the tail has been silent for long enough.
        """
        if self.done:
            return []
        start, stop = self.fed, self.fed + len(samples)
        self.fed = stop
        shaped = self._fade(self._amplify(samples, start), start)
        out: list[Samples] = []
        at = start
        for silence in self._silences:
            if start <= silence.at < stop:
                out.append(shaped[at - start : silence.at - start])
                out.append(np.zeros(silence.length, np.float32))
                at = silence.at
        tail = max(self._tail, at) - start
        out.append(shaped[at - start : tail])
        out.append(self._trim(samples[tail:], shaped[tail:]))
        if stop >= self._total:
            out.append(self._held[:KEPT_QUIET_SAMPLES])
            self.done = True
        if self.done:
            out.append(np.zeros(self._closing, np.float32))
        return [part for part in out if len(part)]

    def _trim(self, raw: Samples, shaped: Samples) -> Samples:
        """The next samples of the tail, without the silence at their end; ends the utterance at a long one.

        What is silent is read off the ``raw`` samples: a low volume is no end.
        """
        raw = np.concatenate((self._held_raw, raw))
        shaped = np.concatenate((self._held, shaped))
        edges = np.concatenate(([-1], np.flatnonzero(np.abs(raw) >= QUIET), [len(raw)]))
        long = np.flatnonzero(np.diff(edges) > ENOUGH_QUIET_SAMPLES)
        if len(long):
            self._held = self._held[:0]
            self.done = True
            return shaped[: edges[long[0]] + 1 + KEPT_QUIET_SAMPLES]
        end = int(edges[-2]) + 1
        self._held_raw, self._held = raw[end:], shaped[end:]
        return shaped[:end]

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
        louder: Samples = (samples * gain).astype(np.float32)
        return louder

    def _fade(self, samples: Samples, start: int) -> Samples:
        """Ramps down to and up from each silence that stands inside the sound."""
        stop = start + len(samples)
        for silence in self._silences:
            if silence.at == 0 or silence.at + FADE_SAMPLES <= start or silence.at - FADE_SAMPLES >= stop:
                continue
            distance = np.abs(np.arange(start, stop) + 0.5 - silence.at) / FADE_SAMPLES
            samples = (samples * np.minimum(distance, 1.0)).astype(np.float32)
        return samples
