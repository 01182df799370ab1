"""Where nobody waits for the audio the engine serves listeners first."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from voice_agent.api import speak
from voice_agent.pacing import MonotonicClock
from voice_agent.sinks.base import Sink
from voice_agent.sinks.callback import CallbackSink
from voice_agent.sinks.file import FileSink
from voice_agent.sinks.memory import MemorySink
from voice_agent.sinks.speaker import SpeakerSink
from voice_agent.sinks.tee import TeeSink
from voice_agent.testing.fake_engine import FakeSynthesizer


async def test_a_stored_reply_is_bulk_work(tmp_path: Path) -> None:
    engine = FakeSynthesizer()
    for sink in (tmp_path / "out.wav", MemorySink(), MemorySink(clock=MonotonicClock())):
        await speak("Yes.", sink, synthesizer=engine)
    assert engine.priorities == ["bulk", "bulk", "interactive"]


@pytest.mark.parametrize(
    ("sink", "waited_for"),
    [
        (SpeakerSink(), True),
        (CallbackSink(lambda chunk: None), True),
        (FileSink("out.wav"), False),
        (FileSink("-"), True),
        (FileSink(io.BytesIO()), True),
        (FileSink(os.devnull, encoding="pcm"), True),
        (MemorySink(), False),
        (TeeSink([SpeakerSink(), FileSink("out.wav")]), True),
        (TeeSink([FileSink("out.wav"), MemorySink()]), False),
    ],
)
def test_who_is_waited_for(sink: Sink, waited_for: bool) -> None:
    assert sink.waited_for is waited_for
