"""The ears' own way to 16 kHz: the same for any chunking, true up to 6 kHz, deaf to what would fold back, quick."""

from __future__ import annotations

import numpy as np
import pytest

from voice_agent.ears.resampling import QuickResampler
from voice_agent.errors import InputError

RATES = (8_000, 11_025, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000, 96_000)


def sine(hertz: float, rate: int, seconds: float = 0.5) -> np.ndarray:
    return np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate).astype(np.float32)


def whole(samples: np.ndarray, rate: int) -> np.ndarray:
    resampler = QuickResampler(rate)
    return np.concatenate([resampler.feed(samples), resampler.flush()])


@pytest.mark.parametrize("rate", RATES)
def test_any_chunking_gives_the_same(rate: int) -> None:
    random = np.random.default_rng(rate)
    samples = random.standard_normal(rate // 2).astype(np.float32)
    expected = whole(samples, rate)
    assert abs(len(expected) - 8_000) <= 1
    for size in (1, 7, rate // 100, rate // 50 + 1):
        resampler = QuickResampler(rate)
        part = samples if size > 1 else samples[:2000]
        pieces = [resampler.feed(part[first : first + size]) for first in range(0, len(part), size)]
        got = np.concatenate([*pieces, resampler.flush()])
        assert np.allclose(got, expected if size > 1 else whole(part, rate), atol=1e-6)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("hertz", [100, 1000, 3000, 6000])
def test_what_is_heard_is_true_and_in_its_place(rate: int, hertz: int) -> None:
    if hertz > 0.37 * rate:
        return
    got = whole(sine(hertz, rate), rate)
    expected = sine(hertz, 16_000)
    middle = slice(400, 7_600)
    error = np.sqrt(np.mean(np.square(got[middle] - expected[middle]))) * np.sqrt(2)
    assert error < 10 ** (-50 / 20)


@pytest.mark.parametrize(("rate", "hertz"), [(24_000, 9_000), (44_100, 9_500), (48_000, 12_000), (48_000, 20_000)])
def test_what_would_fold_back_is_not_heard(rate: int, hertz: int) -> None:
    got = whole(sine(hertz, rate), rate)[400:7_600]
    assert np.abs(got).max() < 10 ** (-60 / 20)


@pytest.mark.parametrize("rate", RATES)
def test_little_is_held_back(rate: int) -> None:
    resampler = QuickResampler(rate)
    given = sum(len(resampler.feed(np.zeros(rate // 100, np.float32))) for _ in range(100))
    assert rate // 100 * 100 / rate - given / 16_000 < 0.0022


def test_memory_does_not_grow_and_a_new_stream_begins_afresh() -> None:
    resampler = QuickResampler(44_100)
    first = np.concatenate([resampler.feed(sine(440, 44_100)), resampler.flush()])
    for _ in range(200):
        resampler.feed(np.ones(441, np.float32))
        assert len(resampler._input) <= 3 * resampler.held_back
    resampler.flush()
    assert np.array_equal(np.concatenate([resampler.feed(sine(440, 44_100)), resampler.flush()]), first)


def test_a_rate_that_cannot_be_is_refused() -> None:
    with pytest.raises(InputError, match="0 Hz"):
        QuickResampler(0)
