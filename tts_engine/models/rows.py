"""The streaming model in numpy: each utterance's state, what a packet's network is fed, and what it leaves behind.

The network itself (frame decoder and vocoder body) is run by a subclass, in torch or compiled. Rows are independent: each
is at its own frame, and a row's samples do not depend on the rows beside it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tts_engine.errors import EngineError
from tts_engine.expansion import MELS_PER_FRAME, Floats
from tts_engine.models.base import Encoding
from tts_engine.models.signal import LOOK_AHEAD_MELS, MEL_HOP, NoiseShape, SignalState, signal_step
from tts_engine.nn.window import KEPT_BLOCKS, WINDOW


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

    ``ring``: [layers, 3 heads, WINDOW, h], slot = frame mod WINDOW: unrotated keys, rotated keys, values. ``anchors``: [layers,
    2 heads, KEPT_BLOCKS * anchors, h], slot = block mod KEPT_BLOCKS: keys, values. The histories are the last inputs of the
    convolutions. The first ``lead`` frames only lead the decoder in: the vocoder begins behind them.
    """

    ring: Floats
    anchors: Floats
    decoder_history: Floats
    input_history: Floats
    body_history: Floats
    lead: int = 0
    frame: int = 0
    signal: SignalState = field(default_factory=SignalState)

    @staticmethod
    def empty(shape: RowShape, lead: int = 0) -> Row:
        """A row before its first frame."""

        def zeros(*sizes: int) -> Floats:
            return np.zeros(sizes, np.float32)

        return Row(
            ring=zeros(shape.layers, 3 * shape.heads, WINDOW, shape.head_size),
            anchors=zeros(shape.layers, 2 * shape.heads, KEPT_BLOCKS * shape.anchors, shape.head_size),
            decoder_history=zeros(shape.layers, shape.past, shape.channels),
            input_history=zeros(shape.input_past, shape.inputs),
            body_history=zeros(shape.blocks, shape.body_past, shape.body_channels),
            lead=lead,
        )


PacketInputs = dict[str, NDArray[Any]]


