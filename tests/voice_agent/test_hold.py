"""Ducking, holding and going on: nothing is lost, nothing is pulled meanwhile, and what was heard is known exactly."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from tests.voice_agent.scripted import ScriptedModel, check_history, until
from voice_agent.agent import Agent
from voice_agent.captions import Ducked, Held, Resumed
from voice_agent.fillers import Fillers
from voice_agent.llm.deltas import Break, ToolCall
from voice_agent.sinks.memory import MemorySink
from voice_agent.testing.clock import LoopClock, run_virtual
from voice_agent.testing.fake_engine import FakeSynthesizer
from voice_agent.tools import tool
from voice_agent.turn import TurnConfig

TEXT = "One two three four five six seven eight nine ten eleven twelve. "


def device(**options) -> MemorySink:
    return MemorySink(clock=LoopClock(), latency_s=0.05, **options)


def test_a_hold_goes_on_at_the_same_sample():
    async def heard(hold: bool):
        ear = device()
        async with Agent(ScriptedModel([TEXT * 2]), ear, synthesizer=FakeSynthesizer()) as agent:
            replying = asyncio.create_task(agent.reply("Count."))
            await asyncio.sleep(2.0)
            if hold:
                await agent.hold()
                head = ear.playhead
                await asyncio.sleep(60.0)  # longer than a sink may do nothing
                assert ear.playhead == head
                assert not replying.done()
                await agent.resume()
            report = await replying
        assert report.heard == TEXT * 2
        assert report.unheard_s == pytest.approx(0.0, abs=0.001)
        return ear.samples

    whole, held = run_virtual(heard(False)), run_virtual(heard(True))
    assert len(whole) == len(held)
    different = np.flatnonzero(whole != held)
    assert len(different)
    assert different[-1] - different[0] <= 0.02 * 24_000  # two fades


def test_a_turn_that_has_a_sink_stall_limit_may_be_held_for_longer():
    async def main():
        config = TurnConfig(sink_stall_s=1.0)
        async with Agent(ScriptedModel([TEXT]), device(), synthesizer=FakeSynthesizer(), config=config) as agent:
            replying = asyncio.create_task(agent.reply("Count."))
            await asyncio.sleep(2.0)
            await agent.hold()
            await asyncio.sleep(30.0)
            await agent.resume()
            return await replying

    assert run_virtual(main()).heard == TEXT


def test_an_interruption_after_a_hold_knows_what_was_heard():
    async def main(hold_s: float | None):
        async with Agent(ScriptedModel([TEXT]), device(), synthesizer=FakeSynthesizer()) as agent:
            replying = asyncio.create_task(agent.reply("Count."))
            await asyncio.sleep(3.0)
            if hold_s is not None:
                await agent.hold()
                await asyncio.sleep(hold_s)
            interruption = await agent.interrupt()
            assert (await replying).heard == interruption.heard
            assert agent.conversation.messages[-1]["content"] == interruption.heard
            again = await agent.reply("Again.")  # neither held nor quiet any more
            assert again.heard == TEXT
            return interruption.heard

    at_once = run_virtual(main(None))
    assert TEXT.startswith(at_once)
    assert run_virtual(main(0.0)) == run_virtual(main(25.0)) == at_once


def test_held_the_model_is_not_read():
    pulled = 0

    async def endless():
        nonlocal pulled
        while True:
            pulled += 1
            yield "word. "
            await asyncio.sleep(0.1)

    async def main():
        async with Agent(ScriptedModel([]), device(), synthesizer=FakeSynthesizer()) as agent:
            saying = asyncio.create_task(agent.say(endless()))
            await asyncio.sleep(2.0)
            await agent.hold()
            before = pulled
            await asyncio.sleep(20.0)
            assert pulled <= before + 1  # the one that was under way
            await agent.resume()
            await asyncio.sleep(1.0)
            assert pulled > before + 5
            await agent.interrupt()
            await saying
        assert len(asyncio.all_tasks()) == 1

    run_virtual(main())


def test_a_hold_before_the_first_sound_and_between_turns():
    async def main():
        ear = device()
        async with Agent(ScriptedModel([1.0, TEXT]), ear, synthesizer=FakeSynthesizer()) as agent:
            await agent.hold()
            replying = asyncio.create_task(agent.reply("Count."))
            await asyncio.sleep(10.0)
            assert ear.playhead.heard_samples == 0
            await agent.resume()
            assert (await replying).heard == TEXT
            await agent.hold()
            interruption = await agent.interrupt()
            assert interruption.heard == ""
            assert (await agent.reply("Count.")).heard == TEXT

    run_virtual(main())


def test_ducking_is_undone_by_resume_and_by_an_interruption():
    async def main():
        ear = device()
        async with Agent(ScriptedModel([TEXT]), ear, synthesizer=FakeSynthesizer()) as agent:
            ear.set_gain(-3.0)
            replying = asyncio.create_task(agent.reply("Count."))
            await asyncio.sleep(1.0)
            agent.duck()
            assert ear.gain_db == -15.0
            agent.duck(-6.0)
            assert ear.gain_db == -9.0
            await agent.resume()
            assert ear.gain_db == -3.0
            agent.duck()
            await agent.hold()
            await agent.interrupt()
            assert ear.gain_db == -3.0
            assert (await replying).interrupted

    run_virtual(main())


def test_leaving_the_block_ends_a_hold():
    async def main():
        async with Agent(ScriptedModel([TEXT]), device(), synthesizer=FakeSynthesizer()) as agent:
            saying = agent.append(TEXT)
            await asyncio.sleep(1.0)
            await agent.hold()
        assert (await saying).heard == TEXT

    run_virtual(main())


def test_events_tell_of_it():
    async def main():
        async with Agent(ScriptedModel([TEXT]), device(), synthesizer=FakeSynthesizer()) as agent:

            async def listen():
                return [event async for event in agent.events() if isinstance(event, Ducked | Held | Resumed)]

            listening = asyncio.create_task(listen())
            replying = asyncio.create_task(agent.reply("Count."))
            await until(lambda: agent.sink.playhead.heard_samples)
            agent.duck()
            await agent.hold()
            await agent.resume()
            await agent.resume()
            await replying
        return await listening

    ducked, held, resumed = run_virtual(main())
    assert ducked == Ducked(0, -12.0)
    assert 0 <= held.silence_s <= 0.06
    assert resumed == Resumed(0)


@tool
async def look(number: int) -> str:
    """Looks."""
    await asyncio.sleep(2.0)
    return "found"


@pytest.mark.parametrize("ends_with", ["resume", "interrupt"])
@pytest.mark.parametrize("after_s", [0.0, 0.5, 1.2, 2.0, 3.3, 4.5, 6.0])
def test_a_hold_at_any_point_of_a_tool_call(after_s, ends_with):
    async def main():
        scripts = (["Let me look. ", Break("tool_call"), 1.0, ToolCall("look", {"number": 1}, "a")], ["It is there."])
        fillers = Fillers(after_s=0.5, english=("One moment please.",))
        agent = Agent(ScriptedModel(*scripts), device(), synthesizer=FakeSynthesizer(), tools=[look], fillers=fillers)
        async with agent:
            replying = asyncio.create_task(agent.reply("Where is it?"))
            await asyncio.sleep(after_s)
            await agent.hold()
            head = agent.sink.playhead
            await asyncio.sleep(7.0)
            assert agent.sink.playhead.heard_samples == head.heard_samples
            await (agent.resume() if ends_with == "resume" else agent.interrupt())
            report = await replying
            check_history(agent.conversation.messages)
            if ends_with == "resume":
                assert report.heard == "Let me look. It is there."
            else:
                assert report.text.startswith(report.heard)
                assert report.interrupted or report.heard == report.text
        assert len(asyncio.all_tasks()) == 1

    run_virtual(main())
