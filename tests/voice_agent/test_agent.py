"""The agent in virtual time: turns in order, interruptions, tools, fillers, faults. The engine is a fake one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import numpy as np
import pytest

from tests.voice_agent.scripted import Device, ScriptedModel, check_history, until
from tts_engine.admission import Priority
from tts_engine.types import AudioChunk
from voice_agent.agent import Agent, Manner
from voice_agent.captions import Caption, Event, Interruption, SentenceHeard, ToolUsed, TurnBegan, TurnEnded, as_json
from voice_agent.conversation import Conversation
from voice_agent.errors import ConfigError, EngineError, SinkError, SourceError
from voice_agent.fillers import Fillers
from voice_agent.llm.deltas import Break, ToolCall
from voice_agent.sinks.memory import MemorySink
from voice_agent.testing.clock import run_virtual
from voice_agent.testing.fake_engine import FakeSession, FakeSynthesizer
from voice_agent.tools import tool
from voice_agent.turn import Turn, TurnConfig

LONG = "This is the first sentence of a rather long answer. And here comes the second one of them. The third ends it."


def talk(
    scene: Callable[[Agent, Device, list[Event]], Awaitable[None]],
    model: ScriptedModel | None = None,
    *,
    sink: Any = None,
    engine: FakeSynthesizer | None = None,
    **options: Any,
) -> None:
    """Plays a scene in virtual time; afterwards no task is left."""

    async def main() -> None:
        device = sink() if sink is not None else Device()
        events: list[Event] = []
        agent = Agent(model or ScriptedModel([LONG]), device, synthesizer=engine or FakeSynthesizer(), **options)

        async def listen() -> None:
            async for event in agent.events():
                events.append(event)  # noqa: PERF401 — they are looked at while they come

        listening = asyncio.create_task(listen())
        await asyncio.sleep(0)
        async with agent:
            await scene(agent, device, events)
        await listening
        assert [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []

    run_virtual(main())


def said(agent: Agent) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in agent.conversation.messages]


def heard(events: list[Event], epoch: int | None = None) -> str:
    return " ".join(event.text for event in events if isinstance(event, Caption) and epoch in (None, event.epoch))


# ---- interrupting -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after_s", [0.0, 0.005, 0.3, 0.7, 1.5, 3.0, 5.0, 6.0])
def test_an_interruption_keeps_what_was_heard_and_nothing_more_is_played(after_s: float) -> None:
    model = ScriptedModel([0.2, *[part for word in LONG.split(" ") for part in (word + " ", 0.02)]])

    async def scene(agent: Agent, device: Device, events: list[Event]) -> None:
        replying = asyncio.create_task(agent.reply("Go on."))
        await asyncio.sleep(after_s)
        began_s = asyncio.get_running_loop().time()
        interruption = await agent.interrupt()
        assert asyncio.get_running_loop().time() - began_s <= 0.005
        assert interruption.silence_s <= 0.005
        assert model.open == 0
        report = await replying
        assert report.interrupted
        tasks = {task.get_name() for task in asyncio.all_tasks()}
        assert not {name for name in tasks if name.startswith(("sayline", "fake"))}
        writes = len(device.writes)
        await asyncio.sleep(5)
        assert len(device.writes) == writes, "samples of a turn that was interrupted"
        assert LONG.startswith(report.heard)
        assert said(agent)[0] == ("user", "Go on.")
        assert said(agent)[1:] == ([("assistant", report.heard)] if report.heard else [])
        assert heard(events) == report.heard
        assert interruption.heard == report.heard
        assert report.heard_s == pytest.approx(max(0.0, device.playhead.heard_s))
        assert report.unheard_s + report.heard_s >= report.audio_s - 1e-6

    talk(scene, model)


def test_cancelling_the_reply_is_an_interruption_too() -> None:
    async def scene(agent: Agent, device: Device, events: list[Event]) -> None:
        replying = asyncio.create_task(agent.reply("Go on."))
        await asyncio.sleep(2)
        replying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await replying
        writes = len(device.writes)
        await asyncio.sleep(5)
        assert len(device.writes) == writes
        assert said(agent)[1][1] == heard(events) != ""
        report = await agent.say("Still here.")
        assert report.heard == "Still here."

    talk(scene)


def test_a_source_that_does_not_want_to_close_delays_no_silence() -> None:
    async def stubborn() -> AsyncIterator[str]:
        try:
            yield LONG
            await asyncio.sleep(100)
        finally:
            await asyncio.sleep(3)

    async def scene(agent: Agent, device: Device, events: list[Event]) -> None:
        saying = asyncio.create_task(agent.say(stubborn()))
        await asyncio.sleep(2)
        interruption = await agent.interrupt()
        assert interruption.silence_s <= 0.005
        assert (await saying).interrupted

    talk(scene)


def test_interrupting_silence_is_harmless() -> None:
    async def scene(agent: Agent, device: Device, events: list[Event]) -> None:
        assert (await agent.interrupt()).heard == ""
        assert (await agent.say("Hello.")).heard == "Hello."
        assert (await agent.interrupt()).unheard_s == 0.0

    talk(scene)


def test_whoever_clears_the_sink_ends_the_turn() -> None:
    async def scene(agent: Agent, device: Device, events: list[Event]) -> None:
        replying = asyncio.create_task(agent.reply("Go on."))
        await asyncio.sleep(2)
        await device.clear()
        report = await asyncio.wait_for(replying, 0.5)
        assert report.interrupted
        assert said(agent)[1][1] == report.heard == heard(events)

    talk(scene)


def test_a_word_counts_when_half_of_it_was_heard() -> None:
    """The engine's word is 0.3 s long; the device is 0.05 s late."""

    async def scene(agent: Agent, device: Device, events: list[Event]) -> None:
        for after_s, expected in ((0.14, ""), (0.16, "Hello")):
            saying = asyncio.create_task(agent.say("Hello there, my friend."))
            await until(lambda: device.playhead.accepted_samples > device.playhead.heard_samples)
            start_s = device.playhead.heard_s
            await until(lambda s=start_s: device.playhead.heard_s > s)
            await asyncio.sleep(start_s + after_s - device.playhead.heard_s)
            await agent.interrupt()
            assert (await saying).heard == expected

    talk(scene)


