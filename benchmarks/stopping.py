"""Time to silence: from the call of ``Agent.interrupt`` until the sink is silent, for each sink; and of ``Agent.hold``.

    python -m benchmarks.stopping [--rounds 20] [--no-speaker]

Memory, file and callback: until ``clear`` has answered, and nothing was written for a second afterwards. Simulated device
and speaker: until the last sample has sounded. A hold: until the playhead stands still. The speaker plays on a PulseAudio
null sink whose monitor is recorded: the last loud sample of the recording is compared with the moment of the call (recorder
latency included, about 20 ms).
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import numpy as np

from benchmarks.measure import Row, median, percentile, report
from tts_engine.scheduler import Scheduler
from voice_agent.agent import Agent
from voice_agent.llm.demo import DemoChat
from voice_agent.pacing import MonotonicClock
from voice_agent.sinks.base import Sink
from voice_agent.sinks.callback import CallbackSink
from voice_agent.sinks.file import FileSink
from voice_agent.sinks.memory import MemorySink


async def words() -> AsyncIterator[str]:
    """An LLM that does not stop."""
    while True:
        yield "And this is one more sentence of a story without an end. "
        await asyncio.sleep(0.01)


async def stop_once(agent: Agent, after_s: float) -> tuple[float, float]:
    """Milliseconds that ``interrupt`` took until the sink was silent, and in all; checks that nothing comes after."""
    speaking = asyncio.create_task(agent.say(words()))
    await asyncio.sleep(after_s)
    began_s = time.monotonic()
    interruption = await agent.interrupt()
    all_ms = 1000 * (time.monotonic() - began_s)
    await speaking
    return 1000 * interruption.silence_s, all_ms


async def measure(name: str, make: Callable[[], Sink], engine: Scheduler, rounds: int) -> Row:
    silence_ms, all_ms = [], []
    for number in range(rounds):
        sink = make()
        async with Agent(DemoChat(), sink, synthesizer=engine) as agent:
            silent, over = await stop_once(agent, 0.8 + 0.05 * (number % 7))
            accepted = sink.playhead.accepted_samples
            await asyncio.sleep(0.2)
            assert sink.playhead.accepted_samples == accepted, "a stale sample"
        silence_ms.append(silent)
        all_ms.append(over)
    return _row(name, silence_ms, all_ms)


async def measure_hold(name: str, make: Callable[[], Sink], engine: Scheduler, rounds: int) -> Row:
    still_ms = []
    for number in range(rounds):
        sink = make()
        async with Agent(DemoChat(), sink, synthesizer=engine) as agent:
            speaking = asyncio.create_task(agent.say(words()))
            await asyncio.sleep(0.8 + 0.05 * (number % 7))
            began_s = time.monotonic()
            await agent.hold()
            still_ms.append(1000 * (time.monotonic() - began_s))
            heard = sink.playhead.heard_samples
            await asyncio.sleep(0.2)
            assert sink.playhead.heard_samples == heard, "it was heard while held"
            await agent.resume()
            await asyncio.sleep(0.2)
            assert sink.playhead.heard_samples > heard, "it did not go on"
            await agent.interrupt()
            await speaking
    return _row(name, still_ms, still_ms)


async def measure_speaker(engine: Scheduler, rounds: int) -> list[Row]:
    from tests.voice_agent.sinks import pulse
    from voice_agent.sinks.speaker import SpeakerSink

    if reason := pulse.missing():
        print(f"no speaker: {reason}", file=sys.stderr)
        return []
    rows = []
    with tempfile.TemporaryDirectory() as folder, pulse.running(Path(folder), 48_000) as server:
        silence_ms, all_ms, recorded_ms = [], [], []
        for number in range(rounds):
            async with Agent(DemoChat(), SpeakerSink(), synthesizer=engine) as agent:
                speaking = asyncio.create_task(agent.say(words()))
                await asyncio.sleep(1.5 + 0.05 * (number % 7))
                called_s = server.recorded_s()
                began_s = time.monotonic()
                interruption = await agent.interrupt()
                all_ms.append(1000 * (time.monotonic() - began_s))
                silence_ms.append(1000 * interruption.silence_s)
                await speaking
                await asyncio.sleep(0.4)
                heard = server.heard()
                loud = np.flatnonzero(np.abs(heard) > 1e-3)
                recorded_ms.append(1000 * (int(loud[-1]) / server.rate - called_s))
        rows.append(_row("speaker (null sink), clear has answered", silence_ms, all_ms))
        rows.append(_row("speaker (null sink), last loud sample recorded", recorded_ms, all_ms))
        rows.append(await measure_hold("speaker (null sink), hold", SpeakerSink, engine, rounds))
    return rows


def _row(name: str, silence_ms: list[float], all_ms: list[float]) -> Row:
    return {
        "sink": name,
        "silent, median ms": round(median(silence_ms), 2),
        "P90 ms": round(percentile(silence_ms, 90), 2),
        "worst ms": round(max(silence_ms), 2),
        "turn over, worst ms": round(max(all_ms), 1),
    }


async def run(rounds: int, speaker: bool) -> None:
    engine = Scheduler()
    await engine.ready()
    try:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "out.wav"
            makes: dict[str, Callable[[], Sink]] = {
                "memory": MemorySink,
                "file": lambda: FileSink(path),
                "callback": lambda: CallbackSink(lambda data: None),
                "simulated device": lambda: MemorySink(clock=MonotonicClock(), latency_s=0.03),
            }
            rows = [await measure(name, make, engine, rounds) for name, make in makes.items()]
            rows.append(await measure_hold("simulated device, hold", makes["simulated device"], engine, rounds))
        if speaker:
            rows += await measure_speaker(engine, rounds)
    finally:
        engine.close()
    report("stopping", rows, rounds=rounds)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--no-speaker", action="store_true")
    options = parser.parse_args()
    asyncio.run(run(options.rounds, not options.no_speaker))
