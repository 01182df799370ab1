"""What the engine asks of a model, whatever computes it. Numpy in and out; nothing here imports a framework."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from tts_engine.expansion import Floats

RowState = Any
"""What a model carries for one utterance. Only the model that made it looks inside."""


@dataclass(slots=True)
class Encoding:
    """A sentence on its way through the text encoder.

    ``encoded`` [phonemes, channels] and ``log_durations`` [phonemes] in frames at speed 1: of its first phonemes, and in the
    end of all. The former may be ahead of the latter. ``held``: what the model keeps between two pieces.
    """

    ids: Sequence[int]
    speaker: int
    encoded: Floats = field(default_factory=lambda: np.zeros((0, 0), np.float32))
    log_durations: Floats = field(default_factory=lambda: np.zeros(0, np.float32))
    held: Sequence[Floats] = ()

    @property
    def done(self) -> bool:
        return len(self.log_durations) == len(self.ids)


class SpeechModel(Protocol):
    """The acoustic model and the vocoder of one voice."""

    @property
    def form(self) -> str:
        """How it is computed: one of ``tts_engine.models.choice.CPU_FORMS``, "cuda float32" or "cuda float16"."""
        ...

    def encode(self, ids: Sequence[int], speaker: int) -> tuple[Floats, Floats]:
        """The encoded phonemes [phonemes, channels] and their log durations [phonemes] in frames at speed 1."""
        ...

    def encode_more(self, encoding: Encoding) -> None:
        """Encodes the next phonemes of a sentence that is not done: as many at a time as suits the model and the sentence.

        All of them together are what :meth:`encode` gives. When this raises, nothing has moved on.
        """
        ...

    def prosody(self, expanded: Floats) -> Floats:
        """Raw prosody of frames: [frames, channels + 4] -> [frames, 6].

        Exact for frames at least ``PROSODY_REACH_FRAMES`` away from a cut in ``expanded``; true ends need no margin.
        """
        ...

    def start(self, lead: int = 0) -> RowState:
        """An empty state for a new utterance whose first ``lead`` frames only lead the decoder in: they have no samples."""
        ...

    def packet(self, rows: Sequence[RowState], x: Floats, f0: Floats, noise: Floats, lengths: Sequence[int]) -> Floats:
        """Decodes the next frames of each row and gives the samples that became final.

        ``x``: [rows, frames <= 64, channels + 10], expansion and told prosody; ``f0``: [rows, 2 frames] Hz; ``noise``:
        [rows, 600 frames] standard normal, for the samples one decoder frame back; ``lengths``: frames of each row in
        all. Frames beyond a row's length may hold anything finite. Gives [rows, 600 frames]: the samples two decoder
        frames back; those outside a row's own frames are no sound. Each row's state moves on in place;
        when this raises, none has moved on.
        """
        ...
