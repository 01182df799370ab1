"""A sink holds a device only while it is started, and says so when it loses it."""

from __future__ import annotations

import asyncio
import inspect

from voice_agent.errors import SinkError
from voice_agent.testing.sink_conformance.rig import Check, Rig, chunk_of, expected, require, tone


async def nothing_is_opened_before_the_start(rig: Rig) -> None:
    if rig.is_open is None:
        return
    sink = rig.make()
    sink.set_gain(-6.0)
    await sink.clear()
    await sink.hold()
    await sink.resume()
    await sink.drain()
    require(not rig.is_open(sink), "a sink that nobody started is open")
    await sink.start()
    require(rig.is_open(sink), "a started sink is not open")
    await sink.close()
    require(not rig.is_open(sink), "a closed sink is open")
    unused = rig.make()
    await unused.close()
    require(not rig.is_open(unused), "closing opened the sink")


async def a_loss_is_told_and_everything_released(rig: Rig) -> None:
    if rig.lose is None:
        return
    sink = rig.make()
    await sink.start()
    await sink.write(chunk_of(tone(0.5)))
    lost = rig.lose(sink)
    if inspect.isawaitable(lost):
        await lost
    with expected(SinkError, f"{rig.lost_s} s of writing to what is gone"):
        async with asyncio.timeout(rig.lost_s):
            while True:
                await sink.write(chunk_of(tone(0.1)))
                await asyncio.sleep(0.01)
    with expected(SinkError, "a drain to what is gone"):
        await asyncio.wait_for(sink.drain(), rig.reaction_s)
    head = await asyncio.wait_for(sink.clear(), rig.reaction_s)
    require(head.heard_samples == head.accepted_samples, "what will never be heard still waits")
    require((await sink.hold()).heard_samples == head.heard_samples, "what is gone plays on")
    await asyncio.wait_for(sink.close(), rig.reaction_s)
    left = asyncio.all_tasks() - {asyncio.current_task()}
    require(not left, f"tasks were left: {left}")


CHECKS: list[Check] = [nothing_is_opened_before_the_start, a_loss_is_told_and_everything_released]
