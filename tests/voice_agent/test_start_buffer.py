"""The start is held back as long as gaps would be heard otherwise, and no longer. Simulated in virtual time."""

from __future__ import annotations

import asyncio
import json
import random
from collections import deque
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from tts_engine.types import AudioChunk, AudioFormat, Utterance
from voice_agent.agent import Agent
from voice_agent.llm.demo import DemoChat
from voice_agent.sinks.memory import MemorySink
from voice_agent.start_buffer import MARGIN, REMEMBERED, StartBuffer, hold_start
from voice_agent.testing.clock import LoopClock, run_virtual
from voice_agent.testing.fake_engine import FakeSynthesizer

Trace = Sequence[tuple[float, float]]
"""One utterance: when each packet came and how long it sounds, in ms."""

RECORDED: list[Trace] = json.loads((Path(__file__).parents[1] / "data" / "packet_arrivals.json").read_text())
"""24 listeners at once on two cores that were busy with other work."""
PACKETS_MS = (100, 200, 300, 500, 800, 1200, 1600)


def made(factor: float, jitter_ms: float, dice: random.Random) -> Trace:
    """An engine that needs ``factor`` of the time that its audio sounds, and is now and then held up."""
    at, trace = 20.0, []
    for duration in PACKETS_MS:
        at += factor * duration + jitter_ms * dice.random() ** 4
        trace.append((at, float(duration)))
    return trace


def need_ms(trace: Trace) -> float:
    """The least hold without a gap."""
    audio = need = 0.0
    for at, duration in trace:
        need = max(need, at - trace[0][0] - audio)
        audio += duration
    return need


def play(traces: Sequence[Trace], buffer: StartBuffer) -> tuple[list[float], int]:
    """The hold of each utterance in ms, and how many had a gap."""
    holds, gaps = [], 0
    for trace in traces:
        buffer.reset()
        for i, (at, duration) in enumerate(trace):
            buffer.feed(at / 1000, duration / 1000, last=i == len(trace) - 1)
            if i == 0:
                holds.append(1000 * buffer.hold_s)
        gaps += need_ms(trace) > holds[-1] + 1e-6
    return holds, gaps


def test_recorded_arrivals_play_without_a_gap_and_almost_at_once() -> None:
    buffer = StartBuffer()
    _, learning = play(RECORDED, buffer)
    holds, gaps = play(RECORDED[: REMEMBERED - 1], buffer)
    assert learning <= 2
    assert gaps == 0
    assert max(holds) <= MARGIN * max(map(need_ms, RECORDED)) + 1e-6


@pytest.mark.parametrize("factor", [0.02, 0.5, 0.95, 1.2])
@pytest.mark.parametrize("jitter_ms", [0, 50, 400])
def test_no_gap_once_the_jitter_is_known_and_the_wait_is_of_its_size(factor: float, jitter_ms: float) -> None:
    dice = random.Random(1)
    traces = [made(factor, jitter_ms, dice) for _ in range(300)]
    buffer = StartBuffer(most_s=10)
    play(traces[:REMEMBERED], buffer)
    holds, gaps = play(traces[REMEMBERED:], buffer)
    assert gaps <= 0.02 * len(holds)
    assert max(holds) <= MARGIN * max(map(need_ms, traces)) + 1e-6


def test_an_engine_in_time_is_never_waited_for() -> None:
    holds, gaps = play([made(0.02, 0, random.Random(1)) for _ in range(50)], StartBuffer())
    assert (max(holds), gaps) == (0, 0)


def test_a_bad_time_is_forgotten() -> None:
    dice = random.Random(2)
    buffer = StartBuffer()
    play([made(0.5, 2000, dice) for _ in range(5)], buffer)
    assert buffer.hold_s > 0.2
    holds, _ = play([made(0.02, 0, dice) for _ in range(REMEMBERED + 1)], buffer)
    assert holds[-1] == 0


def test_there_is_a_limit() -> None:
    buffer = StartBuffer(most_s=0.5)
    play([made(3.0, 0, random.Random(1))], buffer)
    assert buffer.hold_s == 0.5


def test_what_was_cut_is_not_counted() -> None:
    buffer = StartBuffer()
    buffer.feed(0.0, 0.1)
    buffer.feed(9.0, 0.1)
    buffer.reset()
    assert buffer.hold_s == 0


