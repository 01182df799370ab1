"""The playout lined up with the microphone: sample by sample in spite of moments that jitter, gaps, drift and threads."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from voice_agent.ears.config import RATE
from voice_agent.ears.reference import Reference, SampleClock


def sine(seconds: float, rate: int, hertz: float = 440.0, begins_s: float = 0.0) -> np.ndarray:
    return np.sin(2 * np.pi * hertz * (begins_s + np.arange(round(seconds * rate)) / rate)).astype(np.float32)


def play(reference: Reference, samples: np.ndarray, rate: int, begins_s: float, jitter_s: float = 0.0, piece_s: float = 0.02):
    random = np.random.default_rng(0)
    step = round(piece_s * rate)
    for first in range(0, len(samples), step):
        at_s = begins_s + first / rate + (jitter_s * random.uniform(-1, 1) if first else 0.0)
        reference.take(samples[first : first + step, None], at_s)


def place(seconds: float) -> int:
    return round(seconds * RATE)


@pytest.mark.parametrize("rate", [8_000, 16_000, 24_000, 44_100, 48_000])
@pytest.mark.parametrize("jitter_s", [0.0, 0.02])
def test_every_sample_is_in_its_place(rate: int, jitter_s: float) -> None:
    reference = Reference(rate)
    play(reference, sine(2.0, rate, begins_s=100.0), rate, 100.0, jitter_s)
    for begin_s, end_s in ((100.1, 100.12), (100.5, 101.5)):
        got = reference.between(place(begin_s), place(end_s))
        assert got is not None
        assert np.abs(got - sine(end_s - begin_s, RATE, begins_s=begin_s)).max() < 0.01


def test_channels_are_averaged() -> None:
    reference = Reference(RATE)
    reference.take(np.stack([np.full(320, 0.5), np.full(320, 0.1)], axis=1).astype(np.float32), 1.0)
    got = reference.between(place(1.0), place(1.02))
    assert got is not None
    assert np.allclose(got, 0.3)


def test_silence_and_what_is_not_known_is_none() -> None:
    reference = Reference(RATE)
    assert reference.between(0, 320) is None
    reference.take(np.zeros((3200, 1), np.float32), 5.0)
    assert reference.between(place(5.0), place(5.1)) is None
    reference.take(np.ones((3200, 1), np.float32), 5.2)
    assert reference.between(place(5.1), place(5.2)) is None
    assert reference.between(place(6.0), place(6.1)) is None


def test_the_edges_of_a_stretch_are_padded() -> None:
    reference = Reference(RATE)
    reference.take(np.ones((1600, 1), np.float32), 5.0)
    got = reference.between(place(4.95), place(5.15))
    assert got is not None
    assert len(got) == 3200
    assert np.array_equal(np.flatnonzero(got), np.arange(800, 2400))


def test_a_gap_is_silence_and_what_follows_is_in_its_place() -> None:
    reference = Reference(24_000)
    play(reference, sine(1.0, 24_000, begins_s=10.0), 24_000, 10.0)
    play(reference, sine(1.0, 24_000, begins_s=11.37), 24_000, 11.37)
    assert reference.between(place(11.05), place(11.35)) is None
    got = reference.between(place(11.6), place(11.9))
    assert got is not None
    assert np.abs(got - sine(0.3, RATE, begins_s=11.6)).max() < 0.01


def test_memory_is_bounded_and_old_sound_is_forgotten() -> None:
    reference = Reference(RATE)
    for second in range(30):
        play(reference, np.full(RATE, second + 1, np.float32), RATE, float(second))
    assert reference.between(place(3.0), place(4.0)) is None
    got = reference.between(place(28.0), place(30.0))
    assert got is not None
    assert np.array_equal(np.unique(got), [29, 30])
    for _ in range(100_000):
        reference.take(np.ones((1, 1), np.float32), 30.0)
    assert len(reference._waiting) <= 2048


def test_the_monitor_may_be_called_from_another_thread() -> None:
    reference = Reference(RATE)
    samples = sine(4.0, RATE)
    playing = threading.Thread(target=play, args=(reference, samples, RATE, 0.0))
    playing.start()
    while playing.is_alive():
        reference.between(0, 320)
    got = reference.between(0, len(samples))
    assert got is not None
    assert np.array_equal(got, samples)


# ---- the clock ----------------------------------------------------------------------------------------------------


def starts(moments: list[tuple[int, float]], scheduled: bool) -> list[int]:
    """At which pieces a new start is made."""
    clock = SampleClock(RATE, scheduled=scheduled)
    return [number for number, (count, at_s) in enumerate(moments) if clock.feed(count, at_s) is not None]


@pytest.mark.parametrize("scheduled", [False, True])
def test_jitter_makes_no_new_start(scheduled: bool) -> None:
    random = np.random.default_rng(0)
    assert len(starts([(320, 0.02 * n + random.uniform(0, 0.03)) for n in range(2000)], scheduled)) <= 2  # the first is off


def test_a_machine_that_stalls_makes_no_new_start() -> None:
    """Pieces that come late together, for half a second, say nothing about when they were taken."""
    moments = [(320, max(0.02 * n, 2.5 if 100 <= n < 125 else 0.0)) for n in range(400)]
    assert starts(moments, scheduled=False) == [0]


def test_lost_samples_are_noticed() -> None:
    moments = [(320, 0.02 * n + (0.05 if n >= 200 else 0.0)) for n in range(400)]
    first, second = starts(moments, scheduled=False)
    assert first == 0
    assert 200 < second < 300


def test_a_gap_of_a_planned_stream_is_seen_at_once() -> None:
    moments = [(320, 0.02 * n + (0.05 if n >= 100 else 0.0)) for n in range(200)]
    assert starts(moments, scheduled=True) == [0, 100]


@pytest.mark.parametrize("scheduled", [False, True])
def test_a_long_gap_is_seen_at_once(scheduled: bool) -> None:
    random = np.random.default_rng(0)
    moments = [(320, 0.02 * n + random.uniform(0, 0.03) + (3.0 if n >= 100 else 0.0)) for n in range(200)]
    assert 100 in starts(moments, scheduled)


def test_moments_that_wander_by_what_the_canceller_follows_make_no_new_start() -> None:
    """A new start moves the reference under a filter that has learned where the echo is."""
    moments = [(320, 0.02 * n + 0.02 * min(n / 500, 1.0)) for n in range(2000)]  # 20 ms in ten seconds
    assert starts(moments, scheduled=False) == [0]


@pytest.mark.parametrize("scheduled", [False, True])
def test_a_device_whose_clock_runs_off_is_followed(scheduled: bool) -> None:
    """100 parts in a million are 40 ms after 400 s."""
    clock, off_s = SampleClock(RATE, scheduled=scheduled), []
    expected_s = 0.0
    for n in range(60 * 50 * 10):
        at_s = 0.02 * n * (1 + 1e-4)
        start_s = clock.feed(320, at_s)
        expected_s = (start_s if start_s is not None else expected_s) + 0.02
        off_s.append(abs(expected_s - 0.02 - at_s))
    assert max(off_s) < 0.042
