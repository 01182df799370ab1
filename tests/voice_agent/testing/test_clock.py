"""The virtual clock: no real time passes, order is kept, a dead loop says so."""

from __future__ import annotations

import asyncio
import time

import pytest

from voice_agent.testing.clock import LoopClock, VirtualLoop, run_virtual


def test_an_hour_takes_no_time():
    async def main():
        clock, order = LoopClock(), []

        async def after(seconds):
            await clock.sleep(seconds)
            order.append((seconds, clock.now_s()))

        await asyncio.gather(after(3600), after(1), after(0.1), after(60))
        return order

    started_s = time.monotonic()
    order = run_virtual(main())
    assert time.monotonic() - started_s < 60
    assert [seconds for seconds, _ in order] == [0.1, 1, 60, 3600]
    assert all(at_s == pytest.approx(seconds) for seconds, at_s in order)


def test_timeouts_and_threads():
    async def main():
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), 500)
        return await asyncio.to_thread(lambda: 42), asyncio.get_running_loop().time()

    assert run_virtual(main()) == (42, pytest.approx(500))


def test_a_loop_in_which_nothing_can_happen_raises():
    async def main():
        await asyncio.Event().wait()

    loop = VirtualLoop(stall_s=0.05)
    try:
        with pytest.raises(RuntimeError, match="nothing can wake"):
            loop.run_until_complete(main())
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
    finally:
        loop.close()
