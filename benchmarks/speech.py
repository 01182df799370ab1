"""What benchmarks of the engine share: sentences to speak, when speech is audible, whether memory grows.

Import it behind ``measure.one_core``: it brings numpy in.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml

from benchmarks.measure import Row
from tts_engine.engine import Engine
from tts_engine.planning import AUDIBLE
from tts_engine.types import Utterance

EVALUATION = Path(__file__).parent.parent / "tests" / "data" / "eval.yaml"
SETTLED = 200
"""Sentences after which memory is warm: dictionaries are mapped page by page, allocators settle with the first ones."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds from the call with the text: to the packet with the first audible sample, and in all; seconds of speech."""

    first_audible_s: float
    total_s: float
    audio_s: float

    @property
    def real_time_factor(self) -> float:
        return self.total_s / self.audio_s


def speak(engine: Engine, text: str) -> Timing:
    """Speaks a text to nobody."""
    started_s = time.perf_counter()
    first_audible_s = audio_s = 0.0
    for chunk in engine.speak(Utterance(text)):
        if not first_audible_s and len(chunk.samples) and np.abs(chunk.samples).max() > AUDIBLE:
            first_audible_s = time.perf_counter() - started_s
        audio_s += chunk.duration_s
    return Timing(first_audible_s, time.perf_counter() - started_s, audio_s)


def sentences_of_all_lengths() -> list[str]:
    """The evaluation sentences of both languages by turns, a long one and two short ones."""
    evaluated = yaml.safe_load(EVALUATION.read_text(encoding="utf-8"))
    found = [text for pair in itertools.zip_longest(evaluated["en"], evaluated["zh"]) for text in pair if text]
    return [*found, f"{found[0]} {found[2]} {found[4]}", "Yes.", "好。"]


def growth(mib: Sequence[float], sentences: int) -> Row:
    """What memory does over so many sentences, from samples at equal distances.

    *Warm* is after the first tenth of them, 200 at least; *grown* is from there to the smallest of the last quarter, so that
    a moment's garbage does not count.
    """
    settled = max(len(mib) // 10, SETTLED * len(mib) // sentences)
    warm, tail = mib[min(settled, len(mib) - 1)], mib[-max(1, len(mib) // 4) :]
    return {
        "warm MiB": round(warm, 1),
        "most MiB": round(max(mib), 1),
        "end MiB": round(mib[-1], 1),
        "grown MiB": round(min(tail) - warm, 1),
    }
