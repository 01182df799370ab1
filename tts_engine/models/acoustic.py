"""The acoustic model: phoneme ids to durations, to prosody, to log-mel frames.

Text encoder and durations run once a sentence; prosody runs in blocks just ahead of the frames; the frame decoder is
causal and carries its state from step to step. All tensors are float32.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tts_engine.expansion import MELS_PER_FRAME
from tts_engine.nn.attention import BandAttention, Sight, WindowAttention
from tts_engine.nn.conv import ConvBlock, Depthwise, push
from tts_engine.nn.window import ENCODER_HEADS, ENCODER_REACH


@dataclass(frozen=True, slots=True)
class AcousticShape:
    """The sizes of an acoustic model, read off its weights."""

    symbols: int
    speakers: int
    mels: int
    channels: int
    encoder_layers: int
    encoder_hidden: int
    encoder_width: int
    duration_layers: int
    duration_hidden: int
    duration_width: int
    prosody_layers: int
    prosody_hidden: int
    prosody_width: int
    decoder_channels: int
    decoder_layers: int
    decoder_hidden: int
    decoder_width: int
    heads: int
    head_size: int
    anchors: int

    @staticmethod
    def of(weights: Mapping[str, Tensor]) -> AcousticShape:
        """The shape that ``weights`` (name -> tensor) have. Raises KeyError for a missing tensor."""

        def layers(prefix: str) -> int:
            return len({name.split(".")[1] for name in weights if name.startswith(prefix + ".")})

        heads, anchors, head_size = weights["dec.0.at.aq"].shape
        return AcousticShape(
            symbols=weights["emb.weight"].shape[0],
            speakers=weights["spk.weight"].shape[0],
            mels=weights["out.weight"].shape[0] // MELS_PER_FRAME,
            channels=weights["emb.weight"].shape[1],
            encoder_layers=layers("enc"),
            encoder_hidden=weights["enc.0.a.weight"].shape[0],
            encoder_width=weights["enc.0.dw.weight"].shape[2],
            duration_layers=layers("dur"),
            duration_hidden=weights["dur.0.a.weight"].shape[0],
            duration_width=weights["dur.0.dw.weight"].shape[2],
            prosody_layers=layers("pit"),
            prosody_hidden=weights["pit.0.a.weight"].shape[0],
            prosody_width=weights["pit.0.dw.weight"].shape[2],
            decoder_channels=weights["inp.weight"].shape[0],
            decoder_layers=layers("dec"),
            decoder_hidden=weights["dec.0.a.weight"].shape[0],
            decoder_width=weights["dec.0.dw.weight"].shape[2],
            heads=heads,
            head_size=head_size,
            anchors=anchors,
        )


class Table(nn.Module):
    """Rows of numbers by index: ``nn.Embedding`` without its random start, for which torch imports its compiler (1 s)."""

    def __init__(self, rows: int, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(rows, channels))

    def forward(self, index: Tensor) -> Tensor:
        return F.embedding(index, self.weight)


class EncoderLayer(nn.Module):
    """Band attention, then a convolution block over phonemes."""

    def __init__(self, channels: int, hidden: int, width: int) -> None:
        super().__init__()
        self.n1 = nn.LayerNorm(channels)
        self.qkv = nn.Linear(channels, 3 * channels)
        self.band = BandAttention(ENCODER_HEADS, ENCODER_REACH)
        self.o = nn.Linear(channels, channels)
        self.n2 = nn.LayerNorm(channels)
        self.dw = Depthwise(channels, width)
        self.a = nn.Linear(channels, hidden)
        self.b = nn.Linear(hidden, channels)

    def forward(self, x: Tensor, keep: Tensor) -> Tensor:
        """``x``: [rows, phonemes, channels]; ``keep``: [rows, phonemes], 0 beyond the end of a shorter row."""
        x = x + self.o(self.band(self.qkv(self.n1(x)), keep))
        y = self.n2(x) * keep.unsqueeze(-1)
        z: Tensor = self.b(F.gelu(self.a(self.dw.centred(y)), approximate="tanh"))
        return x + z


class DecoderLayer(nn.Module):
    """Windowed attention with anchors, then a causal convolution block over frames."""

    def __init__(self, shape: AcousticShape) -> None:
        super().__init__()
        channels = shape.decoder_channels
        self.n1 = nn.LayerNorm(channels)
        self.at = WindowAttention(channels, shape.heads, shape.head_size, shape.anchors)
        self.n2 = nn.LayerNorm(channels)
        self.dw = Depthwise(channels, shape.decoder_width)
        self.a = nn.Linear(channels, shape.decoder_hidden)
        self.b = nn.Linear(shape.decoder_hidden, channels)

    def _mix(self, y: Tensor) -> Tensor:
        z: Tensor = self.b(F.gelu(self.a(y), approximate="tanh"))
        return z

    def step(
        self, x: Tensor, ring: Tensor, anchors: Tensor, history: Tensor, sight: Sight
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The next frames, and what they leave: for the ring, for the anchors, the convolution's history."""
        y, fresh, made = self.at.step(self.n1(x), ring, anchors, sight)
        x = x + y
        joined, history = push(history, self.n2(x))
        return x + self._mix(self.dw(joined)), fresh, made, history

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.at(self.n1(x))
        return x + self._mix(self.dw.padded(self.n2(x)))


