"""The vocoder: log-mel frames and F0 to samples, a source-filter model in the STFT domain.

A convolutional body gives each spectral frame three filters; they shape a band-limited pulse train, steady noise and noise
that is modulated at the pitch. Here are the body, whole and in steps, and the whole form of the rest, for training and as
the reference; the streaming form of the rest is ``tts_engine.models.signal``.

In steps, a convolution that looks one frame ahead delays everything after it by one frame, and frames outside a row's own
[0, length) are zeroed at each convolution's input. So every step has the same shape for every row, wherever it stands.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tts_engine.models.signal import FFT, HOP, LOOK_AHEAD_MELS, MAX_HARMONIC_HZ, MEL_HOP, SAMPLE_RATE, hann
from tts_engine.nn.conv import Convolution, Depthwise, push

BINS = FFT // 2 + 1


@dataclass(frozen=True, slots=True)
class VocoderShape:
    """The sizes of a vocoder, read off its weights."""

    inputs: int
    channels: int
    input_width: int
    blocks: int
    hidden: int
    width: int

    @staticmethod
    def of(weights: Mapping[str, Tensor]) -> VocoderShape:
        """The shape that ``weights`` (name -> tensor) have. Raises KeyError for a missing tensor."""
        channels, inputs, input_width = weights["inp.weight"].shape
        return VocoderShape(
            inputs=inputs,
            channels=channels,
            input_width=input_width,
            blocks=len({name.split(".")[1] for name in weights if name.startswith("blocks.")}),
            hidden=weights["blocks.0.a.weight"].shape[0],
            width=weights["blocks.0.dw.weight"].shape[2],
        )


class VocoderBlock(nn.Module):
    """x + g * b(gelu(a(n(dw(x)))))."""

    def __init__(self, channels: int, hidden: int, width: int) -> None:
        super().__init__()
        self.g = nn.Parameter(torch.zeros(channels))
        self.dw = Depthwise(channels, width)
        self.n = nn.LayerNorm(channels)
        self.a = nn.Linear(channels, hidden)
        self.b = nn.Linear(hidden, channels)

    def mix(self, y: Tensor) -> Tensor:
        """What the block adds, from the output of its convolution."""
        z: Tensor = self.g * self.b(F.gelu(self.a(self.n(y)), approximate="tanh"))
        return z


@dataclass(frozen=True, slots=True)
class Filters:
    """Log gain and phase of the pulses, log gains of steady and pitch-synchronous noise: each [rows, frames, 301]."""

    gain: Tensor
    phase: Tensor
    steady: Tensor
    synchronous: Tensor


class Vocoder(nn.Module):
    """Log-mel frames in, samples out. See the module's contract; names follow the weight file."""

    hann: Tensor

    def __init__(self, shape: VocoderShape) -> None:
        super().__init__()
        self.shape = nn.Parameter(torch.zeros(2))  # [ln k, phase] of the pitch-synchronous noise
        self.inp = Convolution(shape.inputs, shape.channels, shape.input_width)
        self.n0 = nn.LayerNorm(shape.channels)
        self.blocks = nn.ModuleList(VocoderBlock(shape.channels, shape.hidden, shape.width) for _ in range(shape.blocks))
        self.n1 = nn.LayerNorm(shape.channels)
        self.head = nn.Linear(shape.channels, 2 * 4 * BINS)
        self.future = (1, 1, 1, *([0] * (shape.blocks - 2)))  # of the input convolution, then of each block
        self.register_buffer("hann", torch.from_numpy(hann(FFT)), persistent=False)

    @property
    def body(self) -> list[VocoderBlock]:
        """The blocks, in order."""
        return cast("list[VocoderBlock]", list(self.blocks))

    # ---- the body -------------------------------------------------------------------------------------------------

    @staticmethod
    def _features(log_mels: Tensor, f0: Tensor) -> Tensor:
        voiced = (f0 > 10).to(log_mels.dtype)
        return torch.cat((log_mels, voiced.unsqueeze(-1), (f0.clamp(min=20.0).log() / 6).unsqueeze(-1)), dim=-1)

    def _filters(self, x: Tensor) -> Filters:
        rows, time, _ = x.shape
        kinds = self.head(self.n1(x)).view(rows, time, 2, 4, BINS).flatten(1, 2)  # [rows, 2 time, 4, bins]
        return Filters(*kinds.unbind(2))

    def body_step(
        self, log_mels: Tensor, f0: Tensor, keep: Tensor, first: Tensor, others: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The next ``n`` mel frames of every row: [rows, n, mels], F0 [rows, n] Hz -> filters [rows, 2 n, 4, 301].

        The filters are those of ``LOOK_AHEAD_MELS`` mel frames back. ``keep``: [rows, n + 3] is 1 for frames inside a row's
        own [0, length) and 0 outside, beginning ``LOOK_AHEAD_MELS`` frames back. ``first`` [rows, width - 1, inputs] and
        ``others`` [blocks, rows, width - 1, channels] are the convolutions' histories, which come back moved on.
        """
        time = f0.shape[1]

        def inside(x: Tensor, delay: int) -> Tensor:
            return x * keep[:, LOOK_AHEAD_MELS - delay : LOOK_AHEAD_MELS - delay + time].unsqueeze(-1)

        joined, first = push(first, inside(self._features(log_mels, f0), 0))
        y = self.n0(self.inp(joined))
        delay = self.future[0]
        left = []
        for i, block in enumerate(self.body):
            y = inside(y, delay)
            joined, history = push(others[i], y)
            left.append(history)
            if self.future[i + 1]:  # the residual waits for the convolution's future frame
                past = block.dw.width - 2
                y = joined[:, past : past + time]
                delay += 1
            y = y + block.mix(block.dw(joined))
        filters = self.head(self.n1(y)).view(y.shape[0], time, 2, 4, BINS).flatten(1, 2)
        return filters, first, torch.stack(left)

    def filters(self, log_mels: Tensor, f0: Tensor) -> Filters:
        """Filters of a whole sentence: ``log_mels`` [rows, mels, 100], ``f0`` [rows, mels] -> 2 frames a mel frame."""
        y = self.n0(self.inp.padded(self._features(log_mels, f0), self.future[0]))
        for i, block in enumerate(self.body, start=1):
            y = y + block.mix(block.dw.padded(y, self.future[i]))
        return self._filters(y)

    # ---- the excitation -------------------------------------------------------------------------------------------

    def _excite(self, phase: Tensor, f0: Tensor, noise: Tensor) -> Tensor:
        """Pulses, noise and pitch-synchronous noise: ``phase`` [rows, samples] float64 in cycles, ``f0`` [rows, mels] and
        ``noise`` [rows, samples] -> [rows, 3, samples]. Closed form of a band-limited pulse train."""
        turn = (phase - phase.floor()).to(torch.float32)
        voiced = f0 > 0
        count = (MAX_HARMONIC_HZ / f0.clamp(min=50.0)).floor()
        count_each = count.repeat_interleave(MEL_HOP, dim=1)
        on = voiced.repeat_interleave(MEL_HOP, dim=1)
        below = torch.sin(math.pi * turn)
        above = torch.sin((2 * count_each + 1) * math.pi * turn)
        at_pulse = below.abs() < 1e-4
        total = torch.where(at_pulse, count_each, above / (2 * torch.where(at_pulse, 1.0, below)) - 0.5)
        pulses = torch.where(on, total / count_each.sqrt(), 0.0)
        k = self.shape[0].exp()
        shape = torch.exp(k * (torch.cos(2 * math.pi * turn - self.shape[1]) - 1)) / torch.special.i0e(k)
        return torch.stack((pulses, noise, noise * torch.where(on, shape, 1.0)), dim=1)

    @staticmethod
    def _phase(before: Tensor, f0: Tensor, following: Tensor) -> tuple[Tensor, Tensor]:
        """Phase of each sample, in cycles. ``before`` [rows] float64 is the phase at the middle of the frame before the
        first; ``f0`` and ``following`` [rows, mels] are the F0 of each frame and of the one after it.

        Gives [rows, mels * 300] float64 and the phase at the middle of each frame [rows, mels].
        """
        step = f0.to(torch.float64) * (MEL_HOP / SAMPLE_RATE)
        middle = before[:, None] + step.cumsum(1)
        after = following.to(torch.float64) * (MEL_HOP / SAMPLE_RATE)
        half = MEL_HOP // 2
        part = (torch.arange(half, device=f0.device, dtype=torch.float64) + 0.5) / MEL_HOP
        rising = (middle - step).unsqueeze(-1) + step.unsqueeze(-1) * (part + 0.5)
        falling = middle.unsqueeze(-1) + after.unsqueeze(-1) * part
        return torch.cat((rising, falling), dim=-1).flatten(1), middle

    def excitation(self, f0: Tensor, noise: Tensor) -> Tensor:
        """The excitation of a whole sentence: ``f0`` [rows, mels] Hz, ``noise`` [rows, 300 mels] -> [rows, 3, 300 mels]."""
        following = torch.cat((f0[:, 1:], f0[:, -1:]), dim=1)
        phase, _ = self._phase(f0.new_zeros(f0.shape[0], dtype=torch.float64), f0, following)
        return self._excite(phase, f0, noise)

    # ---- the output -----------------------------------------------------------------------------------------------

    def _shape(self, spectra: Tensor, filters: Filters) -> Tensor:
        """``spectra`` of the three excitations [rows, 3, frames, bins] through the filters -> [rows, frames, bins]."""
        pulses, noise, synchronous = spectra.unbind(1)
        gain = torch.polar(filters.gain.clamp(max=4.0).exp(), filters.phase)
        return (
            pulses * gain + noise * filters.steady.clamp(max=3.0).exp() + synchronous * filters.synchronous.clamp(max=3.0).exp()
        )

    def forward(self, log_mels: Tensor, f0: Tensor, noise: Tensor) -> Tensor:
        """A whole sentence at once: [rows, mels, 100], [rows, mels], [rows, 300 mels] -> [rows, 300 mels] samples."""
        mels = f0.shape[1]
        excitation = F.pad(self.excitation(f0, noise), (FFT // 2, FFT // 2))
        spectra = torch.fft.rfft(excitation.unfold(-1, FFT, HOP) * self.hann)[:, :, : 2 * mels]
        shaped = self._shape(spectra, self.filters(log_mels, f0))
        shaped = torch.cat((shaped, torch.zeros_like(shaped[:, :1])), dim=1)
        ones = self.hann.square().expand(1, 2 * mels + 1, -1)
        samples = _overlap_add(torch.fft.irfft(shaped, n=FFT) * self.hann) / _overlap_add(ones)
        return samples[:, FFT // 2 : FFT // 2 + MEL_HOP * mels]


def _overlap_add(frames: Tensor) -> Tensor:
    """[rows, frames, FFT] at distances of HOP -> [rows, (frames - 1) * HOP + FFT]."""
    rows, count, _ = frames.shape
    out = frames.new_zeros(rows, count + FFT // HOP - 1, HOP)
    for k in range(FFT // HOP):
        out[:, k : k + count] += frames[:, :, k * HOP : (k + 1) * HOP]
    return out.flatten(1)
