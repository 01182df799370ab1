"""What a clear, an exception or a cancellation cuts off is dropped at once, and what was heard is told."""

from __future__ import annotations

import asyncio
import threading

from voice_agent.testing.sink_conformance.rig import (
    SEAM_S,
    Check,
    Rig,
    chunk_of,
    expected,
    require,
    require_all_heard,
    require_output,
    require_same,
    resampled,
    tone,
)


async def clear_tells_what_was_heard(rig: Rig) -> None:
    first, second = tone(1.0), tone(0.3, 880.0)
    async with rig.make() as sink:
        await sink.write(chunk_of(first))
        await asyncio.sleep(0.3)
        head = await sink.clear()
        require(head.heard_samples == head.accepted_samples, "clear() leaves something to be heard")
        require(head.heard_samples + head.dropped_samples == len(first), "heard and dropped are not all of it")
        if rig.real_time:
            require(head.heard_s < 0.3 + rig.reaction_s, f"{head.heard_s:.2f} s were heard within 0.3 s")
        require(sink.playhead.heard_samples == head.heard_samples, "the playhead moved after clear()")
        await sink.write(chunk_of(second, last=True))
        await sink.drain()
        require_all_heard(sink.playhead, head.heard_samples + len(second))
        if rig.output:
            out, rate = rig.output(sink)
            cut, seam = round(head.heard_s * rate), round(SEAM_S * rate)
            before = resampled(first, rate)[: max(0, cut - seam)]
            require_same(rig, out[: len(before)], before, "what was heard before clear()")
            behind = resampled(second, rate)
            require(abs(len(out) - cut - len(behind)) <= seam, "clear() left stale sound, or swallowed what came after it")
            require_same(rig, out[-len(behind) :], behind, "what was written after clear()")


async def clear_releases_a_blocked_write(rig: Rig) -> None:
    if not rig.real_time:
        return
    sink = rig.make()
    await sink.start()
    writing = asyncio.ensure_future(sink.write(chunk_of(tone(rig.bound_s + 20.0))))
    await asyncio.sleep(0.1)
    require(not writing.done(), f"{rig.bound_s + 20.0} s were accepted at once")
    pending_s = sink.playhead.pending_s
    require(pending_s <= rig.bound_s, f"{pending_s:.2f} s wait to be heard, more than {rig.bound_s} s")
    await sink.clear()
    await asyncio.wait_for(writing, rig.reaction_s)
    require(sink.playhead.pending_s == 0.0, "a write went on after clear()")
    await sink.close()


async def clear_ends_a_drain(rig: Rig) -> None:
    sink = rig.make()
    await sink.start()
    await sink.write(chunk_of(tone(1.0)))
    draining = asyncio.ensure_future(sink.drain())
    await asyncio.sleep(0.05)
    await sink.clear()
    await asyncio.wait_for(draining, rig.reaction_s)
    await sink.close()


async def a_cancelled_write_can_go_on(rig: Rig) -> None:
    if not rig.real_time:
        return
    samples = tone(rig.bound_s + 0.5)
    async with rig.make() as sink:
        writing = asyncio.ensure_future(sink.write(chunk_of(samples)))
        await asyncio.sleep(0.2)
        writing.cancel()
        await asyncio.wait([writing])
        require(writing.cancelled(), "a blocked write swallowed its cancellation")
        accepted = sink.playhead.accepted_samples
        await sink.write(chunk_of(samples[accepted:], last=True))
        await sink.drain()
        require_all_heard(sink.playhead, len(samples))
        require_output(rig, sink, samples)


async def an_exception_clears(rig: Rig) -> None:
    before = threading.active_count()
    loop = asyncio.get_running_loop()
    sink = rig.make()
    with expected(ZeroDivisionError, "the exception inside the block"):
        async with sink:
            await sink.write(chunk_of(tone(1.5)))
            failed_s = loop.time()
            raise ZeroDivisionError
    if rig.real_time:
        require(loop.time() - failed_s < rig.reaction_s, "after an exception the sink played on")
    require(sink.playhead.pending_s == 0.0, "after an exception something waits to be heard")
    require(threading.active_count() <= before + 1, "the sink left a thread")  # asyncio keeps its own for reuse


async def a_cancellation_clears_and_leaves_no_task(rig: Rig) -> None:
    loop = asyncio.get_running_loop()

    async def speak() -> None:
        async with rig.make() as sink:
            while True:
                await sink.write(chunk_of(tone(1.0)))
                await asyncio.sleep(0.01)

    speaking = asyncio.ensure_future(speak())
    await asyncio.sleep(0.5)
    cancelled_s = loop.time()
    speaking.cancel()
    await asyncio.wait([speaking], timeout=10)
    require(speaking.cancelled(), "the cancellation did not come through")
    require(loop.time() - cancelled_s < rig.reaction_s, "a cancelled sink played on")
    left = asyncio.all_tasks() - {asyncio.current_task()}
    require(not left, f"tasks were left: {left}")


CHECKS: list[Check] = [
    clear_tells_what_was_heard,
    clear_releases_a_blocked_write,
    clear_ends_a_drain,
    a_cancelled_write_can_go_on,
    an_exception_clears,
    a_cancellation_clears_and_leaves_no_task,
]