class AcousticModel(nn.Module):
    """Phonemes in, log-mel frames out. See the module's contract; names follow the weight file."""

    def __init__(self, shape: AcousticShape) -> None:
        super().__init__()
        self.shape = shape
        channels, wide = shape.channels, shape.decoder_channels
        self.emb = Table(shape.symbols, channels)
        self.spk = Table(shape.speakers, channels)
        self.enc = nn.ModuleList(
            EncoderLayer(channels, shape.encoder_hidden, shape.encoder_width) for _ in range(shape.encoder_layers)
        )
        self.en = nn.LayerNorm(channels)
        self.dur = nn.ModuleList(
            ConvBlock(channels, shape.duration_hidden, shape.duration_width) for _ in range(shape.duration_layers)
        )
        self.duro = nn.Linear(channels, 1)
        self.fp = nn.Linear(channels + 4, channels)
        self.pit = nn.ModuleList(
            ConvBlock(channels, shape.prosody_hidden, shape.prosody_width) for _ in range(shape.prosody_layers)
        )
        self.pito = nn.Linear(channels, 6)
        self.inp = nn.Linear(channels + 4 + 6, wide)
        self.dec = nn.ModuleList(DecoderLayer(shape) for _ in range(shape.decoder_layers))
        self.dn = nn.LayerNorm(wide)
        self.out = nn.Linear(wide, MELS_PER_FRAME * shape.mels)

    def encode(self, ids: Tensor, speaker: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
        """``ids``: [rows, phonemes], padded to a multiple of ``ENCODER_REACH``; ``speaker``: [rows]; ``keep``: [rows,
        phonemes], 1 for a row's own phonemes and 0 for its padding.

        Gives the encoded phonemes [rows, phonemes, channels] and the log durations [rows, phonemes] in frames at speed 1.
        """
        x = self.emb(ids) + self.spk(speaker)[:, None]
        for layer in self.enc:
            x = layer(x, keep)
        encoded: Tensor = self.en(x)
        y = encoded
        for block in self.dur:
            y = block(y, keep.unsqueeze(-1))
        return encoded, self.duro(y).squeeze(-1)

    def prosody(self, expanded: Tensor) -> Tensor:
        """Raw prosody of frames: [rows, frames, channels + 4] -> [rows, frames, 6].

        Exact for frames at least ``PROSODY_REACH_FRAMES`` away from a cut in ``expanded`` (true ends need no margin).
        The six: log-F0 - 5.3 of two mel frames, voiced logit of each, energy / 5 of each.
        """
        x = self.fp(expanded)
        for block in self.pit:
            x = block(x)
        y: Tensor = self.pito(x)
        return y

    def decode_step(
        self, x: Tensor, ring: Tensor, anchors: Tensor, history: Tensor, sight: Sight
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Decodes the next frames of every row: ``x`` [rows, time <= 64, channels + 10] -> log-mels [rows, 2 time, mels].

        ``x`` is the expansion, then the six told prosody numbers. ``ring``, ``anchors`` and ``history`` hold each layer's
        memory in their first dimension; what the frames leave for them comes back likewise.
        """
        y = self.inp(x)
        left: list[tuple[Tensor, Tensor, Tensor]] = []
        for i, layer in enumerate(cast("list[DecoderLayer]", list(self.dec))):
            y, *rest = layer.step(y, ring[i], anchors[i], history[i], sight)
            left.append((rest[0], rest[1], rest[2]))
        mels: Tensor = self.out(self.dn(y))
        mels = mels.view(x.shape[0], MELS_PER_FRAME * x.shape[1], self.shape.mels)
        fresh, made, history = (torch.stack(parts) for parts in zip(*left, strict=True))
        return mels, fresh, made, history

    def decode(self, x: Tensor) -> Tensor:
        """All frames at once: [rows, frames, channels + 10] -> [rows, 2 frames, mels]. For training and as a reference."""
        y = self.inp(x)
        for layer in self.dec:
            y = layer(y)
        mels: Tensor = self.out(self.dn(y))
        return mels.view(x.shape[0], MELS_PER_FRAME * x.shape[1], self.shape.mels)
