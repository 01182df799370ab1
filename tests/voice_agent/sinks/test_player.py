"""The reckoning of what sounds where nobody tells: in a clock that never stands still, held, cut, confirmed."""

from __future__ import annotations

import numpy as np
import pytest

from voice_agent.sinks.player import Player
from voice_agent.sinks.valve import Valve

RATE = 1000


class RestlessClock:
    """Goes on by ``step_s`` whenever it is looked at, as real ones do."""

    def __init__(self, step_s: float) -> None:
        self.time_s = 0.0
        self.step_s = step_s

    def now_s(self) -> float:
        self.time_s += self.step_s
        return self.time_s

    async def sleep(self, seconds: float) -> None:
        self.time_s += seconds


def ramp(start: int, count: int) -> np.ndarray:
    return np.arange(start, start + count, dtype=np.float32)


def player(step_s: float):
    told: list[tuple[np.ndarray, float]] = []
    clock = RestlessClock(step_s)
    return Player(clock, Valve(RATE), lambda frames, begins_s: told.append((frames, begins_s)), lambda: False), clock, told


@pytest.mark.parametrize("step_s", [0.0, 0.0003, 0.004])
def test_every_frame_sounds_once_whatever_happens_in_between(step_s):
    sink, clock, told = player(step_s)
    rng, offered, kept = np.random.default_rng(1), 0, 0
    for _ in range(400):
        what = rng.integers(6)
        if what <= 1:
            count = int(rng.integers(0, 40))
            sink.offer(ramp(offered, count), clock.now_s() + 0.01 * rng.integers(2))
            offered += count
        elif what == 2:
            sink.hold()
        elif what == 3:
            sink.resume()
        elif what == 4 and rng.random() < 0.2:
            heard = sink.cut()
            assert heard == sum(len(frames) for frames, _ in told)
            kept, offered = heard, heard
            told[:] = [(np.zeros(kept, np.float32), 0.0)]
        clock.time_s += 0.01
        assert kept <= sink.heard() <= offered
    sink.resume()
    clock.time_s += 100.0
    assert sink.heard() == offered == sum(len(frames) for frames, _ in told)
    ends_s = [begins_s + len(frames) / RATE for frames, begins_s in told[1:]]
    assert all(later >= end_s - 1e-6 for end_s, (_, later) in zip(ends_s, told[2:], strict=False))


def test_what_is_confirmed_sounds_up_to_now():
    sink, clock, told = player(0.0)
    sink.offer(ramp(0, 100), 0.0)
    clock.time_s = 5.0
    sink.confirm(40)
    sink.confirm(30)
    sink.confirm(500)  # more than there is
    assert np.array_equal(np.concatenate([frames for frames, _ in told]), ramp(0, 100))
    assert told[0][1] == pytest.approx(4.96)


def test_what_does_not_sound_yet_is_held_without_a_fade():
    sink, clock, told = player(0.0)
    sink.offer(ramp(1, 100), 0.5)
    clock.time_s = 0.1
    sink.hold()
    clock.time_s = 3.0
    assert sink.heard() == 0
    sink.resume()
    clock.time_s = 3.05
    assert sink.heard() == 50
    assert told[0][1] == pytest.approx(3.0)
