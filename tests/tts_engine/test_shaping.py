"""Levels and silences land on their samples, for any chunking."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tts_engine.shaping import (
    ENOUGH_QUIET_SAMPLES,
    FADE_SAMPLES,
    KEPT_QUIET_SAMPLES,
    RAMP_SAMPLES,
    Level,
    SampleShaper,
    Silence,
)

TOTAL = 6000
SILENCES = [Silence(0, 500), Silence(2000, 700), Silence(2100, 0)]
CLOSING = 300
LEVELS = [Level(0, 1.0), Level(1000, 0.5), Level(4000, 2.0)]


def shape(sizes: list[int], samples: np.ndarray, silences=SILENCES, levels=LEVELS, tail=None, closing=CLOSING) -> np.ndarray:
    shaper = SampleShaper(len(samples), silences, levels, tail=tail, closing=closing)
    out: list[np.ndarray] = []
    at = 0
    for size in sizes:
        out += shaper.feed(samples[at : at + size])
        at += size
    if at < len(samples):
        out += shaper.feed(samples[at:])
    assert shaper.done
    return np.concatenate(out)


@given(st.lists(st.integers(1, 2500), max_size=12))
@settings(max_examples=examples(60))
def test_any_chunking_gives_the_same(sizes: list[int]) -> None:
    samples = np.random.default_rng(1).standard_normal(TOTAL).astype(np.float32)
    kept, at = [], 0
    for size in sizes:
        if at + size < TOTAL:
            kept.append(size)
            at += size
    np.testing.assert_allclose(shape(kept, samples), shape([], samples), atol=1e-6)


def test_silences_are_exact_and_placed() -> None:
    samples = np.ones(TOTAL, np.float32)
    out = shape([1000], samples, levels=[])
    shaper = SampleShaper(TOTAL, SILENCES, [])
    assert not out[:500].any()
    assert not out[2500:3200].any()
    assert not out[-300:].any()
    assert out[500] == 1.0  # no fade at the very start: the sound begins by itself
    assert (out[500 : 2500 - FADE_SAMPLES] == 1).all()
    assert shaper.placed(0) == 500
    assert shaper.placed(1999) == 2499
    assert shaper.placed(2000) == 3200
    assert len(out) == TOTAL + 1500


def test_a_silence_inside_sound_has_no_edge() -> None:
    out = shape([], np.ones(TOTAL, np.float32), levels=[])
    steps = np.abs(np.diff(out[500:-300]))
    assert steps.max() <= 1.01 / FADE_SAMPLES


def test_levels_ramp() -> None:
    out = shape([], np.ones(TOTAL, np.float32), silences=[], closing=0)
    assert out[999] == pytest.approx(1.0)
    assert out[1000 + RAMP_SAMPLES] == pytest.approx(0.5)
    assert out[-1] == pytest.approx(2.0)
    assert np.abs(np.diff(out)).max() <= 1.51 / RAMP_SAMPLES


def test_levels_closer_than_a_ramp_stay_in_order() -> None:
    levels = [Level(0, 1.0), Level(100, 0.0), Level(150, 1.0)]
    out = shape([77], np.ones(TOTAL, np.float32), silences=[], levels=levels, closing=0)
    assert out[-1] == pytest.approx(1.0)
    assert np.abs(np.diff(out)).max() <= 1.01 / RAMP_SAMPLES


def test_nothing_but_silence() -> None:
    assert len(SampleShaper(0, [], [], closing=240).feed(np.zeros(0, np.float32))[0]) == 240


@pytest.mark.parametrize("quiet", [0, 100, KEPT_QUIET_SAMPLES, 3000, ENOUGH_QUIET_SAMPLES, 20_000])
@given(st.lists(st.integers(1, 9000), max_size=8))
@settings(max_examples=examples(20))
def test_silence_at_the_end_is_cut(quiet: int, sizes: list[int]) -> None:
    sound = np.full(4000, 0.5, np.float32)
    out = shape(sizes, np.concatenate((sound, np.full(quiet, 1e-4, np.float32))), [], [], tail=3000, closing=480)
    assert len(out) == 4000 + min(quiet, KEPT_QUIET_SAMPLES) + 480


@given(st.lists(st.integers(1, 5000), max_size=8))
@settings(max_examples=examples(20))
def test_a_sound_behind_a_short_silence_is_kept_and_behind_a_long_one_not(sizes: list[int]) -> None:
    sound, short = np.full(1000, 0.5, np.float32), np.zeros(ENOUGH_QUIET_SAMPLES - 1, np.float32)
    out = shape(sizes, np.concatenate((sound, short, sound)), [], [], tail=0, closing=0)
    assert len(out) == 2000 + len(short)
    out = shape(sizes, np.concatenate((sound, short, short, sound)), [], [], tail=0, closing=0)
    assert len(out) == 1000 + KEPT_QUIET_SAMPLES


def test_silence_before_the_tail_is_kept() -> None:
    samples = np.concatenate((np.ones(500), np.zeros(9000), np.ones(500))).astype(np.float32)
    assert len(shape([], samples, [], [], tail=9600, closing=0)) == 10_000