# ---- turns --------------------------------------------------------------------------------------------------------


def test_turns_wait_for_one_another_and_can_be_replaced() -> None:
    async def scene(agent: Agent, device: Device, events: list[Event]) -> None:
        first = agent.append("One two three.")
        second = agent.append("Four five six.")
        assert (await second).heard == "Four five six."
        assert first.done()
        assert heard(events) == "One two three. Four five six."
        third, fourth = agent.append(LONG), agent.append("Never said.")
        await asyncio.sleep(2)
        report = await agent.replace("Something else.")
        assert report.heard == "Something else."
        assert (await third).interrupted
        dropped = await fourth
        assert dropped.interrupted
        assert dropped.unspoken == ("Never said.",)
        assert "Never" not in heard(events)
        fifth = agent.append("Not said either.")
        await agent.interrupt()
        assert (await fifth).unspoken == ("Not said either.",)

    talk(scene)


def test_places_in_the_line_count_from_the_call() -> None:
    async def scene(agent: Agent, device: Device, events: list[Event]) -> None:
        first = agent.append("One.")
        second = agent.append("Two.")
        third = agent.append("Three.")
        second.cancel()  # before it ran
        await agent.say("Four.")
        assert first.done()
        assert third.done()
        fifth, sixth, seventh = (agent.append(text) for text in ("Five.", "Six.", "Seven."))
        await asyncio.sleep(0.1)
        sixth.cancel()  # while it waits
        await asyncio.sleep(0.01)
        assert not seventh.done()
        await seventh
        assert fifth.done()
        assert heard(events) == "One. Three. Four. Five. Seven."

    talk(scene)


