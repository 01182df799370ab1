"""Sinks from words on a command line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tts_engine.errors import InputError
from voice_agent.sinks import CallbackSink, FileSink, MemorySink, SpeakerSink, open_sink
from voice_agent.sinks.base import Sink
from voice_agent.testing.sink_conformance import chunk_of, tone


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        ("out.wav", FileSink),
        (Path("a b/输出.WAV"), FileSink),
        ("C:\\speech\\out.wav", FileSink),
        ("out.pcm", FileSink),
        ("wav:/dev/null", FileSink),
        ("pcm:out", FileSink),
        ("-", FileSink),
        ("pcm:-", FileSink),
        ("speaker", SpeakerSink),
        ("speaker:2", SpeakerSink),
        ("speaker:USB Audio", SpeakerSink),
        ("null", MemorySink),
    ],
    ids=str,
)
def test_what_each_spec_gives(spec, kind):
    sink = open_sink(spec)
    assert type(sink) is kind
    assert isinstance(sink, Sink)


@pytest.mark.parametrize("spec", ["", "out.mp3", "out", "speaker:", "wav:", "ws://host", "speakers", "null:", "a\0.wav"])
def test_others_list_what_is_allowed(spec):
    with pytest.raises(InputError, match=r"allowed are a file name ending in \.wav or \.pcm.*speaker.*null"):
        open_sink(spec)


async def test_muted_takes_as_long_but_opens_nothing(monkeypatch):
    monkeypatch.setitem(sys.modules, "sounddevice", None)  # an import would raise
    async with open_sink("speaker", muted=True) as sink:
        await sink.write(chunk_of(tone(0.2)))
        assert sink.playhead.pending_s > 0.15
    assert sink.playhead.heard_s == pytest.approx(0.2)
    assert type(open_sink("a.wav", muted=True)) is FileSink


async def test_a_callback_that_fails_is_named():
    def refuse(data: bytes) -> None:
        raise ConnectionError("line is down")

    sink = CallbackSink(refuse)
    with pytest.raises(Exception, match=r"the function that takes the audio failed: ConnectionError: line is down"):
        await sink.write(chunk_of(tone(0.1)))
    await sink.close()
