"""The streaming model in numpy: each utterance's state, what a packet's network is fed, and what it leaves behind.

The network itself (frame decoder and vocoder body) is run by a subclass, in torch or compiled. Rows are independent: each
is at its own frame, and a row's samples do not depend on the rows beside it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from tts_engine.expansion import MELS_PER_FRAME, Floats
from tts_engine.models.signal import LOOK_AHEAD_MELS, NoiseShape, SignalState, signal_step
from tts_engine.nn.window import ENCODER_REACH, KEPT_BLOCKS, WINDOW


@dataclass(frozen=True, slots=True)
class RowShape:
    """The sizes of the state, as a voice's weights give them."""

    layers: int
    heads: int
    head_size: int
    anchors: int
    channels: int
    past: int  # inputs that a decoder convolution remembers
    inputs: int  # of the vocoder
    input_past: int
    blocks: int
    body_channels: int
    body_past: int


@dataclass(slots=True)
class Row:
    """One utterance's state. Allocated once; the ring and the anchors are written in place.

    With D = heads * head size, ``ring``: [layers, WINDOW, 3 D], slot = frame mod WINDOW: unrotated key, rotated key, value.
    ``anchors``: [layers, KEPT_BLOCKS, anchors, 2 D], slot = block mod KEPT_BLOCKS: key, value. The histories are the last
    inputs of the convolutions.
    """

    ring: Floats
    anchors: Floats
    decoder_history: Floats
    input_history: Floats
    body_history: Floats
    frame: int = 0
    signal: SignalState = field(default_factory=SignalState)

    @staticmethod
    def empty(shape: RowShape) -> Row:
        """A row before its first frame."""

        def zeros(*sizes: int) -> Floats:
            return np.zeros(sizes, np.float32)

        width = shape.heads * shape.head_size
        return Row(
            ring=zeros(shape.layers, WINDOW, 3 * width),
            anchors=zeros(shape.layers, KEPT_BLOCKS, shape.anchors, 2 * width),
            decoder_history=zeros(shape.layers, shape.past, shape.channels),
            input_history=zeros(shape.input_past, shape.inputs),
            body_history=zeros(shape.blocks, shape.body_past, shape.body_channels),
        )


