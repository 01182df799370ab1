"""Subtracts the echo of what we play from the microphone, and says how much of it may be left."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tts_engine.types import Samples
from voice_agent.ears.features import BANDS, Bands, in_bands

__all__ = ["FALL", "EchoCanceller"]

FALL = 10 ** (-0.1)
"""How fast an echo fades at the slowest, in a hop: a reverberation of 0.6 s."""

_HOP = 160
_FFT = 2 * _HOP
_BINS = _HOP + 1
_PARTS = 28  # hops of echo path: 280 ms hold 250 ms of delay
_PRIOR_GAIN = 0.3  # power gain of an echo path that nobody knows yet
_KEEP = 0.9998  # how well the path of one hop is that of the next
_SMOOTH = 0.8  # of the spectrum of what is not echo
_FOLLOW = 0.02  # how fast powers are followed: half a second
_WORSE = 1.1
_ROUNDING = 1e-10
_SCALE = 2.0 / _FFT**2  # a sum over a spectrum's powers to the mean square of the samples


class EchoCanceller:
    """A partitioned-block frequency-domain Kalman filter, 16 kHz, hops of 10 ms, without delay.

    It estimates the echo path and, for each frequency, the variance of that estimate: the power of the echo that the
    estimate may still miss. At the start that is the whole playout; it falls as the path is learned, and learning slows
    down by itself while the user speaks. Source: Kuech, Mabande, Enzner, State-space architecture of the
    partitioned-block-based acoustic echo controller, ICASSP 2014. Half of the partitions are cut to their length in each
    hop, which costs half as much and leaves the same echo.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget the echo path."""
        self._played = np.zeros(_FFT, dtype=np.float32)  # two hops
        self._spectra = np.zeros((_PARTS, _BINS), dtype=np.complex64)  # of the played, newest first
        self._powers = np.zeros((_PARTS, _BINS), dtype=np.float32)
        self._path = np.zeros((_PARTS, _BINS), dtype=np.complex64)
        self._variance = np.full((_PARTS, _BINS), _PRIOR_GAIN / _PARTS, dtype=np.float32)
        self._near: NDArray[np.floating] = np.zeros(_BINS, dtype=np.float32)  # power spectrum of what is not echo
        self._silent = _PARTS + 1  # hops since something was played
        self._heard = self._left = 0.0  # smoothed power of the microphone, and of what is left of it
        self._turn = 0

    def feed(self, microphone: Samples, played: Samples) -> tuple[Samples, Bands, Bands]:
        """[160] each; gives the microphone without the echo, then by band the echo taken off and what may be left of it."""
        self._silent = 0 if played.any() else self._silent + 1
        if self._silent > _PARTS:
            return microphone, np.zeros(BANDS), np.zeros(BANDS)
        self._push(played)
        self._forget_if_wrong()
        estimate = (self._spectra * self._path).sum(axis=0)
        echo = np.fft.irfft(estimate)[_HOP:]
        rest = (microphone - echo).astype(np.float32)
        self._heard += (float(microphone @ microphone) - self._heard) * _FOLLOW
        self._left += (float(rest @ rest) - self._left) * _FOLLOW
        error = np.fft.rfft(np.concatenate([np.zeros(_HOP, dtype=np.float32), rest]))
        missed = (self._powers * self._variance).sum(axis=0)  # [bins], of two hops
        self._near = _SMOOTH * self._near + (1 - _SMOOTH) * np.abs(error) ** 2
        gain = self._variance / (missed + 2 * self._near + _ROUNDING)  # [parts, bins], without the spectra
        self._learn(gain, error)
        return rest, in_bands(np.abs(estimate) ** 2, _FFT) * _SCALE, in_bands(missed, _FFT) * _SCALE

    def _forget_if_wrong(self) -> None:
        """An estimate that adds more than it takes off is that of another path: somebody moved the loudspeaker."""
        if self._left > _WORSE * self._heard:
            self._path[:] = 0.0
            self._variance[:] = _PRIOR_GAIN / _PARTS
            self._left = self._heard

    def _push(self, played: Samples) -> None:
        self._played = np.concatenate([self._played[_HOP:], played])
        newest = np.fft.rfft(self._played)
        self._spectra[1:] = self._spectra[:-1].copy()
        self._spectra[0] = newest
        self._powers[1:] = self._powers[:-1].copy()
        self._powers[0] = np.abs(newest) ** 2

    def _learn(self, gain: NDArray[np.float32], error: NDArray[np.complexfloating]) -> None:
        self._path += gain * self._spectra.conj() * error
        part = slice(self._turn, None, 2)
        self._turn = 1 - self._turn
        response = np.fft.irfft(self._path[part], axis=1)
        response[:, _HOP:] = 0.0
        self._path[part] = np.fft.rfft(response, axis=1)
        self._variance *= _KEEP**2 * (1 - 0.5 * gain * self._powers)
        self._variance += (1 - _KEEP**2) * np.abs(self._path) ** 2
