"""Thousands of seeded dialogues in virtual time: users who cough or barge in, stalls, failures; what must hold after each."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tests.voice_agent.scripted import check_history
from voice_agent.agent import Agent
from voice_agent.captions import Caption, Event, Interruption, TurnEnded
from voice_agent.errors import SaylineError, SinkError
from voice_agent.fillers import Fillers
from voice_agent.llm.deltas import Break, Delta, End, Message, TextDelta, ToolCall
from voice_agent.llm.demo import tokens_of
from voice_agent.report import Report
from voice_agent.sinks.memory import MemorySink
from voice_agent.testing.clock import LoopClock, run_virtual
from voice_agent.testing.fake_engine import FakeSynthesizer
from voice_agent.tools import tool
from voice_agent.turn import TurnConfig

DELAYS_S = [
    delay_ms / 1000
    for path in sorted((Path(__file__).parents[1] / "cases" / "llm_streams").glob("*.yaml"))
    for delay_ms in yaml.safe_load(path.read_text(encoding="utf-8"))["delay_ms"]
]
"""Pauses between tokens as they were recorded from real models."""
SENTENCES = [
    "Sure.",
    "Let me look that up for you.",
    "Your order number 4711 left the warehouse yesterday!",
    "**Good** news: 🎉 it is free.",
    "It costs $5.50, i.e. less than before.",
    "- one thing\n- and another\n",
    "好的，我帮您查一下。",
    "订单已经发货，预计明天送到。",
    "```python\nprint('never spoken')\n```\n",
    "Is there anything else, or shall I go on?",
    "See [the page](https://a.b/c) for more.",
    "<think>not for the ear</think>",
    "我们有3种颜色：红、蓝和绿。",
    "Wait [break_300] for it.",
]
DIALOGUES = 2000


@dataclass
class Wobbly:
    """A model that answers at random: text at recorded speed, tool calls, stalls, faults."""

    rng: random.Random
    said: list[str] = field(default_factory=list)
    """What it has said in each request, as far as it was read."""

    async def reply(self, messages: Sequence[Message], *, tools: Sequence[Mapping[str, Any]] = ()) -> AsyncIterator[Delta]:
        check_history(messages)
        rng = self.rng
        self.said.append("")
        for sentence in rng.choices(SENTENCES, k=rng.randint(0, 4)):
            for token in tokens_of(f"{sentence} "):
                await asyncio.sleep(rng.choice(DELAYS_S))
                self.said[-1] += token
                yield TextDelta(token)
        fate = rng.random()
        if fate < 0.05:
            await asyncio.sleep(30)
        elif fate < 0.1:
            raise ConnectionResetError("gone")
        elif fate < 0.3 and tools:
            yield Break("tool_call")
            await asyncio.sleep(rng.random())
            for number in range(rng.randint(1, 2)):
                yield ToolCall("look", {"seconds": rng.choice([0.0, 0.5, 4.0])}, rng.choice([None, f"id{number}"]))
        yield End("stop")


@tool
async def look(seconds: float) -> str:
    """Looks."""
    await asyncio.sleep(seconds)
    if seconds == 0.5:
        raise LookupError("nothing there")
    return "found"


class Ear(MemorySink):
    """A device whose sound is all there is to hear; may fail once."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(clock=LoopClock(), latency_s=rng.choice([0.0, 0.02, 0.2]), keep=False)
        self.fails_at = rng.randint(0, 400_000) if rng.random() < 0.05 else None
        self.offered = 0
        self.last_write_s = 0.0

    async def _put(self, frames: np.ndarray) -> None:
        self.offered += len(frames)
        self.last_write_s = self._clock.now_s()
        if self.fails_at is not None and self.offered > self.fails_at:
            raise SinkError("the device is gone")
        await super()._put(frames)


def check_report(report: Report, captions: list[Caption]) -> None:
    """What must hold for each turn, however it ended."""
    assert report.text.startswith(report.heard)
    if not report.interrupted and not report.unspoken:
        assert report.heard == report.text
    assert report.heard_s >= 0
    assert report.unheard_s >= 0
    words = [report.text[caption.start : caption.end] for caption in captions]
    assert all(caption.end <= len(report.heard) for caption in captions), (report.heard, words)
    assert [caption.start for caption in captions] == sorted(caption.start for caption in captions)
    for times in report.sentences:  # every sentence: heard, or reported as failed, or cut
        heard = times.heard_s is not None
        assert heard or report.interrupted or times.text in report.unspoken
        stages = [times.token_s, times.closed_s, times.planned_s, times.first_sample_s, times.heard_s]
        reached = [at_s for at_s in stages if at_s is not None]
        assert reached == sorted(reached)


