"""One packet's network in torch: frame decoder, then vocoder body, with all state handed in and handed back.

It is what eager mode runs and what is exported for the compiled path; ``tts_engine.models.rows`` feeds it.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor, nn

from tts_engine.models.acoustic import AcousticModel
from tts_engine.models.vocoder import Vocoder
from tts_engine.nn.attention import Sight


class PacketOutputs(NamedTuple):
    """``filters``: [rows, 4 time, 4, bins]; the others are what the frames leave in each layer's memory."""

    filters: Tensor
    fresh: Tensor  # [layers, rows, 3 heads, time, h]
    made: Tensor  # [layers, rows, 2 heads, anchors, h]
    decoder_history: Tensor  # [layers, rows, width - 1, channels]
    input_history: Tensor  # [rows, width - 1, inputs]
    body_history: Tensor  # [blocks, rows, width - 1, channels]


class PacketNetwork(nn.Module):
    """Expansion and told prosody to filters. Inputs are named as in ``tts_engine.models.rows.PacketInputs``."""

    def __init__(self, acoustic: AcousticModel, vocoder: Vocoder) -> None:
        super().__init__()
        self.acoustic = acoustic
        self.vocoder = vocoder

    def forward(
        self,
        x: Tensor,
        f0: Tensor,
        keep: Tensor,
        cos: Tensor,
        sin: Tensor,
        mask: Tensor,
        closing: Tensor,
        ring: Tensor,
        anchors: Tensor,
        decoder_history: Tensor,
        input_history: Tensor,
        body_history: Tensor,
    ) -> PacketOutputs:
        sight = Sight(cos, sin, mask, closing)
        mels, fresh, made, decoder_history = self.acoustic.decode_step(x, ring, anchors, decoder_history, sight)
        filters, input_history, body_history = self.vocoder.body_step(mels, f0, keep, input_history, body_history)
        return PacketOutputs(filters, fresh, made, decoder_history, input_history, body_history)