class StreamingModel(ABC):
    """Steps rows through the network. A subclass runs it and says what shape the state has."""

    row_shape: RowShape
    noise_shape: NoiseShape

    @abstractmethod
    def encode(self, ids: Sequence[int], speaker: int) -> tuple[Floats, Floats]:
        """See ``SpeechModel``."""

    def encode_more(self, encoding: Encoding) -> None:
        """The whole sentence at once."""
        encoding.encoded, encoding.log_durations = self.encode(encoding.ids, encoding.speaker)

    @abstractmethod
    def _network(self, inputs: PacketInputs) -> Mapping[str, Floats]:
        """Runs the packet's network: named arrays in, named arrays out (see ``tts_engine.models.packet``)."""

    def start(self, lead: int = 0) -> Row:
        return Row.empty(self.row_shape, lead)

    def packet(self, rows: Sequence[Row], x: Floats, f0: Floats, noise: Floats, lengths: Sequence[int]) -> Floats:
        time = x.shape[1]
        given = [MELS_PER_FRAME * (row.frame - row.lead) for row in rows]  # mel frames that the vocoder had
        mel_lengths = [MELS_PER_FRAME * (length - row.lead) for row, length in zip(rows, lengths, strict=True)]
        mel = np.array(given)[:, None] + np.arange(MELS_PER_FRAME * time)
        f0 = np.where(mel >= 0, f0, np.float32(0))
        skip = self._skipped_mels(rows, time)
        left = self._network(self._inputs(rows, x, f0, mel_lengths))
        states = [replace(row.signal) for row in rows]  # until nothing can fail any more, rows stay as they were
        made = signal_step(
            states,
            [before + skip for before in given],
            mel_lengths,
            left["filters"],
            f0[:, skip:],
            noise[:, MEL_HOP * skip :],
            self.noise_shape,
        )
        if not np.isfinite(made).all():
            raise EngineError("the voice gives samples that are no numbers: its weights are damaged or of another model")
        for i, (row, signal) in enumerate(zip(rows, states, strict=True)):
            self._remember(row, time, {name: left[name] for name in ("fresh", "made")}, i)
            # copies: a view would keep the memory of the whole batch for as long as its row rests
            row.decoder_history = left["decoder_history"][:, i].copy()
            row.input_history = left["input_history"][i].copy()
            row.body_history = left["body_history"][:, i].copy()
            row.signal = replace(signal, excitation=signal.excitation.copy(), tail=signal.tail.copy())
            row.frame += time
        return np.pad(made, ((0, 0), (MEL_HOP * skip, 0))) if skip else made

    def _skipped_mels(self, rows: Sequence[Row], time: int) -> int:
        """How many mel frames at the start of a step lead all rows in, so that the vocoder can leave them out, if it does."""
        return 0

    def _inputs(self, rows: Sequence[Row], x: Floats, f0: Floats, lengths: Sequence[int]) -> PacketInputs:
        """What the network is fed; ``lengths``: mel frames that the vocoder makes of each row in all."""
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
        new_seen = (newest > done)[:, :, None].repeat(shape.anchors, axis=2)
        seen = np.concatenate((old_seen.repeat(shape.anchors, axis=2), new_seen, ring_seen, step_seen), axis=2)
        # of the block that the step completes: frames of the ring and of the step, all where it completes none
        closing = np.concatenate((held >= WINDOW * done, query < WINDOW * (done + 1)), axis=1)
        closing |= query[:, -1:] + 1 < WINDOW * (done + 1)

        angles = query[:, None, :, None].astype(np.float32) * rotary_rates(shape.head_size)
        first_mel = MELS_PER_FRAME * np.array([row.frame - row.lead for row in rows])[:, None]
        mel = first_mel + np.arange(-LOOK_AHEAD_MELS, MELS_PER_FRAME * time)
        return {
            "x": x,
            "f0": f0,
            "keep": ((mel >= 0) & (mel < np.array(lengths)[:, None])).astype(np.float32),
            "cos": np.cos(angles),
            "sin": np.sin(angles),
            "mask": additive(seen)[:, None],
            "closing": additive(closing)[:, None, None],
            "ring": _batch([row.ring for row in rows]),
            "anchors": _batch([row.anchors[:, :, : kept * shape.anchors] for row in rows]),
            "decoder_history": _batch([row.decoder_history for row in rows]),
            "input_history": np.stack([row.input_history for row in rows]),
            "body_history": _batch([row.body_history for row in rows]),
        }

    @staticmethod
    def _remember(row: Row, time: int, left: Mapping[str, Floats], i: int) -> None:
        """Writes the new frames into the ring, and the anchors of the block that they complete."""
        slot, fresh = row.frame % WINDOW, left["fresh"][:, i]
        part = min(time, WINDOW - slot)
        row.ring[:, :, slot : slot + part] = fresh[:, :, :part]
        row.ring[:, :, : time - part] = fresh[:, :, part:]
        block = row.frame // WINDOW
        if row.frame + time >= WINDOW * (block + 1):
            made = left["made"][:, i]  # [layers, 2 heads, anchors, h]
            at = block % KEPT_BLOCKS * made.shape[2]
            row.anchors[:, :, at : at + made.shape[2]] = made


def _batch(states: Sequence[Floats]) -> Floats:
    """Rows' states [layers, ...] as [layers, rows, ...]; that of one row is not copied."""
    return states[0][:, None] if len(states) == 1 else np.stack(states, axis=1)


def additive(seen: NDArray[np.bool_]) -> Floats:
    """The mask that attention adds to its scores."""
    return np.where(seen, np.float32(0), np.float32(-np.inf))


def rotary_rates(head_size: int) -> Floats:
    """The rates of the rotary angles (RoPE, Su et al. 2021): [head size / 2]."""
    half = head_size // 2
    return (10000.0 ** (-np.arange(half, dtype=np.float32) / half)).astype(np.float32)
