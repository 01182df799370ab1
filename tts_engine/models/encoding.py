"""How a sentence goes through the text encoder piece by piece: what each of its stages is given, and keeps for the next piece.

A stage (a layer of attention and convolution, or a convolution of the durations) gives its output as far as its input is there
to both sides. So the first phonemes of a long sentence are there before most of it was computed, and no stage computes an
output twice. The pieces follow from the length of the sentence alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tts_engine.expansion import Floats
from tts_engine.models.base import Encoding
from tts_engine.models.rows import additive, rotary_rates

FIRST_PHONEMES = 24
"""The first piece of a long sentence: what is told of their frames is, as a rule, enough for a first packet."""
LONG_PHONEMES = 96
"""A sentence is long from here on: in shorter ones the pieces cost more than they save."""
PIECE_PHONEMES = 384
"""Further pieces: the time and memory of attention are quadratic in them."""


@dataclass(frozen=True, slots=True)
class Stage:
    """``attends``: phonemes that its attention sees to each side, 0: it has none; ``side``: those that its convolution sees."""

    attends: int
    side: int

    @property
    def reach(self) -> int:
        return self.attends + self.side


def piece_ends(phonemes: int) -> Iterator[int]:
    """Up to which phoneme each piece of a sentence goes."""
    if phonemes < LONG_PHONEMES:
        yield phonemes
        return
    for end in count(FIRST_PHONEMES, PIECE_PHONEMES):
        yield min(end, phonemes)
        if end >= phonemes:
            return


class Pieces:
    """The inputs of the encoder's graph for each piece, by the stages that it has."""

    def __init__(self, stages: Sequence[Stage], channels: int, head_size: int) -> None:
        self.stages = stages
        self._channels = channels
        reaches = [stage.reach for stage in stages]
        self._margins = [sum(reaches[i:]) for i in range(len(stages) + 1)]  # of a stage's input, then of the last output
        self._most = max(reaches)
        most = PIECE_PHONEMES + self._margins[0] + self._most
        angles = np.arange(most, dtype=np.float32)[:, None] * rotary_rates(head_size)
        self._cos, self._sin = np.cos(angles), np.sin(angles)
        self._places = np.arange(most)[None]
        self._bands = {
            reach: additive(np.abs(np.arange(-most, most)) <= reach) for reach in {stage.attends for stage in stages} - {0}
        }

    def inputs(self, encoding: Encoding, before: int, end: int) -> dict[str, NDArray[Any]]:
        """For phonemes [before, end) of the last output; what the stages kept is in ``encoding.held``."""
        total = len(encoding.ids)
        had, have = ([min(total, at + margin) if at else 0 for margin in self._margins] for at in (before, end))
        first = max(0, before - self._most)
        given: dict[str, NDArray[Any]] = {
            "ids": np.array([encoding.ids[had[0] : have[0]]], np.int64).reshape(1, -1),
            "speaker": np.array([encoding.speaker]),
            "cos": self._cos,
            "sin": self._sin,
        }
        cuts: list[int] = []
        for i, (stage, (was, now)) in enumerate(zip(self.stages, pairwise(zip(had, have, strict=True)), strict=True)):
            low, high = max(0, now[0] - stage.reach), was[1]  # of its input
            start, stop = max(0, now[0] - stage.side) if now[0] else 0, min(total, now[1] + stage.side)  # of what it convolves
            if stage.attends:
                given[f"positions.{i}"] = self._places[:, low - first : high - first]
                given[f"near.{i}"] = self._near(stage.attends, start - low, stop - low, high - low)
                cuts += [start - low, stop - low]
            cuts += [now[0] - start, now[1] - start, max(0, now[1] - stage.reach) - low]
            given[f"held.{i}"] = encoding.held[i] if encoding.held else np.zeros((1, 1, 0, self._channels), np.float32)
        given["cuts"] = np.array(cuts)
        return given

    def _near(self, reach: int, start: int, stop: int, count: int) -> Floats:
        """What the phonemes [start, stop) see of the ``count`` of a stage's input: [1, 1, stop - start, count]."""
        band = self._bands[reach]
        middle = len(band) // 2
        rows: Floats = np.ndarray(
            (stop - start, count), np.float32, band, offset=4 * (middle - start), strides=(-band.itemsize, band.itemsize)
        )
        return rows[None, None]