def padded_ids(ids: Sequence[int]) -> tuple[NDArray[np.int64], Floats]:
    """One sentence for the text encoder: ids [1, phonemes] padded to whole blocks, and 1 for each that is no padding."""
    count = -(-len(ids) // ENCODER_REACH) * ENCODER_REACH
    padded = np.zeros((1, count), np.int64)
    padded[0, : len(ids)] = ids
    keep = np.zeros((1, count), np.float32)
    keep[0, : len(ids)] = 1
    return padded, keep


PacketInputs = dict[str, NDArray[np.float32] | NDArray[np.int64]]


class StreamingModel(ABC):
    """Steps rows through the network. A subclass runs it and says what shape the state has."""

    row_shape: RowShape
    noise_shape: NoiseShape

    @abstractmethod
    def _network(self, inputs: PacketInputs) -> Mapping[str, Floats]:
        """Runs the packet's network: named arrays in, named arrays out (see ``tts_engine.models.packet``)."""

    def start(self) -> Row:
        return Row.empty(self.row_shape)

    def packet(self, rows: Sequence[Row], x: Floats, f0: Floats, noise: Floats, lengths: Sequence[int]) -> Floats:
        time = x.shape[1]
        given = [MELS_PER_FRAME * row.frame for row in rows]
        mel_lengths = [MELS_PER_FRAME * length for length in lengths]
        left = self._network(self._inputs(rows, x, f0, mel_lengths))
        states = [replace(row.signal) for row in rows]  # until nothing can fail any more, rows stay as they were
        samples = signal_step(states, given, mel_lengths, left["filters"], f0, noise, self.noise_shape)
        for i, (row, signal) in enumerate(zip(rows, states, strict=True)):
            self._remember(row, time, {name: left[name] for name in ("fresh", "made")}, i)
            # copies: a view would keep the memory of the whole batch for as long as its row rests
            row.decoder_history = left["decoder_history"][:, i].copy()
            row.input_history = left["input_history"][i].copy()
            row.body_history = left["body_history"][:, i].copy()
            row.signal = replace(signal, excitation=signal.excitation.copy(), tail=signal.tail.copy())
            row.frame += time
        return samples

    def _inputs(self, rows: Sequence[Row], x: Floats, f0: Floats, lengths: Sequence[int]) -> PacketInputs:
        shape = self.row_shape
        time = x.shape[1]
        start = np.array([row.frame for row in rows])[:, None]
        steps = np.arange(time)
        query = start + steps  # [rows, time]
        slot = np.arange(WINDOW)
        held = start - 1 - (start - 1 - slot) % WINDOW  # frame in each ring slot, < 0: none yet
        ring_seen = (held >= 0)[:, None] & (held[:, None] > query[:, :, None] - WINDOW)
        step_seen = np.broadcast_to(steps <= steps[:, None], (len(rows), time, time))

        done = start // WINDOW  # blocks completed before the step
        kept = max(1, min(KEPT_BLOCKS, int(done.max())))
        place = np.arange(kept)
        stored = done - 1 - (done - 1 - place) % KEPT_BLOCKS  # block in each anchor slot
        newest = query // WINDOW  # blocks completed before each frame
        old_seen = (stored >= 0)[:, None] & (stored[:, None] >= newest[:, :, None] - KEPT_BLOCKS)
        new_seen = (newest > done)[:, :, None]
        closing = WINDOW * done + slot  # frames of the block that is under way
        source = np.where(closing < start, slot, np.minimum(WINDOW + closing - start, WINDOW + time - 1))

        new_seen = new_seen.repeat(shape.anchors, axis=2)
        seen = np.concatenate((old_seen.repeat(shape.anchors, axis=2), new_seen, ring_seen, step_seen), axis=2)

        angles = query[:, :, None, None].astype(np.float32) * _rates(shape.head_size // 2)
        mel = MELS_PER_FRAME * start + np.arange(-LOOK_AHEAD_MELS, MELS_PER_FRAME * time)
        return {
            "x": x,
            "f0": f0,
            "keep": ((mel >= 0) & (mel < np.array(lengths)[:, None])).astype(np.float32),
            "cos": np.cos(angles),
            "sin": np.sin(angles),
            "mask": np.where(seen, np.float32(0), np.float32(-np.inf))[:, None],
            "closing_source": (source + np.arange(len(rows))[:, None] * (WINDOW + time)).reshape(-1),
            "ring": np.stack([row.ring for row in rows], axis=1),
            "anchors": np.stack(
                [row.anchors[:, :kept].reshape(shape.layers, kept * shape.anchors, -1) for row in rows], axis=1
            ),
            "decoder_history": np.stack([row.decoder_history for row in rows], axis=1),
            "input_history": np.stack([row.input_history for row in rows]),
            "body_history": np.stack([row.body_history for row in rows], axis=1),
        }

    @staticmethod
    def _remember(row: Row, time: int, left: Mapping[str, Floats], i: int) -> None:
        """Writes the new frames into the ring, and the anchors of the block that they complete."""
        slots = np.arange(row.frame, row.frame + time) % WINDOW
        row.ring[:, slots] = left["fresh"][:, i]
        block = row.frame // WINDOW
        if row.frame + time >= WINDOW * (block + 1):
            row.anchors[:, block % KEPT_BLOCKS] = left["made"][:, i]


def _rates(half: int) -> Floats:
    """The rotary angles' rates (RoPE, Su et al. 2021)."""
    return (10000.0 ** (-np.arange(half, dtype=np.float32) / half)).astype(np.float32)
