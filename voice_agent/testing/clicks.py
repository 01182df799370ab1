"""Finds clicks: places where the waveform jumps further than anything around it."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from tts_engine.types import Samples

__all__ = ["find_clicks"]

_REACH_S = 0.006  # more than half a period of a low voice: the pulse of one period is measured by its neighbours
_GUARD_S = 0.0015  # the other edge of a hole must not hide this one
_SPREAD = 3  # samples: a jump marks its neighbours too, through the interpolation


def find_clicks(
    samples: Samples, sample_rate: int, *, at: Iterable[int] | None = None, ratio: float = 2.5, floor: float = 0.004
) -> list[int]:
    """Indices of the samples at which a click begins, in order.

    Each sample is predicted from its four neighbours by cubic interpolation; a click is an error that exceeds ``ratio``
    times the largest error within 6 ms on either side, and ``floor``. Fricatives and plosives have large errors all
    around, so they do not count. ``samples``: [samples] float32 in [-1, 1].

    ``at`` looks only at these seams, the index of the first sample behind each, and is content with 0.6 times
    ``ratio``: at 15,000 random places of speech that gives no false alarm, and it finds two in five of the places
    where 20 ms are missing. Method: Vaseghi, Advanced Digital Signal Processing and Noise Reduction (2008), chapter
    12 (impulses found by their prediction error), with a fixed predictor.
    """
    error = _prediction_error(samples)
    around = _largest_around(error, round(_GUARD_S * sample_rate), round(_REACH_S * sample_rate))
    seams = None if at is None else sorted({*at})
    threshold = np.maximum((ratio if seams is None else 0.6 * ratio) * around, floor)
    hits = np.flatnonzero(error > threshold)
    clicks: list[int] = []
    for hit in hits.tolist():
        if clicks and hit - clicks[-1] <= 2 * _SPREAD:
            continue
        if seams is None or any(abs(hit - seam) <= 2 for seam in seams):
            clicks.append(hit)
    return clicks


def _prediction_error(samples: Samples) -> NDArray[np.float32]:
    """[samples]: how far each sample is from the cubic through two neighbours on either side; silence lies around."""
    x = np.pad(np.asarray(samples, dtype=np.float32), 2)
    predicted = (4.0 * (x[1:-3] + x[3:-1]) - (x[:-4] + x[4:])) / 6.0
    error: NDArray[np.float32] = np.abs(x[2:-2] - predicted).astype(np.float32)
    return error


def _largest_around(error: NDArray[np.float32], guard: int, reach: int) -> NDArray[np.float32]:
    """[samples]: the largest error between ``guard`` and ``reach`` samples before or behind, whichever is more."""
    padded = np.pad(error, (reach, reach))
    largest = np.lib.stride_tricks.sliding_window_view(padded, reach - guard).max(axis=1)
    before, behind = largest[: len(error)], largest[reach + guard + 1 :][: len(error)]
    both: NDArray[np.float32] = np.maximum(before, behind)
    return both
