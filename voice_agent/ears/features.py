"""What a short window sounds like: its level, how voiced it is, how flat its spectrum is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tts_engine.types import Samples
from voice_agent.ears.config import RATE

__all__ = ["WINDOW", "Sound", "level_db", "listen"]

WINDOW = 512
"""Samples of 16 kHz in a window: 32 ms, two periods of a low voice."""

_BAND_HZ = (200.0, 4000.0)  # where speech is louder than hum, rumble and hiss
_PITCH_HZ = (70.0, 400.0)
_VOICED = 0.5
_SILENT_DB = -90.0

_HANN = np.hanning(WINDOW).astype(np.float32)
_BINS = np.fft.rfftfreq(WINDOW, 1 / RATE)
_BAND = slice(int(np.searchsorted(_BINS, _BAND_HZ[0])), int(np.searchsorted(_BINS, _BAND_HZ[1])))
_SCALE = 2.0 / (WINDOW * float(np.sum(_HANN**2)))  # a power spectrum's sum to the mean square of the samples
_LAGS = slice(int(RATE / _PITCH_HZ[1]), int(RATE / _PITCH_HZ[0]) + 1)


@dataclass(frozen=True, slots=True)
class Sound:
    """``level_db``: 200 to 4000 Hz, against full scale. ``harmonicity``: 0 (noise) to 1 (a periodic sound)."""

    level_db: float
    harmonicity: float
    flatness: float

    @property
    def voiced(self) -> bool:
        return self.harmonicity >= _VOICED


def level_db(mean_square: float) -> float:
    """Decibels against full scale, at least -90."""
    return max(_SILENT_DB, 10 * float(np.log10(max(mean_square, 1e-12))))


def listen(window: Samples) -> Sound:
    """``window``: [512] float32 of 16 kHz.

    Harmonicity is the highest peak of the autocorrelation between 70 and 400 Hz, divided by that of the window itself
    (Boersma, Accurate short-term analysis of the fundamental frequency, 1993). Flatness is the geometric over the
    arithmetic mean of the power spectrum: 0 for tones, towards 0.56 for noise.
    """
    spectrum = np.fft.rfft(window * _HANN, 2 * WINDOW)
    power = spectrum.real**2 + spectrum.imag**2
    band = power[::2][_BAND]
    energy = float(band.sum())
    if energy * _SCALE < 1e-9:
        return Sound(_SILENT_DB, 0.0, 0.0)
    shaped = power.copy()
    shaped[: 2 * _LOWEST] = 0.0
    shaped[2 * _HIGHEST :] = 0.0
    correlation = np.fft.irfft(shaped)[: _LAGS.stop]
    peak = float((correlation[_LAGS] / _WINDOW_CORRELATION[_LAGS]).max()) / max(float(correlation[0]), 1e-12)
    flatness = float(np.exp(np.mean(np.log(band + 1e-12))) / (energy / len(band)))
    return Sound(level_db(energy * _SCALE), min(max(peak, 0.0), 1.0), flatness)


_LOWEST = int(np.searchsorted(_BINS, 60.0))
_HIGHEST = int(np.searchsorted(_BINS, 1500.0))
_WINDOW_CORRELATION = np.correlate(_HANN, _HANN, "full")[WINDOW - 1 :] / float(np.sum(_HANN**2))
