"""Levels by band, voicing, and what a room is taken to be."""

from __future__ import annotations

import numpy as np
import pytest

from tests.voice_agent.ears.scenes import RATE, silence, voice
from voice_agent.ears.background import Background, prominence_db
from voice_agent.ears.features import BANDS, WINDOW, decibels, in_bands, is_voiced, spectrum


def windows(samples: np.ndarray) -> list[np.ndarray]:
    return [samples[i : i + WINDOW] for i in range(0, len(samples) - WINDOW, 160)]


def bands(window: np.ndarray) -> np.ndarray:
    return decibels(in_bands(spectrum(window), 2 * WINDOW))


@pytest.mark.parametrize("hertz", [300, 1000, 5000])
def test_the_level_of_a_tone(hertz: float) -> None:
    tone = (0.1 * np.sqrt(2) * np.sin(2 * np.pi * hertz * np.arange(WINDOW) / RATE)).astype(np.float32)
    power = spectrum(tone)
    assert float(decibels(power.sum())) == pytest.approx(-20, abs=0.2)
    levels = bands(tone)
    assert levels.shape == (BANDS,)
    assert levels.max() == pytest.approx(-20, abs=1.5)


def test_a_voice_is_voiced_and_noise_is_not() -> None:
    dice = np.random.default_rng(0)
    noise = dice.normal(0, 0.1, RATE).astype(np.float32)
    said = [w for w in windows(voice(2.0)) if np.abs(w).max() > 0.05]
    assert np.mean([is_voiced(spectrum(w)) for w in said]) > 0.8
    assert np.mean([is_voiced(spectrum(w)) for w in windows(noise)]) < 0.2
    assert np.mean([is_voiced(spectrum(w + n)) for w, n in zip(said, windows(0.1 * noise), strict=False)]) > 0.7


def test_silence_has_a_level_and_no_voice() -> None:
    nothing = np.zeros(WINDOW, dtype=np.float32)
    assert (bands(nothing) == -90).all()
    assert np.isfinite(bands(silence(0.04)[:WINDOW])).all()


def test_the_room_is_learned_and_a_voice_stands_out_of_it() -> None:
    background = Background()
    noise = np.random.default_rng(2).normal(0, 0.005, 2 * RATE).astype(np.float32)
    assert not background.known
    for window in windows(noise):
        background.feed(bands(window), True)
    assert background.known
    room = decibels(background.power)
    assert room == pytest.approx(np.mean([bands(w) for w in windows(noise)], axis=0), abs=0.5)
    usual = [float(prominence_db(bands(w), room)) for w in windows(noise)]
    assert np.mean([p > background.needed_db for p in usual]) < 0.03
    as_loud = [w + n for w, n in zip(windows(voice(1.0, level=0.005)), windows(noise), strict=False)]
    assert np.mean([float(prominence_db(bands(w), room)) > background.needed_db for w in as_loud]) > 0.3


def test_what_lasts_is_the_room_even_if_it_is_taken_for_speech() -> None:
    background = Background()
    for window in windows(np.random.default_rng(3).normal(0, 0.02, 5 * RATE).astype(np.float32)):
        background.feed(bands(window), False)
    assert float(decibels(background.power.sum())) > -40
