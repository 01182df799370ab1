"""The vocoder: log-mel frames and F0 to samples, a source-filter model in the STFT domain.

A convolutional body gives each spectral frame three filters; they shape a band-limited pulse train, steady noise and
noise that is modulated at the pitch. The streaming form works on a shifted time line: a convolution that looks one frame
ahead delays everything after it by one frame, and frames outside a row's own [0, length) are masked to zero at each
convolution's input. So every step has the same shape for every row, wherever the row stands, and streaming equals whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tts_engine.nn.conv import Convolution, Depthwise, push
from tts_engine.nn.istft import overlap_add, stft

SAMPLE_RATE = 24_000
MEL_HOP = 300
"""Samples of a mel frame."""
FFT = 600
HOP = 150
BINS = FFT // 2 + 1
MAX_HARMONIC_HZ = 5000.0
LOOK_AHEAD_MELS = 3
"""Mel frames that the body sees ahead: one at its input, one in each of the first two blocks."""
DELAY_MELS = LOOK_AHEAD_MELS + 1
"""After n mel frames the samples of the first n - 4 are final: the look-ahead and half a window."""
UNKNOWN_LENGTH = 1 << 40
"""Stands for the length of a row whose end has not been seen."""


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


@dataclass(slots=True)
class VocoderState:
    """What the vocoder carries for each row.

    ``mels``: how many mel frames each row has been given. ``history``: last inputs of the input convolution, then of each
    block's. ``phase``: [rows] float64, cycles at the middle of the last mel frame whose excitation was made. ``f0``:
    [rows, 2] of the last two mel frames given. ``excitation``: [rows, 3, 600] last samples of pulses, noise and modulated
    noise. ``tail``: [rows, 450] of the overlap-add.
    """

    mels: list[int]
    history: list[Tensor]
    phase: Tensor
    f0: Tensor
    excitation: Tensor
    tail: Tensor

    def reset(self, row: int) -> None:
        """Makes ``row`` ready for a new sentence."""
        self.mels[row] = 0
        for carried in (*self.history, self.phase, self.f0, self.excitation, self.tail):
            carried[row] = 0


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
        self.register_buffer("hann", torch.hann_window(FFT, periodic=True), persistent=False)

    # ---- the body -------------------------------------------------------------------------------------------------

    @staticmethod
    def _features(log_mels: Tensor, f0: Tensor) -> Tensor:
        voiced = (f0 > 10).to(log_mels.dtype)
        return torch.cat((log_mels, voiced.unsqueeze(-1), (f0.clamp(min=20.0).log() / 6).unsqueeze(-1)), dim=-1)

    def _filters(self, x: Tensor) -> Filters:
        rows, time, _ = x.shape
        kinds = self.head(self.n1(x)).view(rows, time, 2, 4, BINS).flatten(1, 2)  # [rows, 2 time, 4, bins]
        return Filters(*kinds.unbind(2))

    def _body_step(self, x: Tensor, state: VocoderState, lengths: list[int]) -> Tensor:
        """``x``: features [rows, time, 102] of the next mel frames -> [rows, time, channels], ``LOOK_AHEAD_MELS`` later."""
        time = x.shape[1]
        delay = 0

        def inside(x: Tensor) -> Tensor:
            """Zeroes the frames before a row's first and after its last, on the time line delayed so far."""
            first = [given - delay for given in state.mels]
            if all(a >= 0 and a + time <= n for a, n in zip(first, lengths, strict=True)):
                return x
            frame = torch.tensor(first, device=x.device)[:, None] + torch.arange(time, device=x.device)
            keep = (frame >= 0) & (frame < torch.tensor(lengths, device=x.device)[:, None])
            return torch.where(keep.unsqueeze(-1), x, 0.0)

        joined, state.history[0] = push(state.history[0], inside(x))
        y = self.n0(self.inp(joined))
        delay += self.future[0]
        for i, block in enumerate(self.blocks, start=1):
            y = inside(y)
            joined, state.history[i] = push(state.history[i], y)
            if self.future[i]:  # the residual waits for the convolution's future frame
                past = joined.shape[1] - time - 1
                y = joined[:, past : past + time]
                delay += 1
            y = y + block.mix(block.dw(joined))
        assert delay == LOOK_AHEAD_MELS
        return y

    def filters(self, log_mels: Tensor, f0: Tensor) -> Filters:
        """Filters of a whole sentence: ``log_mels`` [rows, mels, 100], ``f0`` [rows, mels] -> 2 frames a mel frame."""
        y = self.n0(self.inp.padded(self._features(log_mels, f0), self.future[0]))
        for i, block in enumerate(self.blocks, start=1):
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
            pulses * gain
            + noise * filters.steady.clamp(max=3.0).exp()
            + synchronous * filters.synchronous.clamp(max=3.0).exp()
        )

    def _divide(self, added: Tensor, first: list[int], lengths: list[int]) -> Tensor:
        """Divides by the sum of squared windows. ``added`` [rows, samples] begins at sample ``first`` of each row.

        Frames 0 ... 2 * length are there; the missing ones thin the sum in the first and the last half window.
        """
        count = added.shape[1]
        if all(a >= HOP and a + count <= MEL_HOP * n - HOP for a, n in zip(first, lengths, strict=True)):
            return added / 1.5
        squared = self.hann.square()
        sample = torch.tensor(first, device=added.device)[:, None] + torch.arange(count, device=added.device)
        to_end = sample - (MEL_HOP * torch.tensor(lengths, device=added.device)[:, None] - HOP)
        missing = torch.where((sample >= 0) & (sample < HOP), squared[(sample + FFT - HOP).clamp(0, FFT - 1)], 0.0)
        missing = missing + torch.where((to_end >= 0) & (to_end < HOP), squared[to_end.clamp(0, FFT - 1)], 0.0)
        return added / (1.5 - missing)

    def init_state(self, rows: int) -> VocoderState:
        """Empty memory for ``rows`` rows."""
        like = self.inp.bias
        return VocoderState(
            mels=[0] * rows,
            history=[like.new_zeros(rows, self.inp.width - 1, self.inp.weight.shape[1])]
            + [like.new_zeros(rows, block.dw.width - 1, like.shape[0]) for block in self.blocks],
            phase=like.new_zeros(rows, dtype=torch.float64),
            f0=like.new_zeros(rows, 2),
            excitation=like.new_zeros(rows, 3, 2 * MEL_HOP),
            tail=like.new_zeros(rows, FFT - HOP),
        )

    def step(self, log_mels: Tensor, f0: Tensor, noise: Tensor, state: VocoderState, lengths: list[int]) -> Tensor:
        """Takes the next ``n`` mel frames of every row and gives the samples that became final.

        ``log_mels``: [rows, n, 100]; ``f0``: [rows, n] Hz, 0 unvoiced; ``noise``: [rows, 300 n] standard normal, for the
        samples of mel frames [given - 2, given + n - 2) of each row; ``lengths``: mel frames of each row in all, or
        ``UNKNOWN_LENGTH``. Frames beyond a row's length may hold anything finite; ``DELAY_MELS`` of them flush it.

        Gives [rows, 300 n]: the samples of mel frames [given - 4, given + n - 4); those of frames outside a row's
        [0, length) are not sound and must be dropped.
        """
        time = f0.shape[1]
        filters = self._filters(self._body_step(self._features(log_mels, f0), state, lengths))

        f0_all = torch.cat((state.f0, f0), dim=1)  # from frame given - 2 on
        first = [given - 2 for given in state.mels]
        following = f0_all[:, 1 : time + 1]
        ending = [a + time >= n for a, n in zip(first, lengths, strict=True)]
        if any(ending):
            frame = torch.tensor(first, device=f0.device)[:, None] + torch.arange(time, device=f0.device)
            is_last = frame == torch.tensor(lengths, device=f0.device)[:, None] - 1
            following = torch.where(is_last, f0_all[:, :time], following)
        phase, middle = self._phase(state.phase, f0_all[:, :time], following)
        made = self._excite(phase, f0_all[:, :time], noise)
        if any(ending) or any(a < 0 for a in first):
            sample = MEL_HOP * torch.tensor(first, device=f0.device)[:, None] + torch.arange(MEL_HOP * time, device=f0.device)
            keep = (sample >= 0) & (sample < MEL_HOP * torch.tensor(lengths, device=f0.device)[:, None])
            made = torch.where(keep.unsqueeze(1), made, 0.0)
        excitation = torch.cat((state.excitation, made), dim=2)  # from sample 300 * (given - 4) on

        last = MEL_HOP * time + FFT - HOP
        shaped = self._shape(stft(excitation[..., :last], self.hann), filters)
        shaped = self._mute_outside(shaped, state.mels, lengths)
        added, state.tail = overlap_add(shaped, self.hann, state.tail)
        out = self._divide(added, [MEL_HOP * (given - DELAY_MELS) for given in state.mels], lengths)

        state.phase = middle[:, -1] - middle[:, -1].floor()
        state.f0 = f0_all[:, time:]
        state.excitation = excitation[..., MEL_HOP * time :]
        state.mels = [given + time for given in state.mels]
        return out

    @staticmethod
    def _mute_outside(spectra: Tensor, given: list[int], lengths: list[int]) -> Tensor:
        """Zeroes spectral frames outside [0, 2 * length) of each row; ``spectra`` begins ``LOOK_AHEAD_MELS`` back."""
        count = spectra.shape[1]
        first = [2 * (frames - LOOK_AHEAD_MELS) for frames in given]
        if all(a >= 0 and a + count <= 2 * n for a, n in zip(first, lengths, strict=True)):
            return spectra
        frame = torch.tensor(first, device=spectra.device)[:, None] + torch.arange(count, device=spectra.device)
        keep = (frame >= 0) & (frame < 2 * torch.tensor(lengths, device=spectra.device)[:, None])
        return torch.where(keep.unsqueeze(-1), spectra, 0.0)

    def forward(self, log_mels: Tensor, f0: Tensor, noise: Tensor) -> Tensor:
        """A whole sentence at once: [rows, mels, 100], [rows, mels], [rows, 300 mels] -> [rows, 300 mels] samples."""
        rows, mels = f0.shape
        excitation = F.pad(self.excitation(f0, noise), (FFT // 2, FFT // 2))
        spectra = stft(excitation, self.hann)[:, :, : 2 * mels]
        shaped = self._shape(spectra, self.filters(log_mels, f0))
        shaped = torch.cat((shaped, torch.zeros_like(shaped[:, :1])), dim=1)
        added, tail = overlap_add(shaped, self.hann, shaped.real.new_zeros(rows, FFT - HOP))
        whole = torch.cat((added, tail), dim=1)[:, FFT // 2 : FFT // 2 + MEL_HOP * mels]
        return self._divide(whole, [0] * rows, [mels] * rows)
