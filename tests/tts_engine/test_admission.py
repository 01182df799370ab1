"""Places, the queue for them, and being turned away."""

from __future__ import annotations

import pytest

from tts_engine.admission import GUEST_BYTES, Admission
from tts_engine.errors import BusyError, InputError


def test_places_then_the_queue_then_busy() -> None:
    admission: Admission[str] = Admission(2, 2)
    for name in "abcd":
        admission.enter(name, "interactive", 0.0)
    assert admission.served == ["a", "b"]
    assert admission.guests == ["a", "b", "c", "d"]
    with pytest.raises(BusyError, match="2 sessions are served and 2 wait; try again in") as busy:
        admission.enter("e", "interactive", 0.0)
    assert busy.value.retryable
    assert busy.value.retry_after_s == 1.0
    assert admission.guests == ["a", "b", "c", "d"]
    admission.leave("a", 1.0)
    assert admission.served == ["b", "c"]
    admission.enter("e", "interactive", 1.0)
    assert admission.waiting == 2


def test_listeners_come_before_bulk_work() -> None:
    admission: Admission[str] = Admission(1, 3)
    admission.enter("first", "bulk", 0.0)
    admission.enter("bulk", "bulk", 0.0)
    admission.enter("listener", "interactive", 0.0)
    admission.leave("first", 1.0)
    assert admission.served == ["listener"]
    admission.leave("listener", 2.0)
    assert admission.served == ["bulk"]


def test_one_who_waits_may_leave_and_leaving_twice_is_nothing() -> None:
    admission: Admission[str] = Admission(1, 2)
    for name in "abc":
        admission.enter(name, "interactive", 0.0)
    admission.leave("b", 0.0)
    admission.leave("b", 0.0)
    admission.leave("a", 0.0)
    assert admission.guests == ["c"]
    admission.clear()
    assert admission.guests == []


def test_the_time_to_try_again_follows_how_often_a_place_is_free() -> None:
    admission: Admission[int] = Admission(1, 0)
    now_s = 0.0
    for i in range(60):
        admission.enter(i, "interactive", now_s)
        now_s += 5.0
        admission.leave(i, now_s)
    admission.enter(99, "interactive", now_s)
    with pytest.raises(BusyError) as busy:
        admission.enter(100, "interactive", now_s)
    assert busy.value.retry_after_s == pytest.approx(5.0, rel=0.01)
    with pytest.raises(BusyError) as busy:
        admission.enter(100, "interactive", now_s + 1000)
    assert busy.value.retry_after_s == 30.0


def test_short_memory_refuses_newcomers_but_never_the_only_one() -> None:
    limit = 4 * GUEST_BYTES
    held = limit + 1
    admission: Admission[str] = Admission(9, 9, memory_limit_bytes=limit, resident=lambda: held)
    admission.enter("a", "interactive", 0.0)
    with pytest.raises(BusyError, match="memory_limit_mb"):
        admission.enter("b", "interactive", 0.0)
    assert admission.spare_bytes == 0
    held = limit - GUEST_BYTES + 1  # there is room, but not for another one
    with pytest.raises(BusyError, match="memory_limit_mb"):
        admission.enter("b", "interactive", 0.0)
    held = limit - GUEST_BYTES
    admission.enter("b", "interactive", 0.0)
    assert admission.spare_bytes == GUEST_BYTES
    assert Admission(9, 9).spare_bytes is None


def test_another_priority_is_refused() -> None:
    desk: Admission[str] = Admission(places=1, queue=1)
    with pytest.raises(InputError, match="interactive, bulk"):
        desk.enter("a", "urgent", 0.0)  # type: ignore[arg-type]
    assert not desk.guests
