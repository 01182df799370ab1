"""Slower and faster at the same pitch: length, pitch and loudness hold, and any chunking gives the same samples."""

from __future__ import annotations

import numpy as np
import pytest

from tests.pitch import RATE, pitch_of
from voice_agent.errors import InputError
from voice_agent.stretch import Stretcher


def voice(pitch_hz: float, seconds: float = 2.0) -> np.ndarray:
    """A buzz with a vowel's falling harmonics, which swells and fades like syllables."""
    t = np.arange(int(seconds * RATE)) / RATE
    buzz = sum(np.sin(2 * np.pi * k * pitch_hz * t) / k for k in range(1, 12))
    return (0.2 * buzz * (0.6 - 0.4 * np.cos(2 * np.pi * 4 * t))).astype(np.float32)


def whole(samples: np.ndarray, tempo: float) -> np.ndarray:
    stretcher = Stretcher(tempo)
    return np.concatenate([stretcher.feed(samples), stretcher.flush()])


@pytest.mark.parametrize("tempo", [0.25, 0.6, 0.9, 1.0, 1.4, 2.0, 2.67, 4.0])
@pytest.mark.parametrize("pitch_hz", [82.0, 210.0, 330.0])
def test_length_pitch_and_level(tempo: float, pitch_hz: float) -> None:
    samples = voice(pitch_hz)
    out = whole(samples, tempo)
    assert len(out) == round(len(samples) / tempo)
    assert pitch_of(out) == pytest.approx(pitch_hz, rel=0.01)
    assert out.std() == pytest.approx(samples.std(), rel=0.1)


@pytest.mark.parametrize("tempo", [0.31, 0.8, 1.7, 3.9])
@pytest.mark.parametrize("seed", range(3))
def test_any_chunking_gives_the_same_samples(tempo: float, seed: int) -> None:
    draw = np.random.default_rng(seed)
    samples = voice(190.0, 1.1) + 0.01 * draw.standard_normal(int(1.1 * RATE)).astype(np.float32)
    stretcher = Stretcher(tempo)
    cuts = np.sort(draw.integers(0, len(samples), 25))
    pieces = [stretcher.feed(part) for part in np.split(samples, cuts)]
    assert np.array_equal(np.concatenate([*pieces, stretcher.flush()]), whole(samples, tempo))


def test_a_stream_is_put_out_while_it_comes_in() -> None:
    stretcher = Stretcher(0.5)
    put_out = 0
    for k, part in enumerate(np.split(voice(190.0), 20)):
        put_out += len(stretcher.feed(part))
        assert put_out >= ((k + 1) * len(part) - 1500) / 0.5


def test_silence_clicks_and_short_streams() -> None:
    assert not np.any(whole(np.zeros(5000, np.float32), 1.5))
    for length in (0, 1, 299, 600, 901):
        assert len(whole(np.ones(length, np.float32), 0.7)) == round(length / 0.7)
    samples = voice(190.0)
    assert np.abs(np.diff(whole(samples, 1.3))).max() <= 1.1 * np.abs(np.diff(samples)).max()


def test_a_stretcher_begins_anew_after_flush_and_reset() -> None:
    samples = voice(150.0, 0.5)
    stretcher = Stretcher(1.6)
    first = np.concatenate([stretcher.feed(samples), stretcher.flush()])
    stretcher.feed(samples[:999])
    stretcher.reset()
    assert np.array_equal(first, np.concatenate([stretcher.feed(samples), stretcher.flush()]))


@pytest.mark.parametrize("tempo", [0.0, -1.0, 0.1, 9.0, float("nan")])
def test_a_tempo_that_cannot_be_is_refused(tempo: float) -> None:
    with pytest.raises(InputError, match="tempo is"):
        Stretcher(tempo)
