"""How high a voice is, for tests that change or encode speech."""

from __future__ import annotations

import numpy as np

RATE = 24_000


def pitch_of(samples: np.ndarray) -> float:
    """The median pitch in Hz of 24 kHz mono."""
    return float(np.nanmedian(pitches(samples, np.arange(1200, len(samples) - 1200, 600))))


def pitches(samples: np.ndarray, places: np.ndarray, window: int = 2400) -> np.ndarray:
    """The pitch in Hz around each place, 80 to 400 Hz, NaN where nothing is voiced, by autocorrelation over the window."""
    half = window // 2
    return np.array([_pitch(samples[max(0, int(place) - half) : int(place) + half], 2 * half) for place in places])


def pitch_change(before: np.ndarray, after: np.ndarray) -> float:
    """The median ratio of the pitches at places that correspond, where one is the other slower or faster.

    The windows hold the same stretch of speech, since its pitch moves. The two are taken to be apart by that time, 50 ms
    at most, at which their pitches move together.
    """
    tempo = len(before) / len(after)
    narrow = 900
    windows = (narrow, round(narrow / tempo)) if tempo < 1 else (round(narrow * tempo), narrow)
    places = np.linspace(3600, len(before) - 3600, 100)
    wanted = pitches(before, places, windows[0])
    ratios = [np.log(pitches(after, (places + late) / tempo, windows[1]) / wanted) for late in range(-1200, 1201, 240)]
    found = [ratio[np.isfinite(ratio)] for ratio in ratios]
    assert min(map(len, found)) > 20
    best = min(found, key=lambda ratio: np.median(np.abs(ratio - np.median(ratio))))
    return float(np.exp(np.median(best)))


def _pitch(part: np.ndarray, window: int) -> float:
    if len(part) < window:
        return np.nan
    taper = np.hanning(window)
    same = _correlation(part * taper) / _correlation(taper)
    rising = np.diff(same)
    peaks = 1 + np.flatnonzero((rising[59:299] > 0) & (rising[60:300] <= 0)) + 59
    if not len(peaks) or not same[peaks].max() > 0.6 * same[0] > 1e-5:
        return np.nan
    peak = int(peaks[same[peaks] > 0.93 * same[peaks].max()][0])  # or a period counts twice
    left, middle, right = same[peak - 1 : peak + 2]
    return float(RATE / (peak + 0.5 * (left - right) / (left - 2 * middle + right)))


def _correlation(part: np.ndarray) -> np.ndarray:
    spectrum = np.fft.rfft(part, 2 * len(part))
    return np.fft.irfft(np.abs(spectrum) ** 2)[:302]
