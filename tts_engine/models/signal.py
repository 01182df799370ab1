"""The signal half of the vocoder in numpy, streaming: F0, noise and filters to samples.

A pulse train, noise and noise modulated at the pitch are cut into STFT frames, shaped by the filters and added up again.
Works on the delayed time line of the vocoder's body: filters come ``LOOK_AHEAD_MELS`` mel frames late, samples one more.
The whole form, which this equals, is ``tts_engine.models.vocoder``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tts_engine.expansion import Floats

SAMPLE_RATE = 24_000
MEL_HOP = 300
FFT = 600
HOP = 150
OVERLAP = FFT // HOP
MAX_HARMONIC_HZ = 5000.0
LOOK_AHEAD_MELS = 3
DELAY_MELS = LOOK_AHEAD_MELS + 1
"""After n mel frames the samples of the first n - 4 are final: the body's look-ahead and half a window."""

_HALF = MEL_HOP // 2
_RISING = np.arange(_HALF) / MEL_HOP + (0.5 / MEL_HOP + 0.5)  # from the middle of the frame before, in frames
_FALLING = np.arange(_HALF) / MEL_HOP + 0.5 / MEL_HOP
_PI = np.float32(np.pi)


def hann(size: int) -> Floats:
    """The periodic Hann window."""
    return (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(size) / size)).astype(np.float32)


_WINDOW = hann(FFT)
_SQUARED = _WINDOW**2
_FULL_SUM = np.float32(1.5)  # of squared windows, where all four overlap


@dataclass(slots=True)
class SignalState:
    """What one row carries: cycles at the middle of the last excited mel frame, F0 of the last two frames given, the last 600
    samples of each excitation, and the overlap-add tail."""

    phase: float = 0.0
    f0: Floats = field(default_factory=lambda: np.zeros(2, np.float32))
    excitation: Floats = field(default_factory=lambda: np.zeros((3, 2 * MEL_HOP), np.float32))
    tail: Floats = field(default_factory=lambda: np.zeros(FFT - HOP, np.float32))


@dataclass(frozen=True, slots=True)
class NoiseShape:
    """The pitch-synchronous noise's envelope over a period: exp(k (cos(2 pi phase - at) - 1)), of mean 1."""

    k: np.float32
    at: np.float32

    @staticmethod
    def of(log_k: float, at: float) -> NoiseShape:
        return NoiseShape(np.exp(np.float32(log_k)), np.float32(at))

    def __call__(self, phase: Floats) -> Floats:
        mean = np.float32(np.i0(self.k) * np.exp(-self.k))
        envelope: Floats = np.exp(self.k * (np.cos(2 * _PI * phase - self.at) - 1)) / mean
        return envelope


def signal_step(
    states: Sequence[SignalState],
    given: Sequence[int],
    lengths: Sequence[int],
    filters: Floats,
    f0: Floats,
    noise: Floats,
    shape: NoiseShape,
) -> Floats:
    """The samples that ``n`` more mel frames make final: [rows, 300 n], those of mel frames [given - 4, given + n - 4).

    ``filters``: [rows, 2 n, 4, bins], log gain and phase of the pulses, log gains of the two noises, for the mel frames
    [given - 3, given + n - 3); ``f0``: [rows, n] Hz, 0 unvoiced; ``noise``: [rows, 300 n] for the mel frames
    [given - 2, given + n - 2); ``given``: mel frames that each row had before; ``lengths``: mel frames of each row in all.
    Samples of frames outside [0, length) are no sound. States move on in place.
    """
    time = f0.shape[1]
    f0 = np.concatenate((np.stack([state.f0 for state in states]), f0), axis=1)  # from frame given - 2 on
    excitation = np.empty((len(states), 3, MEL_HOP * (time + 2)), np.float32)  # from sample 300 (given - 4) on
    for i, state in enumerate(states):
        excitation[i, :, : 2 * MEL_HOP] = state.excitation
        made = excitation[i, :, 2 * MEL_HOP :]
        state.phase = _excite(f0[i], noise[i], state.phase, given[i] - 2, lengths[i], shape, made)
        state.f0 = f0[i, time:]
    frames = np.lib.stride_tricks.sliding_window_view(excitation[..., : MEL_HOP * time + FFT - HOP], FFT, axis=2)
    spectra = np.fft.rfft(frames[:, :, ::HOP] * _WINDOW)  # [rows, 3, 2 n, bins]
    shaped = _shape(spectra, filters)
    for i, before in enumerate(given):  # frames of other than the row's own mel frames are silent
        low = min(max(-2 * (before - LOOK_AHEAD_MELS), 0), 2 * time)
        high = min(max(2 * (lengths[i] - before + LOOK_AHEAD_MELS), 0), 2 * time)
        shaped[i, :low] = 0
        shaped[i, high:] = 0
    parts = (np.fft.irfft(shaped, n=FFT) * _WINDOW).reshape(len(states), 2 * time, OVERLAP, HOP)
    added = np.zeros((len(states), 2 * time + OVERLAP - 1, HOP), np.float32)
    for i, state in enumerate(states):
        added[i, : OVERLAP - 1] = state.tail.reshape(OVERLAP - 1, HOP)
    for k in range(OVERLAP):
        added[:, k : k + 2 * time] += parts[:, :, k]
    out: Floats = np.divide(added[:, : 2 * time].reshape(len(states), MEL_HOP * time), _FULL_SUM, dtype=np.float32)
    for i, state in enumerate(states):
        state.tail = added[i, 2 * time :].reshape(-1)
        state.excitation = excitation[i, :, MEL_HOP * time :]
        _mend_edges(out[i], MEL_HOP * (given[i] - DELAY_MELS), MEL_HOP * lengths[i])
    return out


