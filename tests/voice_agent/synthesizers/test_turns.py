"""Turns through other engines: what failed is reported, interruptions leave nothing behind."""

from __future__ import annotations

import asyncio
import random
import sys
from contextlib import aclosing

import numpy as np
import pytest

from tts_engine.types import AudioFormat
from voice_agent.api import speak
from voice_agent.errors import EngineError
from voice_agent.sinks import MemorySink
from voice_agent.synthesizers import CommandSynthesizer, FunctionSynthesizer
from voice_agent.turn import Turn

TEXT = "The first sentence is fine. The second sentence is broken! The third sentence is fine again. And so is the last one."


def hum(text):
    return np.full(50 * len(text), 0.1, np.float32)


async def test_what_failed_is_reported_unspoken_and_the_rest_is_spoken():
    def fails_once(text):
        if "broken" in text:
            raise OSError("no such voice")
        return hum(text)

    turn = Turn(FunctionSynthesizer(fails_once))
    spoken = []

    async def take():
        async with aclosing(turn.chunks(TEXT)) as chunks:
            async for chunk in chunks:
                spoken.append(chunk.utterance.text)  # noqa: PERF401 - what came before the error counts

    with pytest.raises(EngineError, match="no such voice"):
        await take()
    assert "The first sentence is fine." in " ".join(spoken)
    assert "The second sentence is broken!" in " ".join(turn.report().unspoken)
    assert "And so is the last one." in " ".join(spoken)


async def test_a_command_that_dies_is_reported_too():
    dies = CommandSynthesizer([sys.executable, "-c", "import sys; sys.exit('no voice')"])
    turn = Turn(dies)
    with pytest.raises(EngineError, match="exit code 1; it said: no voice"):
        async with aclosing(turn.chunks("One sentence only.")) as chunks:
            [chunk async for chunk in chunks]
    assert turn.report().unspoken == ("One sentence only.",)


async def test_speak_takes_any_synthesizer():
    sink = MemorySink()
    report = await speak(TEXT, sink, synthesizer=FunctionSynthesizer(hum, format=AudioFormat(16_000)))
    await sink.close()
    assert len(sink.samples) / sink.format.sample_rate == pytest.approx(report.audio_s, abs=0.001)


async def test_a_hundred_interrupted_turns_leave_nothing():
    choice = random.Random(0)

    async def slowly(text):
        for _ in range(5):
            await asyncio.sleep(0.0005)
            yield hum(text)

    synthesizer = FunctionSynthesizer(slowly)
    for _ in range(100):
        taking = choice.randrange(12)
        async with aclosing(Turn(synthesizer).chunks(TEXT)) as chunks:
            async for _ in chunks:
                taking -= 1
                if taking < 0:
                    break
        await asyncio.sleep(choice.random() * 0.002)
    await asyncio.sleep(0.02)
    assert asyncio.all_tasks() == {asyncio.current_task()}