def test_what_is_queued_is_heard_before_the_agent_closes() -> None:
    async def main() -> None:
        sink = Device()
        async with Agent(ScriptedModel(["x"]), sink, synthesizer=FakeSynthesizer()) as agent:
            last = agent.append("One two three.")
        assert last.result().heard == "One two three."
        assert sink.playhead.pending_s == 0

    run_virtual(main())


def test_each_turn_has_its_own_manner() -> None:
    async def scene(agent: Agent, device: Device, events: list[Event]) -> None:
        slow = await agent.say("The same words.", Manner(speed=0.5, voice="heart", language="en"))
        fast = await agent.say("The same words.", Manner(speed=2.0))
        assert slow.audio_s > 2 * fast.audio_s
        assert slow.sentences[0].voice == "heart"
        with pytest.raises(ConfigError, match="speed"):
            await agent.say("No.", Manner(speed=9))

    talk(scene)


def test_a_confirmation_is_kept_whole() -> None:
    async def scene(agent: Agent, device: Device, events: list[Event]) -> None:
        saying = asyncio.create_task(agent.say(LONG, Manner(keep="whole")))
        await asyncio.sleep(1)
        await agent.interrupt()
        assert (await saying).heard != LONG
        assert said(agent) == [("assistant", LONG)]

    talk(scene)


def test_events_are_in_order_and_json() -> None:
    async def scene(agent: Agent, device: Device, events: list[Event]) -> None:
        await agent.reply("Go on.")
        await asyncio.sleep(0)
        assert isinstance(events[0], TurnBegan)
        assert isinstance(events[-1], TurnEnded)
        captions = [event for event in events if isinstance(event, Caption)]
        assert [caption.begins_s for caption in captions] == sorted(caption.begins_s for caption in captions)
        assert [LONG[caption.start : caption.end] for caption in captions] == [c.text.rstrip(".") for c in captions]
        ends = [event for event in events if isinstance(event, SentenceHeard)]
        assert [end.heard_s for end in ends] == [times.heard_s for times in events[-1].report.sentences]
        assert all('"event"' in as_json(event) for event in events)

    talk(scene)


def test_events_come_from_the_call_on() -> None:
    async def main() -> None:
        async with Agent(ScriptedModel(["Hi."]), MemorySink(), synthesizer=FakeSynthesizer()) as agent:
            everything = agent.events()
            agent.events()  # nobody listens to these
            await agent.reply("Hello.")
            late = agent.events()
            first = agent.events()
            await agent.say("Bye.")
            assert isinstance(await anext(first), TurnBegan)
            await first.aclose()
        kinds = [[type(event).__name__ async for event in events] for events in (everything, late, agent.events())]
        assert kinds[0] == ["TurnBegan", "Caption", "SentenceHeard", "TurnEnded"] * 2
        assert kinds[1:] == [kinds[0][4:], []]

    run_virtual(main())


def test_captions_come_when_the_ear_hears_them() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        sink = Device(latency_s=0.3)
        async with Agent(ScriptedModel(["x"]), sink, synthesizer=FakeSynthesizer(cost=0)) as agent:
            late: list[float] = []

            async def listen() -> None:
                async for event in agent.events():
                    if isinstance(event, Caption):
                        middle_s = (event.begins_s + event.ends_s) / 2
                        late.append(loop.time() - began_s - middle_s)

            listening = asyncio.create_task(listen())
            await asyncio.sleep(0)
            began_s = loop.time()
            await agent.say("Hello there, how are you?")
            # the first sample is given at once and heard 0.3 s later; "Hello" lasts 0.3 s
        await listening
        assert len(late) == 5
        assert max(late) <= 0.02
        assert min(late) >= -0.001

    run_virtual(main())


# ---- back-pressure ------------------------------------------------------------------------------------------------


