"""How long phonemes last at a speed that was asked for."""

from __future__ import annotations

import numpy as np
import pytest

from tts_engine.expansion import fitted_durations, frame_durations


def _logs(count: int, seed: int) -> np.ndarray:
    """Log durations as a voice has them: most phonemes last two to five frames."""
    return np.log(np.random.default_rng(seed).uniform(1.6, 6.0, count)).astype(np.float32)


@pytest.mark.parametrize("speed", [0.5, 0.8, 0.9, 1.1, 1.5, 1.7])
@pytest.mark.parametrize("count", [12, 60])
def test_a_speed_changes_the_whole_by_its_factor(speed: float, count: int) -> None:
    for seed in range(20):
        logs = _logs(count, seed)
        plain = frame_durations(logs).sum()
        fitted = fitted_durations(logs, np.full(count, speed, np.float32), slice(0, count)).sum()
        assert abs(fitted - plain / speed) <= max(2.0, 0.015 * plain / speed)


def test_normal_speed_and_what_lies_outside_stay_as_they_are() -> None:
    logs = _logs(40, 1)
    speed = np.ones(40, np.float32)
    speed[20:] = 1.3
    fitted = fitted_durations(logs, speed, slice(1, 38))
    plain = frame_durations(logs, speed)
    assert np.array_equal(fitted[:20], plain[:20])
    assert np.array_equal(fitted[38:], plain[38:])


def test_no_phoneme_is_left_out() -> None:
    logs = _logs(30, 2)
    assert fitted_durations(logs, np.full(30, 4.0, np.float32), slice(0, 30)).min() == 1
