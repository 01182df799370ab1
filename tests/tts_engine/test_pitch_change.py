"""Where a change of pitch inside a sentence is heard: measured on the samples, not on what was planned."""

from __future__ import annotations

import numpy as np
import pytest

from tts_engine.engine import Engine
from tts_engine.types import Mark, Tag, Utterance

RATE = 24_000
BLOCK = RATE // 100
TEXTS = {
    "We were all away a year ago in lower Iowa, where one may rely on Roy.": ("away", "year", "lower", "rely"),
    "我们来看一位老人要买两碗面。": ("来", "位", "老", "要", "两"),
}


@pytest.fixture(scope="module")
def engine() -> Engine:
    return Engine.load()


def spoken(engine: Engine, text: str, *marks: Mark) -> tuple[np.ndarray, dict[int, int]]:
    """The samples, and at which of them each word begins to sound."""
    chunks = list(engine.speak(Utterance(text, marks=marks)))
    begins = {word.start: word.start_sample for chunk in chunks for word in chunk.words}
    return np.concatenate([chunk.samples for chunk in chunks]), begins


def powers(samples: np.ndarray, blocks: int) -> np.ndarray:
    return np.square(samples[: blocks * BLOCK].reshape(blocks, BLOCK)).mean(axis=1)


def test_the_pitch_changes_where_its_word_begins(engine: Engine) -> None:
    """The first 10 ms in which the tagged speech is another, by more than a third, is near the word's first sample."""
    late_s = []
    for text, words in TEXTS.items():
        plain, begins = spoken(engine, text)
        for word in words:
            at = text.index(word)
            tagged, _ = spoken(engine, text, Mark(at, Tag("pitch", 5.0)))
            blocks = min(len(plain), len(tagged)) // BLOCK
            length = blocks * BLOCK
            change = powers(plain[:length] - tagged[:length], blocks) / np.maximum(powers(plain, blocks), 1e-6)
            late_s.append((int(np.argmax(change > 0.1)) * BLOCK - begins[at]) / RATE)
    assert abs(float(np.median(late_s))) <= 0.04
    assert max(map(abs, late_s)) <= 0.1