def _excite(f0: Floats, noise: Floats, phase: float, first: int, length: int, shape: NoiseShape, out: Floats) -> float:
    """Pulses, noise and modulated noise of the mel frames from ``first`` on into ``out`` [3, samples].

    ``f0`` [frames + 2]; ``phase``: cycles at the middle of frame ``first - 1``. Gives the phase at the last frame's middle.
    The pulses are the closed form of a sum of K cosines up to 5 kHz.
    """
    count = len(f0) - 2
    step = f0.astype(np.float64) * (MEL_HOP / SAMPLE_RATE)
    following = step[1 : count + 1]
    last = length - 1 - first
    if 0 <= last < count:
        following = following.copy()
        following[last] = step[last]  # after the end it goes on as it was
    step = step[:count]
    middle = phase + np.cumsum(step)
    cycles = np.empty((count, 2, _HALF))
    np.multiply(step[:, None], _RISING, out=cycles[:, 0])
    cycles[:, 0] += (middle - step)[:, None]
    np.multiply(following[:, None], _FALLING, out=cycles[:, 1])
    cycles[:, 1] += middle[:, None]
    turn = (cycles - np.floor(cycles)).astype(np.float32).reshape(count, MEL_HOP)

    pitch = f0[:count, None]
    voiced = pitch > 0
    harmonics = np.floor(np.float32(MAX_HARMONIC_HZ) / np.maximum(pitch, np.float32(50)))
    below = np.sin(_PI * turn)
    at_pulse = np.abs(below) < 1e-4
    below[at_pulse] = 1
    total = np.sin((2 * harmonics + 1) * _PI * turn) / (2 * below) - np.float32(0.5)
    total = np.where(at_pulse, harmonics, total)
    out[0] = (voiced * total / np.sqrt(harmonics)).reshape(-1)
    out[1] = noise
    out[2] = noise * np.where(voiced, shape(turn), np.float32(1)).reshape(-1)
    if first < 0:
        out[:, : -first * MEL_HOP] = 0
    if first + count > length:
        out[:, max(length - first, 0) * MEL_HOP :] = 0
    return float(middle[-1] % 1.0)


def _shape(spectra: NDArray[Any], filters: Floats) -> NDArray[np.complex64]:
    """The three excitations' spectra [rows, 3, frames, bins] through the filters [rows, frames, 4, bins] and added up."""
    gain = np.exp(np.minimum(filters[:, :, 0], 4))
    phase = filters[:, :, 1]
    pulses = np.empty(gain.shape, np.complex64)
    np.multiply(gain, np.cos(phase), out=pulses.real)
    np.multiply(gain, np.sin(phase), out=pulses.imag)
    pulses *= spectra[:, 0]
    noises = np.exp(np.minimum(filters[:, :, 2:], 3))
    pulses += spectra[:, 1] * noises[:, :, 0]
    pulses += spectra[:, 2] * noises[:, :, 1]
    return pulses


def _mend_edges(samples: Floats, first: int, total: int) -> None:
    """In a row's first and last half window fewer windows overlap: divides by their real sum. In place."""
    count = len(samples)
    if first < HOP and first + count > 0:
        low, high = max(first, 0), min(first + count, HOP)
        missing = _SQUARED[FFT - HOP + low : FFT - HOP + high]
        samples[low - first : high - first] *= _FULL_SUM / (_FULL_SUM - missing)
    if first + count > total - HOP and first < total:
        low, high = max(first, total - HOP), min(first + count, total)
        missing = _SQUARED[low - total + HOP : high - total + HOP]
        samples[low - first : high - first] *= _FULL_SUM / (_FULL_SUM - missing)