def test_the_engine_is_ten_seconds_ahead_and_the_reading_a_bound_of_characters() -> None:
    read = 0

    async def tokens() -> AsyncIterator[str]:
        nonlocal read
        for number in range(1000):
            read += 1
            yield f"This is sentence number {number} of a thousand sentences. "

    async def scene(agent: Agent, device: Device, events: list[Event]) -> None:
        saying = asyncio.create_task(agent.say(tokens()))
        most_s, turn = 0.0, None
        for _ in range(200):
            await asyncio.sleep(0.1)
            turn = agent.turn
            assert turn is not None
            most_s = max(most_s, turn.unplayed_s())
        assert 7 < most_s <= 10.5
        spoken_chars = device.playhead.heard_s * 15
        assert read * 50 < spoken_chars + 10.5 * 15 + 4000 + 8 * 200
        await agent.interrupt()
        report = await saying
        assert 7 < report.unheard_s <= 10.5

    talk(scene)


def test_a_tool_call_behind_much_text_is_seen_at_once() -> None:
    ran_at_s: list[float] = []

    @tool
    async def look_up() -> str:
        """Looks something up."""
        ran_at_s.append(asyncio.get_running_loop().time())
        return "found"

    model = ScriptedModel(["A long preface of many words. " * 60, ToolCall("look_up", {}, "c1")], ["Done."])

    async def scene(agent: Agent, device: Device, events: list[Event]) -> None:
        await agent.reply("Look it up.")
        assert ran_at_s[0] < 1

    talk(scene, model, tools=[look_up])


def test_a_hundred_thousand_tokens_at_once() -> None:
    model = ScriptedModel(["word " if number % 12 else "end. " for number in range(100_000)])

    async def scene(agent: Agent, device: Device, events: list[Event]) -> None:
        replying = asyncio.create_task(agent.reply("Go."))
        await asyncio.sleep(20)
        await agent.interrupt()
        report = await replying
        assert len(report.text) < 10_000
        assert 15 < report.heard_s <= 20
        assert (await agent.say("Still here.")).heard == "Still here."

    talk(scene, model)


# ---- tools --------------------------------------------------------------------------------------------------------


def order_tool(seconds: float = 0.0) -> Callable[..., Any]:
    @tool
    async def order_status(number: int) -> dict[str, Any]:
        """Looks up an order."""
        await asyncio.sleep(seconds)
        return {"number": number, "status": "shipped"}

    return order_status


CALL = ToolCall("order_status", {"number": 4711}, "call_1")


def test_tools_run_and_the_answer_goes_on() -> None:
    model = ScriptedModel(["Let me look.", Break("tool_call"), CALL], ["Order 4711 has shipped."])

    async def scene(agent: Agent, device: Device, events: list[Event]) -> None:
        report = await agent.reply("Where is 4711?")
        assert report.heard == report.text == "Let me look.Order 4711 has shipped."
        assert [message["role"] for message in agent.conversation.messages] == [
            "user",
            "assistant",
            "tool",
            "assistant",
        ]
        check_history(agent.conversation.messages)
        assert agent.conversation.messages[2]["content"] == '{"number": 4711, "status": "shipped"}'
        assert model.asked[1] == agent.conversation.messages[:3]
        assert model.tools == [["order_status"], ["order_status"]]
        assert [event.result for event in events if isinstance(event, ToolUsed)] == [
            None,
            '{"number": 4711, "status": "shipped"}',
        ]
        assert "number" not in heard(events)

    talk(scene, model, tools=[order_tool()])


def test_what_stands_before_a_tool_is_spoken_while_it_runs() -> None:
    model = ScriptedModel(["Let me look", Break("tool_call"), 1.0, CALL], ["It has shipped."])

    async def scene(agent: Agent, device: Device, events: list[Event]) -> None:
        replying = asyncio.create_task(agent.reply("Where is 4711?"))
        await asyncio.sleep(2)
        assert heard(events) == "Let me look"
        await replying

    talk(scene, model, tools=[order_tool(3.0)], fillers=Fillers(english=()))


