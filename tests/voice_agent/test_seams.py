"""Continuous audio is never faded: what a sink plays is sample for sample what the engine made, whatever the packets."""

from __future__ import annotations

import numpy as np
import pytest

from tts_engine.engine import Engine, EngineConfig
from tts_engine.scheduler import Scheduler
from voice_agent.api import speak, stream
from voice_agent.sinks.memory import MemorySink
from voice_agent.testing.clock import LoopClock, run_virtual
from voice_agent.testing.fake_engine import FakeSynthesizer

TEXT = "The first sentence is here. And this is the second one, which is longer. Bye."


async def made(synthesizer: FakeSynthesizer | Scheduler) -> np.ndarray:
    return np.concatenate([chunk.samples async for chunk in stream(TEXT, synthesizer=synthesizer)])


@pytest.mark.parametrize("packet_s", [0.03, 0.2, 1.7])
@pytest.mark.parametrize("plays", [False, True])
def test_packets_are_joined_as_they_are(packet_s: float, plays: bool) -> None:
    async def main() -> None:
        sink = MemorySink(clock=LoopClock()) if plays else MemorySink()
        await speak(TEXT, sink, synthesizer=FakeSynthesizer(packet_s=packet_s))
        np.testing.assert_array_equal(sink.samples, await made(FakeSynthesizer(packet_s=packet_s)))

    run_virtual(main())


async def test_the_engines_own_packets_too() -> None:
    """With the least steps there are, and the sentences begun side by side."""
    scheduler = Scheduler(lambda: Engine.load(config=EngineConfig(precision="float32", chunk_frames=(3, 5))))
    try:
        sink = MemorySink()
        await speak(TEXT, sink, synthesizer=scheduler)
        np.testing.assert_allclose(sink.samples, await made(scheduler), atol=1e-4)
    finally:
        scheduler.close()
