"""How much the workers can make, learned from what they made."""

from __future__ import annotations

import pytest

from tts_engine.throughput import FIRST_GUESS, MEMORY_S, Throughput


def test_it_begins_with_a_guess_for_each_worker():
    assert Throughput(1).audio_s_per_s == FIRST_GUESS
    assert Throughput(3).audio_s_per_s == 3 * FIRST_GUESS


def test_it_learns_what_steps_and_beginnings_bring():
    throughput = Throughput(2)
    for _ in range(1000):
        throughput.feed(0.005)  # a beginning makes nothing
        throughput.feed(0.015, 0.6)
    assert throughput.audio_s_per_s == pytest.approx(2 * 0.6 / 0.02, rel=0.01)


def test_a_machine_that_gets_slower_shows_after_some_seconds_of_work_and_one_stall_hardly():
    throughput = Throughput(1)
    for _ in range(1000):
        throughput.feed(0.01, 0.8)
    throughput.feed(0.2, 0.8)
    assert 70 < throughput.audio_s_per_s < 80
    work_s = 0.0
    while throughput.audio_s_per_s > 44:
        throughput.feed(0.02, 0.8)
        work_s += 0.02
    assert work_s < 3 * MEMORY_S