@pytest.mark.parametrize("after_s", [0.05, 0.5, 0.95, 1.5, 2.5, 4.0, 4.5])
def test_an_interruption_at_any_point_of_a_tool_call_leaves_a_valid_history(after_s: float) -> None:
    model = ScriptedModel(
        ["Let me look.", Break("tool_call"), 1.0, CALL, ToolCall("order_status", {"number": 1}, None)],
        ["It has shipped."],
    )

    async def scene(agent: Agent, device: Device, events: list[Event]) -> None:
        replying = asyncio.create_task(agent.reply("Where is 4711?"))
        await asyncio.sleep(after_s)
        await agent.interrupt()
        await replying
        check_history(agent.conversation.messages)
        calls = [message for message in agent.conversation.messages if message.get("tool_calls")]
        assert bool(calls) == (after_s > 1.0)
        results = [message["content"] for message in agent.conversation.messages if message["role"] == "tool"]
        if after_s == 2.5:
            assert all("interrupted" in result for result in results)
        await agent.reply("And now?")
        check_history(agent.conversation.messages)

    talk(scene, model, tools=[order_tool(2.0)], fillers=Fillers(english=()))


def test_errors_of_tools_are_told_to_the_model() -> None:
    @tool
    def broken() -> str:
        """Breaks."""
        raise ValueError("no database")

    calls = [
        ToolCall("broken", {}, "a"),
        ToolCall("missing", {}, "b"),
        ToolCall("broken", None, "c", raw="{oops"),
        ToolCall("broken", {"x": 1}, "d"),
    ]

    async def main() -> None:
        model = ScriptedModel(calls, ["Sorry, that did not work."])
        async with Agent(model, MemorySink(), synthesizer=FakeSynthesizer(cost=0), tools=[broken]) as agent:
            await agent.reply("Do it.")
            results = [message["content"] for message in agent.conversation.messages if message["role"] == "tool"]
            assert "ValueError: no database" in results[0]
            assert "there is no tool 'missing'" in results[1]
            assert "no JSON object" in results[2]
            assert "no argument 'x'" in results[3]
            check_history(agent.conversation.messages)

    asyncio.run(main())


def test_calls_that_no_server_would_take_back_do_not_spoil_the_history() -> None:
    strange = [ToolCall("functions.order status", {}, None), ToolCall("", {}, None), ToolCall("x" * 100, None, None, raw="[]")]
    model = ScriptedModel(strange, strange, ["Sorry."], strange, ["Sorry."])

    async def scene(agent: Agent, device: Device, events: list[Event]) -> None:
        await agent.reply("Go.")
        await agent.reply("Go on.")
        assert len(model.asked) == 5
        for asked in (*model.asked, agent.conversation.messages):
            check_history(asked)

    talk(scene, model, tools=[order_tool()])


def test_a_model_that_calls_tools_for_ever_is_made_to_answer() -> None:
    model = ScriptedModel([ToolCall("order_status", {"number": 1}, None)])

    async def scene(agent: Agent, device: Device, events: list[Event]) -> None:
        await agent.reply("Loop.")
        assert len(model.asked) == 8
        assert model.tools[-1] == []
        check_history(agent.conversation.messages)

    talk(scene, model, tools=[order_tool()])


def test_fillers_come_late_and_give_way() -> None:
    filler = "One moment please, I am looking that up for you right now in our system."
    model = ScriptedModel(["Let me look.", CALL], ["Order has shipped."])

    async def scene(agent: Agent, device: Device, events: list[Event]) -> None:
        report = await agent.reply("Where is 4711?")
        assert report.fillers == (filler,)
        assert report.text == "Let me look.Order has shipped."
        whole_s = 0.06 * len(filler)
        ended_s = report.sentences[-1].heard_s
        assert ended_s is not None
        assert ended_s < 3.0 + 0.5 * whole_s + report.sentences[-1].audio_s
        # in the middle of a filler the sound ends between two words
        assert [message["content"] for message in agent.conversation.messages if message["role"] == "assistant"] == [
            "Let me look.",
            "Order has shipped.",
        ]

    talk(scene, model, tools=[order_tool(3.0)], fillers=Fillers(after_s=1.5, english=(filler,)))


def test_a_quick_tool_needs_no_filler() -> None:
    model = ScriptedModel([CALL], ["Order has shipped."])

    async def scene(agent: Agent, device: Device, events: list[Event]) -> None:
        assert (await agent.reply("Where is 4711?")).fillers == ()

    talk(scene, model, tools=[order_tool(1.0)])