def test_what_half_of_all_needed_is_held_from_the_first_utterance_on() -> None:
    common: deque[float] = deque(maxlen=64)
    for _ in range(3):
        play([made(0.02, 0, random.Random(1))], StartBuffer(common=common))
    play([[(0, 100), (300, 100)]], StartBuffer(common=common))  # one bad moment of somebody else
    assert StartBuffer(common=common).hold_s == 0
    for _ in range(4):
        play([[(0, 100), (300, 100)]], StartBuffer(common=common))
    assert StartBuffer(common=common).hold_s == pytest.approx(MARGIN * 0.2)


def test_what_is_played_faster_runs_dry_sooner() -> None:
    async def packets() -> AsyncIterator[AudioChunk]:
        for i in range(4):
            await asyncio.sleep(0.15)
            samples = np.zeros(4800, np.float32)
            yield AudioChunk(samples, AudioFormat(), Utterance("Hello."), last=i == 3, made_s=LoopClock().now_s())

    async def hold_s(tempo: float) -> float:
        buffer = StartBuffer()
        async for _ in hold_start(packets(), buffer, tempo):
            pass
        return buffer.hold_s

    assert run_virtual(hold_s(1.0)) == 0
    assert run_virtual(hold_s(2.0)) == pytest.approx(MARGIN * 3 * 0.05)


def test_the_stage_holds_the_first_packet_only() -> None:
    async def packets() -> AsyncIterator[AudioChunk]:
        for i in range(4):
            samples = np.zeros(2400, np.float32)
            yield AudioChunk(samples, AudioFormat(), Utterance("Hello."), last=i == 3, made_s=LoopClock().now_s())

    async def main() -> list[float]:
        buffer = StartBuffer()
        play([[(0, 100), (300, 100)]], buffer)
        return [LoopClock().now_s() async for _ in hold_start(packets(), buffer)]

    assert run_virtual(main()) == pytest.approx([0.25] * 4)


def test_a_wait_between_utterances_is_no_gap_and_audio_in_hand_covers_a_late_packet() -> None:
    buffer = StartBuffer()
    for at_s, duration_s, last in [(0, 0.5, True), (3.0, 0.5, True), (3.0, 0.1, False), (3.9, 0.1, True)]:
        buffer.feed(at_s, duration_s, last=last)
    assert buffer.hold_s == pytest.approx(MARGIN * 0.3)  # of 0.9 s, 0.6 s were in hand


def test_an_agent_on_a_slow_engine_learns_to_start_later_and_then_plays_without_a_gap() -> None:
    async def main() -> list[tuple[float, int]]:
        engine = FakeSynthesizer(packet_s=0.2, cost=1.3)
        sink = MemorySink(clock=LoopClock())
        seen = []
        async with Agent(DemoChat(), sink, synthesizer=engine) as agent:
            for _ in range(3):
                asked_s, before = LoopClock().now_s(), sink.playhead.heard_s
                first_s: list[float] = []

                def heard(_: object, begins_s: float, first_s: list[float] = first_s) -> None:
                    first_s.append(begins_s)

                sink.monitor = heard
                await agent.say("This is one sentence, and it is not a short one.")
                seen.append((first_s[0] - asked_s, LoopClock().now_s() - first_s[0] - (sink.playhead.heard_s - before)))
        assert engine.priorities == ["interactive"] * 3
        return seen

    (first_s, gaps_s), *_, (learned_s, left_s) = run_virtual(main())
    assert gaps_s > 0.6
    assert left_s < gaps_s / 2  # between utterances, where nobody minds
    assert first_s + 0.3 < learned_s < first_s + 2.1


def test_the_stage_waits_between_utterances_and_never_inside() -> None:
    """Packets of 0.2 s that take 0.26 s each, four an utterance."""

    async def packets() -> AsyncIterator[AudioChunk]:
        for i in range(12):
            made_s = 0.26 * (i + 1)
            await asyncio.sleep(max(0.0, made_s - LoopClock().now_s()))
            samples = np.zeros(4800, np.float32)
            yield AudioChunk(samples, AudioFormat(), Utterance("Hello.", index=i // 4), last=i % 4 == 3, made_s=made_s)

    async def main() -> list[float]:
        buffer = StartBuffer()
        play([[(0, 200), (260, 200), (520, 200), (780, 200)]], buffer)  # the engine is known
        late_s, sounds_until_s = [], 0.0
        async for _ in hold_start(packets(), buffer):
            late_s.append(max(0.0, LoopClock().now_s() - sounds_until_s))
            sounds_until_s = max(sounds_until_s, LoopClock().now_s()) + 0.2
        return late_s

    late_s = run_virtual(main())
    assert sum(late_s[i] for i in range(12) if i % 4) == pytest.approx(0)
    assert max(late_s[4], late_s[8]) > 0.1
