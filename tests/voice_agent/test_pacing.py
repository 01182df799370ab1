"""Pacing on a virtual clock, and the arithmetic of what was heard."""

from __future__ import annotations

import asyncio
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice_agent.pacing import MonotonicClock, Pacer, PlayLine, Playout
from voice_agent.testing.clock import LoopClock, run_virtual


class TestPacer:
    def test_deadlines_do_not_drift(self):
        async def main():
            clock, pacer = LoopClock(), Pacer(LoopClock())
            for frame in range(10_000):
                await pacer.wait(0.02)
                assert abs(clock.now_s() - frame * 0.02) < 0.0131
                await asyncio.sleep(0.013 if frame % 3 else 0.001)  # work between the frames
            assert abs(clock.now_s() - 9_999 * 0.02) < 0.0131

        run_virtual(main())

    def test_late_frames_catch_up_in_a_bounded_burst(self):
        async def main():
            clock, pacer = LoopClock(), Pacer(LoopClock(), max_burst_s=0.1)
            await pacer.wait(0.02)
            await asyncio.sleep(1.0)
            times = []
            for _ in range(20):
                await pacer.wait(0.02)
                times.append(round(clock.now_s() - 1.0, 6))
            assert times.count(0.0) == 6  # 0.1 s of frames, and the one that is due now
            assert times[6:] == [round(0.02 * (i + 1), 6) for i in range(14)]

        run_virtual(main())

    def test_a_small_delay_is_made_good(self):
        async def main():
            clock, pacer = LoopClock(), Pacer(LoopClock())
            await pacer.wait(0.02)
            await asyncio.sleep(0.05)
            for _ in range(10):
                await pacer.wait(0.02)
            assert clock.now_s() == pytest.approx(0.2)

        run_virtual(main())

    def test_a_cancelled_wait_changes_nothing(self):
        async def main():
            clock, pacer = LoopClock(), Pacer(LoopClock())
            await pacer.wait(1.0)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(pacer.wait(1.0), 0.3)
            await pacer.wait(1.0)
            assert clock.now_s() == pytest.approx(1.0)
            pacer.reset()
            await pacer.wait(1.0)
            assert clock.now_s() == pytest.approx(1.0)

        run_virtual(main())

    async def test_real_time(self):
        pacer, started_s = Pacer(), time.monotonic()
        for _ in range(6):
            await pacer.wait(0.01)
        assert 0.049 < time.monotonic() - started_s < 5
        assert abs(MonotonicClock().now_s() - time.monotonic()) < 0.1


class TestPlayout:
    def test_stretches_with_a_gap(self):
        playout = Playout(1000)
        assert playout.heard(5.0) == 0
        playout.offer(10.0, 100)
        playout.offer(10.1, 100)  # no gap
        playout.offer(11.0, 50)
        moments = [9.9, 10.0, 10.05, 10.2, 10.9, 11.0, 11.025, 99.0]
        assert [playout.heard(now_s) for now_s in moments] == [0, 0, 50, 200, 200, 200, 225, 250]
        assert playout.end_s() == pytest.approx(11.05)

    def test_stop(self):
        playout = Playout(1000)
        playout.offer(1.0, 1000)
        assert playout.due_s(250) == 1.25
        assert playout.due_s(1000) == 2.0
        playout.stop(250)
        assert playout.heard(1.1) == 100
        assert playout.heard(9.0) == 250
        assert playout.end_s() == 1.25
        playout.offer(2.0, 100)
        assert [playout.heard(now_s) for now_s in (1.9, 2.05, 3.0)] == [250, 300, 350]

    def test_never_more_than_512_stretches(self):
        playout = Playout(1000)
        for index in range(5000):
            playout.offer(index * 0.02, 10)
        assert playout.heard(1e9) == 50_000
        assert playout.heard(4999 * 0.02 + 0.005) == 49_995
        assert playout.heard(4900 * 0.02) == 49_000


class TestPlayLine:
    def test_other_rates_count_at_their_own(self):
        line = PlayLine(48_000)
        line.accept(2400, 24_000, 3000)  # the resampler still holds some back
        line.hear(3000)
        assert line.playhead().heard_samples == 1500
        line.end(1800)
        line.hear(4800)
        assert line.playhead().heard_samples == 2400
        line.accept(800, 8_000, 4800)
        line.end(0)
        line.hear(4800 + 2400)
        head = line.playhead(latency_s=0.1, underruns=3)
        assert (head.accepted_samples, head.heard_samples) == (3200, 2800)
        assert (head.heard_s, head.pending_s) == (pytest.approx(0.15), pytest.approx(0.05))
        assert (head.latency_s, head.underruns) == (0.1, 3)

    def test_cut_forgets_and_goes_on(self):
        line = PlayLine(24_000)
        line.accept(1000, 24_000, 1000)
        line.cut(400)
        head = line.playhead()
        assert (head.accepted_samples, head.heard_samples, head.dropped_samples) == (400, 400, 600)
        assert line.frames == 400
        line.accept(100, 24_000, 100)
        line.hear(450)
        assert line.playhead().heard_samples == 450
        line.hear(10)  # a late answer of a jittery device
        assert line.playhead().heard_samples == 450
        line.hear(10_000)
        assert line.playhead().heard_samples == 500

    @given(
        st.lists(
            st.tuples(st.sampled_from(["accept", "end", "hear", "cut"]), st.integers(0, 5000), st.sampled_from([8, 24, 44])),
            max_size=40,
        )
    )
    def test_invariants(self, steps):
        line, heard, rate, last = PlayLine(24_000), 0, None, line_head(PlayLine(24_000))
        for name, count, kilohertz in steps:
            if name == "accept":
                if rate not in (None, kilohertz):
                    line.end(0)
                rate = kilohertz
                line.accept(count, rate * 1000, count * 24 // rate)
            elif name == "end":
                line.end(count % 7)
                rate = None
            else:
                heard = max(heard, min(count, line.frames))
                line.hear(heard) if name == "hear" else line.cut(heard)
                rate = None if name == "cut" else rate
            head = line_head(line)
            assert last.heard_samples <= head.heard_samples <= head.accepted_samples
            assert last.heard_s <= head.heard_s + 1e-9
            assert head.pending_s >= -1e-9
            last = head


def line_head(line):
    return line.playhead()