def test_fillers_speak_the_users_language() -> None:
    model = ScriptedModel([CALL], ["已经发货。"])

    async def scene(agent: Agent, device: Device, events: list[Event]) -> None:
        assert (await agent.reply("订单到哪了？")).fillers == ("请稍等。", "我还在查。")

    talk(scene, model, tools=[order_tool(10.0)])


# ---- faults -------------------------------------------------------------------------------------------------------


def test_a_model_that_stalls_half_a_minute_is_waited_for() -> None:
    model = ScriptedModel(["The first half is here, ", 30.0, "and here is the second."])

    async def scene(agent: Agent, device: Device, events: list[Event]) -> None:
        report = await agent.reply("Go.")
        assert report.heard == report.text
        assert device.playhead.underruns == 0

    talk(scene, model)


def test_a_model_that_stalls_too_long_fails_and_the_conversation_goes_on() -> None:
    model = ScriptedModel(["The first half is here, ", 30.0, "never"], ["Now it works."])

    async def scene(agent: Agent, device: Device, events: list[Event]) -> None:
        with pytest.raises(SourceError, match="nothing for 20 s") as caught:
            await agent.reply("Go.")
        assert caught.value.retryable
        assert model.open == 0
        assert said(agent)[-1] == ("assistant", "The first half is here, ")
        assert (await agent.reply("Again.")).heard == "Now it works."

    talk(scene, model, config=TurnConfig(source_stall_s=20))


@pytest.mark.parametrize("error", [ConnectionResetError("the server went away"), SourceError("bad"), ValueError("x")])
def test_an_error_in_mid_word_is_reported_after_what_arrived_was_heard(error: Exception) -> None:
    model = ScriptedModel(["Your order has ship", error], ["Now it works."])

    async def scene(agent: Agent, device: Device, events: list[Event]) -> None:
        with pytest.raises(SourceError):
            await agent.reply("Go.")
        await asyncio.sleep(0)
        assert heard(events) == "Your order has ship"
        assert said(agent)[-1] == ("assistant", "Your order has ship")
        assert isinstance(events[-1], TurnEnded)
        assert events[-1].error
        assert (await agent.reply("Again.")).heard == "Now it works."

    talk(scene, model)


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_sentence_that_the_engine_cannot_say_is_reported(which: int) -> None:
    engine = FakeSynthesizer(fails=lambda utterance: utterance.index == which)

    async def scene(agent: Agent, device: Device, events: list[Event]) -> None:
        with pytest.raises(EngineError):
            await agent.reply("Go.")
        assert agent.turn is not None
        report = agent.turn.report()
        assert report.unspoken
        assert all(text in LONG for text in report.unspoken)
        last = report.sentences[-1].index == which
        assert (report.heard == LONG) != last
        engine.fails = lambda utterance: False
        assert (await agent.say("It works.")).heard == "It works."

    talk(scene, engine=engine)


class Torn(FakeSession):
    """Breaks its contract: what it raises is no error of ours, and it would raise it for ever."""

    async def __anext__(self) -> AudioChunk:
        if self.taken == 5:
            raise RuntimeError("a defect")
        self.taken += 1
        return await super().__anext__()

    taken = 0


class TornEngine(FakeSynthesizer):
    def open(self, priority: Priority = "interactive") -> FakeSession:
        return Torn(self)


def test_what_was_made_by_an_engine_that_breaks_is_heard_and_counts() -> None:
    async def scene(agent: Agent, device: Device, events: list[Event]) -> None:
        with pytest.raises(EngineError, match="RuntimeError: a defect"):
            await agent.reply("Go.")
        assert len(device.samples) == 5 * 4800
        assert said(agent)[-1] == ("assistant", "This is the first")
        await asyncio.sleep(0)
        assert isinstance(events[-1], TurnEnded)
        assert "a defect" in str(events[-1].error)

    talk(scene, engine=TornEngine())


