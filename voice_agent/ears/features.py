"""What a short window sounds like: its level in ten bands, and how voiced it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tts_engine.types import Samples
from voice_agent.ears.config import RATE

__all__ = ["BANDS", "SILENT_DB", "WINDOW", "Bands", "Sound", "decibels", "in_bands", "listen"]

Bands = NDArray[np.floating]
"""[10] mean squares (or decibels), 200 to 7000 Hz: the frequencies of speech, an s at the top."""

BANDS = 10

WINDOW = 512
"""Samples of 16 kHz in a window: 32 ms, two periods of a low voice."""

SILENT_DB = -90.0
"""The lowest level, in dB against full scale, that is told apart."""

_EDGES_HZ = np.geomspace(200.0, 7000.0, BANDS + 1)
_PITCH_HZ = (70.0, 400.0)
_VOICED_HZ = (60.0, 1500.0)
_VOICED = 0.6
_FFT = 2 * WINDOW  # padded, so that the autocorrelation does not wrap

_HANN = np.hanning(WINDOW).astype(np.float32)
_GAIN = 2.0 / (_FFT * float(np.sum(_HANN**2)))  # a power spectrum's sum to the mean square of the samples
_LAGS = slice(int(RATE / _PITCH_HZ[1]), int(RATE / _PITCH_HZ[0]) + 1)
_OF_WINDOW = (np.correlate(_HANN, _HANN, "full")[WINDOW - 1 :] / float(np.sum(_HANN**2)))[_LAGS]
_VOICED_BINS = slice(*(round(hz * _FFT / RATE) for hz in _VOICED_HZ))


@dataclass(frozen=True, slots=True)
class Sound:
    """``power``: [10] mean squares. ``harmonicity``: 0 (noise) to 1 (a periodic sound)."""

    power: Bands
    harmonicity: float

    @property
    def level_db(self) -> float:
        return float(decibels(self.power.sum()))

    @property
    def voiced(self) -> bool:
        return self.harmonicity >= _VOICED


def decibels(mean_square: Bands | float) -> Bands:
    """Decibels against full scale, at least -90."""
    levels: Bands = np.maximum(10 * np.log10(np.maximum(mean_square, 1e-12)), SILENT_DB)
    return levels


def in_bands(power: Bands, size: int) -> Bands:
    """The power spectrum of an FFT of ``size`` samples of 16 kHz, summed up in the ten bands."""
    edges = np.round(_EDGES_HZ * size / RATE).astype(int)
    sums: Bands = np.add.reduceat(power[: edges[-1]], edges[:-1])
    return sums


def listen(window: Samples) -> Sound:
    """``window``: [512] float32 of 16 kHz.

    Harmonicity is the highest peak of the autocorrelation between 70 and 400 Hz, divided by that of the window itself
    (Boersma, Accurate short-term analysis of the fundamental frequency, 1993), of what lies below 1500 Hz.
    """
    spectrum = np.fft.rfft(window * _HANN, _FFT)
    power = spectrum.real**2 + spectrum.imag**2
    low = np.zeros_like(power)
    low[_VOICED_BINS] = power[_VOICED_BINS]
    correlation = np.fft.irfft(low)
    peak = float((correlation[_LAGS] / _OF_WINDOW).max()) / max(float(correlation[0]), 1e-12)
    return Sound(in_bands(power, _FFT) * _GAIN, min(max(peak, 0.0), 1.0))
