"""Short-time Fourier transform and its inverse on aligned frames: FFT 600, hop 150, periodic Hann, overlap of four.

Frames are cut and added by shifted slices of whole hops, so any number of frames works and nothing is padded inside.
"""

from __future__ import annotations

import torch
from torch import Tensor

OVERLAP = 4
"""Frames that cover a sample: FFT size / hop."""


def stft(samples: Tensor, window: Tensor) -> Tensor:
    """Spectra of all frames that fit: [..., samples] -> [..., frames, bins] complex, unscaled."""
    fft = window.shape[0]
    frames = samples.unfold(-1, fft, fft // OVERLAP)
    return torch.fft.rfft(frames * window)


def overlap_add(spectra: Tensor, window: Tensor, tail: Tensor) -> tuple[Tensor, Tensor]:
    """Windowed inverse transforms added up, not yet divided by the sum of squared windows.

    ``spectra``: [rows, frames, bins] complex (imaginary parts of the first and the last bin are ignored); ``tail``:
    [rows, fft - hop] what earlier frames have left. Gives the [rows, frames * hop] samples that no later frame touches
    and the new tail.
    """
    fft = window.shape[0]
    hop = fft // OVERLAP
    frames = torch.fft.irfft(spectra, n=fft) * window
    rows, count, _ = frames.shape
    parts = frames.view(rows, count, OVERLAP, hop)
    added = frames.new_zeros(rows, count + OVERLAP - 1, hop)
    added[:, : OVERLAP - 1] = tail.view(rows, OVERLAP - 1, hop)
    for k in range(OVERLAP):
        added[:, k : k + count] += parts[:, :, k]
    return added[:, :count].reshape(rows, count * hop), added[:, count:].reshape(rows, fft - hop)
