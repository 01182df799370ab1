"""Which rows share a step: the most urgent first, alike in length, within the budget, nobody given more than asked."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tts_engine.batching import CROWD_STEPS, LEAST_ROW_FRAMES, MOST_ROW_FRAMES, ROW_FRAME_BYTES, StepBudget, Want, choose


def want(frames: int, rest: int = 1000, urgent: bool = False, least: int = 1) -> Want:
    return Want(frames, rest, urgent, least)


@pytest.mark.parametrize(
    ("wants", "budget", "rows", "count"),
    [
        ([want(10)] * 4, 100, [0, 1, 2, 3], 10),
        ([want(10)] * 4, 30, [0, 1, 2], 10),
        ([want(64), want(64)], 48, [0], 48),
        ([want(10)], 1, [0], 10),  # a first packet is never cut
        ([want(8), want(64)], 100, [0], 8),  # the other would gain little and can wait
        ([want(8), want(64, urgent=True)], 100, [0, 1], 8),
        ([want(64), want(8)], 200, [0], 64),  # one that wants less is not filled up
        ([want(20), want(15)], 100, [0, 1], 15),
        ([want(20), want(14)], 100, [0], 20),
        ([want(20), want(12, rest=12)], 100, [0, 1], 20),  # but an end is
        ([want(20), want(4, rest=4)], 100, [0], 20),
        ([want(20, least=20)], 16, [0], 20),  # nor is a lead-in
        ([want(20, least=20), want(18, urgent=True)], 100, [0], 20),
        ([want(18), want(20, urgent=True, least=20)], 100, [0], 18),
        ([want(24), want(20, least=20), want(19)], 100, [0, 1], 20),
    ],
)
def test_rows_that_share_a_step(wants: list[Want], budget: int, rows: list[int], count: int) -> None:
    assert choose(wants, budget) == (rows, count)


WANTS = st.builds(
    lambda frames, more, urgent, first: Want(frames, frames + more, urgent, frames if first else 1),
    st.integers(1, 64),
    st.sampled_from([0, 0, 1, 50]),
    st.booleans(),
    st.booleans(),
)


@given(st.lists(WANTS, min_size=1, max_size=40), st.integers(1, 600))
def test_no_step_breaks_a_promise(wants: list[Want], budget: int) -> None:
    rows, count = choose(wants, budget)
    assert rows[0] == 0
    assert rows == sorted(set(rows))
    assert 1 <= count <= 64
    assert len(rows) == 1 or len(rows) * count <= budget
    assert count <= max(budget, LEAST_ROW_FRAMES, wants[0].least)
    for row in rows:
        assert count >= wants[row].least
        assert count <= wants[row].frames or (wants[row].frames == wants[row].rest and count <= 2 * wants[row].rest)


def test_the_budget_finds_what_fits_into_a_step() -> None:
    budget = StepBudget(0.02)
    for _ in range(40):
        budget.feed(budget.row_frames, 0.004 + 0.0001 * budget.row_frames)
    assert budget.row_frames == pytest.approx(160, rel=0.1)
    for _ in range(40):
        budget.feed(budget.row_frames, 0.008 + 0.0005 * budget.row_frames)
    assert budget.row_frames == pytest.approx(24, rel=0.1)


def test_one_slow_step_does_little_harm_and_small_steps_say_little() -> None:
    budget = StepBudget(0.02, row_frames=100)
    budget.feed(10, 0.5)
    assert budget.row_frames == 70
    budget.feed(10, 0.002)
    assert budget.row_frames == 70
    for _ in range(20):
        budget.halve()
    assert budget.row_frames == LEAST_ROW_FRAMES
    for _ in range(100):
        budget.feed(budget.row_frames, 1e-6)
    assert budget.row_frames == MOST_ROW_FRAMES


def test_a_step_fits_into_the_memory_that_is_left() -> None:
    budget = StepBudget(0.02, row_frames=200)
    budget.bound(100 * ROW_FRAME_BYTES)
    assert budget.row_frames == 100
    budget.bound(0)
    assert budget.row_frames == LEAST_ROW_FRAMES  # it goes on, one row at a time
    budget.bound(None)
    assert budget.row_frames == 200


def test_a_crowd_may_take_longer_steps_but_no_more_memory():
    budget = StepBudget(0.02, row_frames=40)
    assert budget.crowd_row_frames == CROWD_STEPS * 40
    budget.bound(50 * ROW_FRAME_BYTES)
    assert (budget.row_frames, budget.crowd_row_frames) == (40, 50)
