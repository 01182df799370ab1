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
_WINDOW_OUT = _WINDOW / _FULL_SUM
CACHED_MELS = 48
"""Rows times mel frames that are computed together: what they need, one to two megabytes, stays in the caches."""


@dataclass(slots=True)
class SignalState:
    """What one row carries: cycles at the middle of the last excited mel frame, F0 of the last two frames given, the last 600
    samples of each excitation, and the overlap-add tail."""

    phase: float = 0.0
    f0: Floats = field(default_factory=lambda: np.zeros(2, np.float32))
    excitation: Floats = field(default_factory=lambda: np.zeros((3, 2 * MEL_HOP), np.float32))
    tail: Floats = field(default_factory=lambda: np.zeros((OVERLAP - 1, HOP), np.float32))


@dataclass(frozen=True, slots=True)
class NoiseShape:
    """The pitch-synchronous noise's envelope over a period: exp(k (cos(2 pi phase - at) - 1)), of mean 1."""

    k: np.float32
    at: np.float32
    scale: np.float32

    @staticmethod
    def of(log_k: float, at: float) -> NoiseShape:
        k = np.exp(np.float32(log_k))
        return NoiseShape(k, np.float32(at), np.float32(1 / (np.i0(k) * np.exp(-k))))

    def __call__(self, phase: Floats) -> Floats:
        envelope: Floats = np.cos(2 * _PI * phase - self.at)
        envelope -= 1
        envelope *= self.k
        np.exp(envelope, out=envelope)
        envelope *= self.scale
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

    Works on as many rows and frames at a time as the processor's cache holds.
    """
    rows, time = f0.shape
    out = np.empty((rows, MEL_HOP * time), np.float32)
    group = max(1, CACHED_MELS // time)
    for top in range(0, rows, group):
        some = slice(top, top + group)
        for start in range(0, time, CACHED_MELS):
            stop = min(start + CACHED_MELS, time)
            out[some, MEL_HOP * start : MEL_HOP * stop] = _step(
                states[some],
                np.array(given[some]) + start,
                np.array(lengths[some]),
                filters[some, 2 * start : 2 * stop],
                f0[some, start:stop],
                noise[some, MEL_HOP * start : MEL_HOP * stop],
                shape,
            )
    return out


def _step(
    states: Sequence[SignalState],
    given: NDArray[np.int64],
    lengths: NDArray[np.int64],
    filters: Floats,
    f0: Floats,
    noise: Floats,
    shape: NoiseShape,
) -> Floats:
    """:func:`signal_step` for few enough rows and frames."""
    rows, time = f0.shape
    f0 = np.concatenate(([state.f0 for state in states], f0), axis=1)  # from frame given - 2 on
    excitation = np.empty((rows, 3, MEL_HOP * (time + 2)), np.float32)  # from sample 300 (given - 4) on
    for i, state in enumerate(states):
        excitation[i, :, : 2 * MEL_HOP] = state.excitation
    phases = _excite(f0, noise, np.array([state.phase for state in states]), given - 2, lengths, shape, excitation)
    row, kind, sample = excitation.strides
    frames: Floats = np.ndarray(
        (rows, 3, 2 * time, FFT), np.float32, excitation, strides=(row, kind, HOP * sample, sample)
    )  # overlapping
    shaped = _shape(np.fft.rfft(frames * _WINDOW), filters)
    for i in np.flatnonzero((given < LOOK_AHEAD_MELS) | (given + time - LOOK_AHEAD_MELS > lengths)).tolist():
        # frames of other than the row's own mel frames are silent
        shaped[i, : max(-2 * (given[i] - LOOK_AHEAD_MELS), 0)] = 0
        shaped[i, max(2 * (lengths[i] - given[i] + LOOK_AHEAD_MELS), 0) :] = 0
    parts = np.fft.irfft(shaped, n=FFT)
    parts *= _WINDOW_OUT
    parts = parts.reshape(rows, 2 * time, OVERLAP, HOP)
    added = np.empty((rows, 2 * time + OVERLAP - 1, HOP), np.float32)
    added[:, : OVERLAP - 1] = [state.tail for state in states]
    added[:, OVERLAP - 1 :] = parts[:, :, OVERLAP - 1]
    for k in range(OVERLAP - 1):
        added[:, k : k + 2 * time] += parts[:, :, k]
    out = added[:, : 2 * time].reshape(rows, MEL_HOP * time)
    for i, state in enumerate(states):
        state.phase = float(phases[i])
        state.f0 = f0[i, time:]
        state.tail = added[i, 2 * time :]
        state.excitation = excitation[i, :, MEL_HOP * time :]
        _mend_edges(out[i], MEL_HOP * (int(given[i]) - DELAY_MELS), MEL_HOP * int(lengths[i]))
    return out


def _excite(
    f0: Floats,
    noise: Floats,
    phase: NDArray[np.float64],
    first: NDArray[np.int64],
    lengths: NDArray[np.int64],
    shape: NoiseShape,
    excitation: Floats,
) -> NDArray[np.float64]:
    """Pulses, noise and modulated noise of the mel frames from ``first`` on into ``excitation`` [rows, 3, 600 + samples].

    ``f0`` [rows, frames + 2]; ``phase``: cycles at the middle of frame ``first - 1``. Gives those at the last frame's middle.
    The pulses are the closed form of a sum of K cosines up to 5 kHz.
    """
    rows, count = f0.shape[0], f0.shape[1] - 2
    pulses, plain, modulated = excitation[:, :, 2 * MEL_HOP :].reshape(rows, 3, count, MEL_HOP).swapaxes(0, 1)
    noise = noise.reshape(rows, count, MEL_HOP)
    plain[:] = noise
    pitch = f0[:, :count, None]
    voiced = pitch > 0
    phases = phase
    if voiced.any():
        step = f0.astype(np.float64) * (MEL_HOP / SAMPLE_RATE)
        following = step[:, 1 : count + 1].copy()
        step = step[:, :count]
        last = lengths - 1 - first
        for i in np.flatnonzero((last >= 0) & (last < count)).tolist():
            following[i, last[i]] = step[i, last[i]]  # after the end it goes on as it was
        middle = phase[:, None] + np.cumsum(step, axis=1)
        phases = middle[:, -1] % 1.0
        cycles = np.empty((rows, count, 2, _HALF))
        np.multiply(step[:, :, None], _RISING, out=cycles[:, :, 0])
        np.multiply(following[:, :, None], _FALLING, out=cycles[:, :, 1])
        cycles += np.stack((middle - step, middle), axis=2)[..., None]
        cycles -= np.floor(cycles)
        turn = cycles.astype(np.float32).reshape(rows, count, MEL_HOP)

        harmonics = np.floor(np.float32(MAX_HARMONIC_HZ) / np.maximum(pitch, np.float32(50)))
        below = np.sin(turn * _PI)
        at_pulse = np.abs(below) < 1e-4
        np.copyto(below, 1, where=at_pulse)
        total = np.sin((2 * harmonics + 1) * _PI * turn)
        total /= below
        total *= np.float32(0.5)
        total -= np.float32(0.5)
        np.copyto(total, harmonics, where=at_pulse)
        np.multiply(total, voiced / np.sqrt(harmonics), out=pulses)
        np.multiply(noise, np.where(voiced, shape(turn), np.float32(1)), out=modulated)
    else:
        pulses[:] = 0
        modulated[:] = noise
    for i in np.flatnonzero((first < 0) | (first + count > lengths)).tolist():
        made = excitation[i, :, 2 * MEL_HOP :]
        made[:, : max(-first[i], 0) * MEL_HOP] = 0
        made[:, max(lengths[i] - first[i], 0) * MEL_HOP :] = 0
    return phases


def _shape(spectra: NDArray[Any], filters: Floats) -> NDArray[np.complex64]:
    """The three excitations' spectra [rows, 3, frames, bins] through the filters [rows, frames, 4, bins] and added up.

    Overwrites ``spectra``.
    """
    pulses, steady, synchronous = spectra.swapaxes(0, 1)
    gain = np.exp(np.minimum(filters[:, :, 0], np.float32(4)))
    phase = filters[:, :, 1]
    turned = np.empty(gain.shape, np.complex64)
    np.multiply(gain, np.cos(phase), out=turned.real)
    np.multiply(gain, np.sin(phase), out=turned.imag)
    noises = np.minimum(filters[:, :, 2:], np.float32(3))
    np.exp(noises, out=noises)
    turned *= pulses
    steady *= noises[:, :, 0]
    synchronous *= noises[:, :, 1]
    turned += steady
    turned += synchronous
    return turned


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
