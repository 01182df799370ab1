"""What the agent says was heard, against a recording of the sound device (a PulseAudio null sink)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import numpy as np
import pytest

from tests.voice_agent.scripted import ScriptedModel
from tests.voice_agent.sinks import pulse
from tts_engine.engine import Engine
from tts_engine.scheduler import Scheduler
from voice_agent.agent import Agent
from voice_agent.sinks.speaker import SpeakerSink

TEXT = "Your parcel has left the warehouse and will be with you tomorrow morning. Please keep the receipt until then."


@pytest.mark.peer
@pytest.mark.skipif(bool(pulse.missing()), reason=pulse.missing() or "there is a PulseAudio")
@pytest.mark.parametrize("rate", [44_100, 48_000])
async def test_what_was_heard_is_what_the_device_has_played(engine: Engine, rate: int, tmp_path: Path) -> None:
    scheduler = Scheduler(lambda: engine)
    await scheduler.ready()
    try:
        with pulse.running(tmp_path, rate) as device:
            async with Agent(ScriptedModel([TEXT]), SpeakerSink(), synthesizer=scheduler) as agent:
                for after_s in (1.3, 2.6):
                    before = len(device.heard())
                    saying = asyncio.create_task(agent.say(TEXT))
                    await asyncio.sleep(after_s)
                    interruption = await agent.interrupt()
                    report = await saying
                    assert TEXT.startswith(report.heard)
                    assert report.heard
                    assert interruption.silence_s < 0.25  # a bound for a busy machine; benchmarks/stopping.py measures it
                    played = np.flatnonzero(np.abs(device.heard()[before:]) > 1e-3)
                    played_s = (played[-1] - played[0]) / device.rate
                    assert report.heard_s == pytest.approx(played_s + 0.05, abs=0.05)  # the opening is silent for 0.05 s
                whole = await agent.say(TEXT)
                assert whole.heard == TEXT
                assert agent.sink.playhead.underruns == 0
    finally:
        scheduler.close()
