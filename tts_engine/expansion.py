"""From phonemes to frames, in numpy: durations, the expansion that the models read, and the prosody that they are told."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float32]

MELS_PER_FRAME = 2
LOG_F0_OFFSET = 5.3
PROSODY_REACH_FRAMES = 24
"""How far the prosody predictor looks to each side (four blocks of width 13)."""
LONGEST_FRAMES = 200
"""No phoneme is longer than this at speed 1 (5 s), whatever a voice says."""
HIGHEST_F0_HZ = 2500.0
"""No pitch is higher than this: the pulses need a harmonic below the vocoder's limit of 5 kHz."""


def frame_durations(log_durations: Floats, speed: ArrayLike = 1.0) -> NDArray[np.int64]:
    """Log durations [phonemes] to whole frames, at least one each; ``speed`` is a factor, one for all or one a phoneme."""
    frames = np.exp(np.minimum(log_durations, np.float32(math.log(LONGEST_FRAMES))))
    return np.maximum(np.rint(frames / np.asarray(speed, np.float32)), 1).astype(np.int64)


def fitted_durations(log_durations: Floats, speed: Floats, inside: slice) -> NDArray[np.int64]:
    """:func:`frame_durations` whose sum over the phonemes ``inside`` is what ``speed`` [phonemes] makes of that at speed 1.

    A phoneme is a few frames long, so rounding alone makes a short sentence up to a tenth too short or too long, and at high
    speed many would be shorter than the least of one frame; the others give way, as far as they can.
    """
    durations = frame_durations(log_durations, speed)
    changed = np.zeros(len(durations), bool)
    changed[inside] = speed[inside] != 1
    logs, factors = log_durations[changed], speed[changed]
    wanted = float(np.sum(frame_durations(logs) / factors))
    if abs(durations[changed].sum() - wanted) <= max(0.5, wanted * 0.01):
        return durations
    low, high = 0.5, 2.0
    for _ in range(10):
        middle = (low + high) / 2
        if frame_durations(logs, factors * middle).sum() > wanted:
            low = middle
        else:
            high = middle
    durations[changed] = frame_durations(logs, factors * high)
    return durations


@dataclass(frozen=True, slots=True)
class Alignment:
    """Which phoneme each frame of one sentence belongs to, and where in it the frame stands.

    ``phoneme``: [frames] index; ``inside``: [frames, 4] position numbers.
    """

    phoneme: NDArray[np.int64]
    inside: Floats

    @staticmethod
    def of(durations: NDArray[np.int64]) -> Alignment:
        """From ``durations`` [phonemes] in frames."""
        phoneme = np.repeat(np.arange(len(durations)), durations)
        starts = np.cumsum(durations) - durations
        o = (np.arange(len(phoneme)) - starts[phoneme]).astype(np.float32)
        n = durations[phoneme].astype(np.float32)
        inside = np.stack((o / n, (n - 1 - o) / n, np.log(n) / 3, np.exp(-o)), axis=1)
        return Alignment(phoneme, inside)

    def __len__(self) -> int:
        return len(self.phoneme)

    def expand(self, encoded: Floats, start: int, stop: int, out: Floats | None = None) -> Floats:
        """The expansion of ``encoded`` [phonemes, channels] for frames [start, stop): [stop - start, channels + 4]."""
        channels = encoded.shape[1]
        if out is None:
            out = np.empty((stop - start, channels + 4), np.float32)
        out[:, :channels] = encoded[self.phoneme[start:stop]]
        out[:, channels:] = self.inside[start:stop]
        return out


def condition_prosody(raw: Floats, semitones: Floats | float = 0.0) -> tuple[Floats, Floats]:
    """What the decoder and the vocoder are told about prosody, from the predictor's six numbers a frame [frames, 6].

    Those are log-F0 - 5.3 of two mel frames, the voiced logit of each and energy / 5 of each. Gives the decoder's six
    [frames, 6] and F0 in Hz [2 frames] (0 where unvoiced). ``semitones`` [frames] or one number moves the pitch.
    """
    voiced = raw[:, 2:4] > 0
    shift = np.asarray(semitones, np.float32) * np.float32(math.log(2) / 12)
    log_f0 = raw[:, 0:2] + (shift[:, None] if shift.ndim else shift)
    log_f0 = np.minimum(log_f0, np.float32(math.log(HIGHEST_F0_HZ) - LOG_F0_OFFSET))
    told = np.concatenate((np.where(voiced, log_f0, np.float32(0)), voiced.astype(np.float32), raw[:, 4:6]), axis=1)
    f0 = np.where(voiced, np.exp(log_f0 + np.float32(LOG_F0_OFFSET)), np.float32(0))
    return told, f0.reshape(-1)
