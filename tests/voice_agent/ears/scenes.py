"""Synthetic voices and rooms, without any other program."""

from __future__ import annotations

import numpy as np

RATE = 16_000


def voice(seconds: float, seed: int = 0, level: float = 0.06) -> np.ndarray:
    """Syllables: pulses of a gliding pitch through two resonances that move, four times a second louder and quieter."""
    dice = np.random.default_rng(seed)
    count = round(seconds * RATE)
    time_s = np.arange(count) / RATE
    pitch_hz = dice.uniform(100, 200) * (1 + 0.1 * np.sin(2 * np.pi * 0.7 * time_s + dice.uniform(0, 6)))
    pulses = np.diff(np.floor(np.cumsum(pitch_hz) / RATE), prepend=0.0)
    response_s = np.arange(500) / RATE
    made = np.zeros(count)
    for place, low_hz, high_hz in zip(
        range(0, count, RATE // 4), dice.uniform(300, 800, 400), dice.uniform(900, 2300, 400), strict=False
    ):
        response = sum(np.exp(-response_s * 350) * np.sin(2 * np.pi * hz * response_s) for hz in (low_hz, high_hz))
        piece = pulses[place : place + RATE // 4]
        made[place : place + len(piece) + 499] += np.convolve(piece, response)[: count - place]
    made *= 0.15 + 0.85 * np.abs(np.sin(2 * np.pi * 2 * time_s))
    return (made * level / np.sqrt(np.mean(made**2))).astype(np.float32)


def silence(seconds: float, seed: int = 0, level: float = 2e-4) -> np.ndarray:
    """A quiet room."""
    return np.random.default_rng(seed).normal(0, level, round(seconds * RATE)).astype(np.float32)


def echo_of(played: np.ndarray, delay_s: float, gain_db: float, seed: int = 0, reverberation_s: float = 0.2) -> np.ndarray:
    """What a microphone hears of it, behind a delay and with a room's decaying tail; as long as ``played``."""
    dice = np.random.default_rng(seed)
    count = round(reverberation_s * RATE)
    path = dice.standard_normal(count) * 10 ** (-3 * np.arange(count) / count)
    path[0] += 3 * np.sqrt(np.sum(path**2))
    path *= 10 ** (gain_db / 20) / np.sqrt(np.sum(path**2))
    delayed = np.concatenate([np.zeros(round(delay_s * RATE)), path])
    return np.convolve(played, delayed)[: len(played)].astype(np.float32)
