"""Subtracts the echo of what we play from the microphone, and says how much of it may be left."""

from __future__ import annotations

import numpy as np

from tts_engine.types import Samples

__all__ = ["EchoCanceller"]

_HOP = 160
_FFT = 2 * _HOP
_BINS = _HOP + 1
_PARTS = 28  # hops of echo path: 280 ms hold 250 ms of delay
_PRIOR_GAIN = 1.0  # power gain of an echo path that nobody knows yet
_KEEP = 0.9998  # how well the path of one hop is that of the next
_SMOOTH = 0.8  # of the spectrum of what is not echo
_ROUNDING = 1e-10


class EchoCanceller:
    """A partitioned-block frequency-domain Kalman filter, 16 kHz, hops of 10 ms, without delay.

    It estimates the echo path and, for each frequency, the variance of that estimate: the power of the echo that the
    estimate may still miss. At the start that is the whole playout; it falls as the path is learned, and learning slows
    down by itself while the user speaks. Source: Kuech, Mabande, Enzner, State-space architecture of the
    partitioned-block-based acoustic echo controller, ICASSP 2014.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget the echo path."""
        self._played = np.zeros(_FFT)  # two hops
        self._spectra = np.zeros((_PARTS, _BINS), dtype=np.complex128)  # of the played, newest first
        self._path = np.zeros((_PARTS, _BINS), dtype=np.complex128)
        self._variance = np.full((_PARTS, _BINS), _PRIOR_GAIN / _PARTS)
        self._near = np.zeros(_BINS)  # power spectrum of what is not echo

    def feed(self, microphone: Samples, played: Samples) -> tuple[Samples, float]:
        """[160] each; gives the microphone without the echo, and the mean square of the echo that may be left in it."""
        self._played = np.concatenate([self._played[_HOP:], played])
        self._spectra = np.roll(self._spectra, 1, axis=0)
        self._spectra[0] = np.fft.rfft(self._played)
        power = np.abs(self._spectra) ** 2
        if not power.any():
            return microphone, 0.0
        echo = np.fft.irfft((self._spectra * self._path).sum(axis=0))[_HOP:]
        rest = microphone - echo
        error = np.fft.rfft(np.concatenate([np.zeros(_HOP), rest]))
        self._variance *= _KEEP**2
        self._variance += (1 - _KEEP**2) * np.abs(self._path) ** 2
        missed = (power * self._variance).sum(axis=0)  # [bins], of two hops
        self._near = _SMOOTH * self._near + (1 - _SMOOTH) * np.abs(error) ** 2
        gain = self._variance / (missed + 2 * self._near + _ROUNDING)  # [parts, bins], without the spectra
        step = np.fft.irfft(gain * self._spectra.conj() * error, axis=1)
        step[:, _HOP:] = 0.0
        self._path += np.fft.rfft(step, axis=1)
        self._variance *= 1 - 0.5 * gain * power
        return rest.astype(np.float32), float(missed[_BAND].sum()) * _SCALE


_BAND = slice(4, 81)  # 200 to 4000 Hz
_SCALE = 2.0 / _FFT**2
