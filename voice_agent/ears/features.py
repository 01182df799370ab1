"""What a short window sounds like: its level in ten bands, and how voiced it is."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from tts_engine.types import Samples
from voice_agent.ears.config import RATE

__all__ = ["BANDS", "SILENT_DB", "WINDOW", "Bands", "decibels", "in_bands", "is_voiced", "spectrum"]

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


def decibels(mean_square: Bands | float) -> Bands:
    """Decibels against full scale, at least -90."""
    levels: Bands = np.maximum(10 * np.log10(np.maximum(mean_square, 1e-12)), SILENT_DB)
    return levels


@cache
def _edges(size: int) -> NDArray[np.intp]:
    return np.round(_EDGES_HZ * size / RATE).astype(np.intp)


def in_bands(power: Bands, size: int) -> Bands:
    """The power spectrum of an FFT of ``size`` samples of 16 kHz, summed up in the ten bands."""
    edges = _edges(size)
    sums: Bands = np.add.reduceat(power[: edges[-1]], edges[:-1])
    return sums


def spectrum(window: Samples) -> Bands:
    """The power spectrum of ``window``, [512] float32 of 16 kHz: [513], scaled so that it sums up to the mean square."""
    transform = np.fft.rfft(window * _HANN, _FFT)
    power: Bands = (transform.real**2 + transform.imag**2) * _GAIN
    return power


def is_voiced(power: Bands) -> bool:
    """Whether a spectrum is that of a periodic sound between 70 and 400 Hz, as voices are.

    The highest peak of the autocorrelation of what lies below 1500 Hz, divided by that of the window itself (Boersma,
    Accurate short-term analysis of the fundamental frequency, 1993), is 1 for a periodic sound, below 0.6 for noise.
    """
    low = np.zeros_like(power)
    low[_VOICED_BINS] = power[_VOICED_BINS]
    correlation = np.fft.irfft(low)
    return float((correlation[_LAGS] / _OF_WINDOW).max()) >= _VOICED * float(correlation[0])
