"""``speak`` and ``say`` with events; every Protocol in one place."""

from __future__ import annotations

import subprocess
import sys

import pytest

from voice_agent import protocols
from voice_agent.api import speak
from voice_agent.captions import Caption, SentenceHeard, TurnBegan, TurnEnded
from voice_agent.errors import SourceError
from voice_agent.llm.demo import DemoChat
from voice_agent.pacing import MonotonicClock
from voice_agent.sinks import MemorySink
from voice_agent.testing.clock import LoopClock, run_virtual
from voice_agent.testing.fake_engine import FakeSynthesizer

TEXT = "Good morning. 您好！"


def test_events_come_as_they_are_heard():
    async def main():
        sink = MemorySink(clock=LoopClock(), latency_s=0.05)
        events = []

        def take(event):
            if isinstance(event, Caption):
                assert sink.playhead.heard_s >= (event.begins_s + event.ends_s) / 2 - event.begins_s
            events.append(event)

        report = await speak(TEXT, sink, synthesizer=FakeSynthesizer(), on_event=take)
        return events, report

    events, report = run_virtual(main())
    assert events[0] == TurnBegan(0)
    assert events[-1] == TurnEnded(0, report)
    captions = [event for event in events if isinstance(event, Caption)]
    assert [TEXT[caption.start : caption.end] for caption in captions] == ["Good", "morning", "您", "好"]
    assert [event.text for event in events if isinstance(event, SentenceHeard)] == ["Good morning.", "您好！"]
    assert report.heard == TEXT


def test_a_listener_that_fails_does_not_stop_the_speech():
    calls = []

    def fail(event):
        calls.append(event)
        if isinstance(event, Caption):
            raise LookupError("no screen")

    report = run_virtual(speak(TEXT, MemorySink(clock=LoopClock()), synthesizer=FakeSynthesizer(), on_event=fail))
    assert report.heard == TEXT
    assert report.warnings == ("on_event failed and was not called again: LookupError: no screen",)
    assert len(calls) == 2


def test_the_last_event_tells_what_went_wrong():
    events = []

    async def broken():
        yield "Good morning. "
        raise ConnectionResetError("gone")

    with pytest.raises(SourceError):
        run_virtual(speak(broken(), MemorySink(), synthesizer=FakeSynthesizer(), on_event=events.append))
    assert isinstance(events[-1], TurnEnded)
    assert "gone" in (events[-1].error or "")
    assert events[-1].report.heard == "Good morning. "


def test_every_protocol_is_in_one_place():
    assert all(getattr(protocols, name).__doc__ for name in protocols.__all__)
    assert isinstance(MemorySink(), protocols.Sink)
    model: protocols.ChatModel = DemoChat()
    clock: protocols.Clock = MonotonicClock()
    assert model
    assert clock
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = protocols.Nothing


def test_who_only_speaks_loads_no_ears():
    code = (
        "import sys, voice_agent.api, voice_agent.agent\n"
        "assert not [name for name in sys.modules if name.startswith('voice_agent.ears')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
