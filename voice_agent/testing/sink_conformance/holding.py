"""A hold keeps everything, and goes on at the same sample."""

from __future__ import annotations

import asyncio

from voice_agent.testing.sink_conformance.rig import (
    SEAM_S,
    Check,
    Rig,
    chunk_of,
    require,
    require_all_heard,
    require_same,
    resampled,
    tone,
    write_all,
)


async def a_hold_keeps_everything_and_resumes_at_the_sample(rig: Rig) -> None:
    samples = tone(1.0)
    async with rig.make() as sink:
        writing = asyncio.ensure_future(write_all(sink, samples))
        await asyncio.sleep(0.4)
        before = sink.playhead
        head = await sink.hold()
        if rig.real_time:
            late_s = head.heard_s - before.heard_s
            require(late_s <= rig.hold_s, f"{late_s * 1000:.0f} ms were heard after hold(), more than {rig.hold_s} s")
        length = len(rig.output(sink)[0]) if rig.output else 0
        await sink.hold()
        await asyncio.sleep(0.3)
        require(sink.playhead.heard_samples == head.heard_samples, "the playhead moved while held")
        require(sink.playhead.dropped_samples == 0, "a hold dropped something")
        if rig.output:
            require(len(rig.output(sink)[0]) == length, "a held sink played on")
        await sink.resume()
        await sink.resume()
        await writing
        await sink.drain()
        require_all_heard(sink.playhead, len(samples))
        if rig.output:
            out, rate = rig.output(sink)
            expected = resampled(samples, rate)
            require(len(out) == len(expected), f"{len(expected)} frames expected, with a hold {len(out)} came out")
            cut, seam = round(head.heard_s * rate), round(SEAM_S * rate)
            require_same(rig, out[: max(0, cut - seam)], expected[: max(0, cut - seam)], "what was heard before a hold")
            require_same(rig, out[cut + seam :], expected[cut + seam :], "what was heard after a hold")


async def a_held_sink_takes_nothing_and_drains_when_it_goes_on(rig: Rig) -> None:
    samples = tone(0.3)
    async with rig.make() as sink:
        await sink.hold()
        writing = asyncio.ensure_future(write_all(sink, samples))
        await asyncio.sleep(0.2)
        require(not writing.done(), "a held sink took a chunk")
        require(sink.playhead.heard_samples == 0, "a held sink played")
        await sink.resume()
        await writing
        if rig.real_time:
            await sink.hold()
            draining = asyncio.ensure_future(sink.drain())
            await asyncio.sleep(0.5)
            require(not draining.done(), "a held sink drained while something was left to be heard")
            await sink.resume()
            await draining
        await sink.drain()
        require_all_heard(sink.playhead, len(samples))


async def clear_ends_a_hold(rig: Rig) -> None:
    first, second = tone(1.0), tone(0.3, 880.0)
    async with rig.make() as sink:
        writing = asyncio.ensure_future(write_all(sink, first))
        await asyncio.sleep(0.3)
        held = await sink.hold()
        waiting = asyncio.ensure_future(sink.drain()) if writing.done() else writing
        head = await sink.clear()
        await asyncio.wait_for(waiting, rig.reaction_s)
        require(head.heard_samples == held.heard_samples, "what was heard changed between hold() and clear()")
        require(head.heard_samples == head.accepted_samples, "clear() left something that was held")
        await sink.write(chunk_of(second, last=True))
        await sink.drain()
        require_all_heard(sink.playhead, head.heard_samples + len(second))
        if rig.output:
            out, rate = rig.output(sink)
            behind = resampled(second, rate)
            require_same(rig, out[-len(behind) :], behind, "what was written after a hold and a clear()")


async def close_ends_a_hold(rig: Rig) -> None:
    samples = tone(0.5)
    sink = rig.make()
    await sink.write(chunk_of(samples[:6000]))
    await sink.write(chunk_of(samples[6000:]))
    await sink.hold()
    await sink.close()
    require_all_heard(sink.playhead, len(samples))
    await sink.hold()
    await sink.resume()


CHECKS: list[Check] = [
    a_hold_keeps_everything_and_resumes_at_the_sample,
    a_held_sink_takes_nothing_and_drains_when_it_goes_on,
    clear_ends_a_hold,
    close_ends_a_hold,
]
