"""The ring between two threads: order, bounds, wrap-around, and two real threads at once."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tts_engine.ring_buffer import RingBuffer


def test_write_takes_only_what_fits():
    ring = RingBuffer(8)
    assert ring.write(np.arange(5, dtype=np.float32)) == 5
    assert ring.write(np.arange(5, 10, dtype=np.float32)) == 3
    assert (len(ring), ring.written, ring.taken, ring.capacity) == (8, 8, 0, 8)
    out = np.full(10, -1, dtype=np.float32)
    assert ring.read(out) == 8
    assert out.tolist() == [0, 1, 2, 3, 4, 5, 6, 7, -1, -1]


def test_drop_forgets_what_waits():
    ring = RingBuffer(8)
    ring.write(np.ones(6, dtype=np.float32))
    asked = ring.written
    ring.write(np.array([7, 8], dtype=np.float32))  # meanwhile
    ring.drop(asked)
    assert (len(ring), ring.taken) == (2, 6)
    ring.drop(asked)
    out = np.zeros(2, dtype=np.float32)
    assert ring.read(out) == 2
    assert out.tolist() == [7, 8]
    ring.drop(999)
    assert (len(ring), ring.taken) == (0, 8)


def test_a_ring_without_room_is_refused():
    with pytest.raises(ValueError, match="at least one"):
        RingBuffer(0)


@given(st.integers(1, 17), st.lists(st.tuples(st.booleans(), st.integers(0, 23)), max_size=60))
def test_behaves_like_a_bounded_queue(capacity, steps):
    ring, model, following = RingBuffer(capacity), [], 0
    for is_write, count in steps:
        if is_write:
            samples = np.arange(following, following + count, dtype=np.float32)
            taken = ring.write(samples)
            assert taken == min(count, capacity - len(model))
            model += samples[:taken].tolist()
            following += taken
        else:
            out = np.zeros(count, dtype=np.float32)
            got = ring.read(out)
            assert out[:got].tolist() == model[:got]
            assert got == min(count, len(model))
            del model[:got]
        assert len(ring) == len(model)


def test_two_threads_lose_and_reorder_nothing():
    total, ring = 100_000, RingBuffer(1000)
    received: list[np.ndarray] = []

    def write() -> None:
        rng, sent = np.random.default_rng(1), 0
        while sent < total:
            block = np.arange(sent, min(total, sent + int(rng.integers(1, 700))), dtype=np.float32)
            sent += ring.write(block)

    def read() -> None:
        rng, count = np.random.default_rng(2), 0
        while count < total:
            out = np.empty(int(rng.integers(1, 700)), dtype=np.float32)
            got = ring.read(out)
            assert 0 <= len(ring) <= ring.capacity
            received.append(out[:got])
            count += got

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        threads = [threading.Thread(target=write), threading.Thread(target=read)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(interval)
    assert np.array_equal(np.concatenate(received), np.arange(total, dtype=np.float32))