async def make_a_noise(agent: Agent, ear: Ear, rng: random.Random) -> None:
    """A user is heard: the agent is ducked, mostly held too, and goes on, unless what was said becomes an interruption."""
    agent.duck()
    await asyncio.sleep(rng.choice([0.0, 0.1, 0.2]))
    if rng.random() < 0.8:
        await agent.hold()
        held = ear.playhead
        await asyncio.sleep(rng.choice([0.0, 0.3, rng.random() * 3, 30.0]))
        head = ear.playhead
        if head.dropped_samples == held.dropped_samples:
            assert head.heard_samples == held.heard_samples, "a held agent was heard"
    if rng.random() < 0.7:
        await agent.resume()
    else:
        await agent.interrupt()
    assert ear.gain_db == 0.0


async def dialogue(seed: int) -> dict[str, int]:
    rng = random.Random(seed)
    model, ear = Wobbly(rng), Ear(rng)
    engine = FakeSynthesizer(cost=rng.choice([0.0, 0.1, 0.9, 1.3]), fails=lambda utterance: rng.random() < 0.02)
    config = TurnConfig(source_stall_s=20, sink_stall_s=20)
    agent = Agent(
        model, ear, synthesizer=engine, config=config, tools=[look],
        fillers=Fillers(after_s=0.5, every_s=2.0, english=("One moment please.",), chinese=("请稍等。",)),
    )  # fmt: skip
    heard = agent.events()
    counts = {"turns": 0, "noises": 0, "interrupted": 0, "failed": 0}

    async def turn(number: int) -> None:
        counts["turns"] += 1
        try:
            report = await (agent.say("Hello there. 您好。") if rng.random() < 0.2 else agent.reply(f"Question {number}."))
            counts["interrupted"] += report.interrupted
        except SaylineError:
            counts["failed"] += 1

    async with agent:
        for number in range(rng.randint(1, 3)):
            tasks = [asyncio.create_task(turn(number)) for _ in range(rng.choice([1, 1, 1, 2]))]
            for _ in range(rng.choice([0, 0, 1, 2])):
                await asyncio.sleep(rng.choice([0.0, rng.random(), 5 * rng.random()]))
                await make_a_noise(agent, ear, rng)
                counts["noises"] += 1
            if rng.random() < 0.6:
                await asyncio.sleep(rng.choice([0, 0.01, rng.random(), 10 * rng.random()]))
                if rng.random() < 0.2:
                    tasks[0].cancel()
                    await asyncio.wait({tasks[0]})
                else:
                    began_s = asyncio.get_running_loop().time()
                    interruption = await agent.interrupt()
                    assert interruption.silence_s <= 0.005
                    assert ear.playhead.pending_s == 0
                    await asyncio.wait(tasks)
                    await asyncio.sleep(5)
                    assert ear.last_write_s <= began_s, "stale audio"
            await asyncio.gather(*tasks, return_exceptions=True)
            if ear._failure is not None:
                ear.fails_at = ear._failure = None
            check_history(agent.conversation.messages)
    assert len(asyncio.all_tasks()) == 1
    events: list[Event] = [event async for event in heard]
    captions: list[Caption] = []
    for event in events:
        if isinstance(event, Caption):
            captions.append(event)
        elif isinstance(event, TurnEnded):
            check_report(event.report, captions)
            captions = []
    kept = [m["content"] for m in agent.conversation.messages if m["role"] == "assistant" and m["content"]]
    everything = ["Hello there. 您好。", *model.said]
    assert all(any(said.startswith(text) for said in everything) for text in kept), "history is no prefix of what was said"
    assert sum(isinstance(event, Interruption) for event in events) <= agent.epoch
    return counts


@pytest.mark.parametrize("part", range(10))
def test_random_dialogues(part: int) -> None:
    total = {"turns": 0, "noises": 0, "interrupted": 0, "failed": 0}
    share = DIALOGUES // 10
    for seed in range(part * share, part * share + share):
        try:
            counts = run_virtual(dialogue(seed))
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        total = {key: total[key] + counts[key] for key in total}
    assert total["turns"] > share
    assert total["noises"] > share
    assert total["interrupted"] > share // 10
    assert total["failed"] > share // 50


def test_a_dialogue_is_the_same_every_time() -> None:
    assert run_virtual(dialogue(42)) == run_virtual(dialogue(42))