class Broken(Device):
    """Fails, blocks or raises something of its own after three seconds of audio."""

    how = "raises"
    healed = False

    async def _put(self, frames: np.ndarray) -> None:
        if sum(count for _, count, _ in self.writes) > 72_000 and not self.healed:
            if self.how == "raises":
                raise SinkError("the cable is out")
            if self.how == "other":
                raise OSError("the cable is out")
            if self.how == "blocks":
                await asyncio.sleep(10_000)
        await super()._put(frames)


@pytest.mark.parametrize(
    ("how", "message"), [("raises", "cable"), ("other", "OSError: the cable"), ("blocks", "nothing for 20")]
)
def test_a_sink_that_fails_ends_the_turn_with_what_was_heard(how: str, message: str) -> None:
    async def main() -> None:
        sink = Broken()
        sink.how = how
        async with Agent(ScriptedModel([LONG]), sink, synthesizer=FakeSynthesizer()) as agent:
            with pytest.raises(SinkError, match=message):
                await agent.reply("Go.")
            assert agent.turn is not None
            report = agent.turn.report()
            assert LONG.startswith(report.heard)
            assert 0 < len(report.heard) < 60
            assert report.unheard_s > 1
            assert said(agent)[-1] == ("assistant", report.heard)
            sink.healed = True
            sink._failure = None
            assert (await agent.say("It plays again.")).heard == "It plays again."
        assert len(asyncio.all_tasks()) == 1

    run_virtual(main())


def test_a_blocked_sink_can_be_interrupted() -> None:
    async def main() -> None:
        sink = Broken()
        sink.how = "blocks"
        async with Agent(ScriptedModel([LONG]), sink, synthesizer=FakeSynthesizer()) as agent:
            replying = asyncio.create_task(agent.reply("Go."))
            await asyncio.sleep(5)
            interruption = await agent.interrupt()
            assert interruption.silence_s < 0.01
            assert (await replying).interrupted
            sink.healed = True
            assert (await agent.say("It plays again.")).heard == "It plays again."

    run_virtual(main())


def test_a_speaker_that_was_lost_is_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Broken] = []

    def open_broken(spec: str) -> Broken:
        opened.append(Broken())
        opened[-1].healed = len(opened) > 1
        return opened[-1]

    monkeypatch.setattr("voice_agent.agent.open_sink", open_broken)

    async def main() -> None:
        async with Agent(ScriptedModel([LONG]), "speaker", synthesizer=FakeSynthesizer()) as agent:
            with pytest.raises(SinkError):
                await agent.reply("Go.")
            assert (await agent.reply("Again.")).heard == LONG
        assert len(opened) == 2

    run_virtual(main())


def test_an_interruption_event_is_emitted() -> None:
    async def scene(agent: Agent, device: Device, events: list[Event]) -> None:
        replying = asyncio.create_task(agent.reply("Go."))
        await asyncio.sleep(2)
        await agent.interrupt()
        await replying
        await asyncio.sleep(0)
        assert any(isinstance(event, Interruption) and event.epoch == 1 for event in events)
        assert agent.epoch == 1

    talk(scene)


def test_a_conversation_that_is_handed_in_goes_on() -> None:
    conversation = Conversation([{"role": "system", "content": "Be brief."}])
    model = ScriptedModel(["Yes."])

    async def scene(agent: Agent, device: Device, events: list[Event]) -> None:
        await agent.reply("Are you there?")
        assert model.asked[0][0]["content"] == "Be brief."

    talk(scene, model, conversation=conversation)


def test_bounds_are_checked() -> None:
    with pytest.raises(ValueError, match="ahead_s"):
        TurnConfig(ahead_s=0)


def test_a_turn_that_is_not_played_tells_what_was_made() -> None:
    async def main() -> None:
        turn = Turn(FakeSynthesizer())
        async for _ in turn.chunks("Hello there."):
            pass
        report = turn.report()
        assert report.heard == ""
        assert report.unheard_s == pytest.approx(report.audio_s)

    run_virtual(main())
