"""The click detector: deaf to speech, awake at broken seams."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from voice_agent.audio import Resampler
from voice_agent.testing.clicks import find_clicks
from voice_agent.testing.sink_conformance import tone

VECTORS = Path(__file__).parents[2] / "data" / "vectors"
RATE = 24_000


def speech(name: str) -> np.ndarray:
    return np.load(VECTORS / f"{name}.npz")["samples"].astype(np.float32)


@pytest.mark.parametrize("name", ["en_short", "en_long", "zh", "en_xiaobei_fast"])
def test_speech_has_no_clicks(name):
    assert find_clicks(speech(name), RATE) == []


def test_a_tone_and_noise_have_no_clicks():
    assert find_clicks(tone(1.0), RATE) == []
    assert find_clicks(np.random.default_rng(0).standard_normal(24_000).astype(np.float32) * 0.3, RATE) == []
    assert find_clicks(np.zeros(0, np.float32), RATE) == []
    assert find_clicks(np.zeros(3, np.float32), RATE) == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda x: np.concatenate([x[:10_000], x[10_013:]]),
        lambda x: np.concatenate([x[:10_000], np.zeros(30, np.float32), x[10_000:]]),
        lambda x: np.concatenate([x[:10_000], x[10_000:] + 0.1 * np.linspace(1, 0, 14_000, dtype=np.float32)]),
        lambda x: np.concatenate([x[:10_000], -x[10_000:]]),
        lambda x: np.concatenate([x[:10_000], np.frombuffer(b"RIFF$\0\0\0WAVEfmt ", "<i2") / 32768, x[10_000:]]),
    ],
    ids=["samples missing", "hole", "step", "sign", "header"],
)
def test_damage_to_a_vowel_is_heard(damage):
    samples = tone(1.0) + tone(1.0, 1311.0, level=0.2)
    clicks = find_clicks(damage(samples).astype(np.float32), RATE)
    assert clicks
    assert all(9_995 <= click <= 10_050 for click in clicks)


def test_a_resampler_without_memory_is_heard():
    """Each chunk resampled alone, as libraries that carry no state do it."""
    samples = speech("en_short")
    chunks = [samples[i : i + 480] for i in range(0, len(samples), 480)]

    def alone(chunk):
        resampler = Resampler(RATE, 48_000)
        return np.concatenate([resampler.feed(chunk), resampler.flush()])

    carried = Resampler(RATE, 48_000)
    good = np.concatenate([*(carried.feed(chunk) for chunk in chunks), carried.flush()])
    bad = np.concatenate([alone(chunk) for chunk in chunks])
    seams = range(960, len(good) - 1, 960)
    assert find_clicks(good, 48_000, at=seams) == []
    assert len(find_clicks(bad, 48_000, at=seams)) > 10


def test_seams_limit_the_search():
    samples = tone(1.0)
    samples[5_000] += 0.2
    samples[15_000] += 0.2
    assert len(find_clicks(samples, RATE)) == 2
    assert all(abs(click - 15_000) <= 2 for click in find_clicks(samples, RATE, at=[15_000, 20_000]))
