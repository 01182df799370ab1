"""Makes a sink from a word on a command line."""

from __future__ import annotations

import os

from voice_agent.errors import InputError
from voice_agent.pacing import MonotonicClock
from voice_agent.sinks.base import Sink
from voice_agent.sinks.file import FileSink
from voice_agent.sinks.memory import MemorySink
from voice_agent.sinks.speaker import SpeakerSink

__all__ = ["open_sink"]

_ALLOWED = """a file name ending in .wav or .pcm, wav:PATH or pcm:PATH, - (WAV to the standard output), \
pcm:- (raw PCM to it), speaker, speaker:DEVICE (name or number), or null"""


def open_sink(spec: str | os.PathLike[str], *, muted: bool = False) -> Sink:
    """The sink that ``spec`` names, not yet started: nothing is opened before its ``start``.

    Specs: "out.wav", "out.pcm", "wav:PATH", "pcm:PATH", "-", "pcm:-", "speaker", "speaker:DEVICE", "null". ``muted``
    puts a sink in the speaker's place that takes as long as playing but opens no device; other sinks are not
    affected. Raises InputError, which lists what is allowed.
    """
    text = os.fspath(spec)
    kind, colon, rest = text.partition(":")
    if kind == "speaker" and bool(rest) == bool(colon):
        if muted:
            return MemorySink(keep=False, clock=MonotonicClock())
        return SpeakerSink(int(rest) if rest.isdecimal() else rest or None)
    if text == "null":
        return MemorySink(keep=False)
    if colon and rest:
        if kind == "wav":
            return FileSink(rest, encoding="wav")
        if kind == "pcm":
            return FileSink(rest, encoding="pcm")
    try:
        return FileSink(text)
    except InputError as error:
        raise InputError(f"{error} (allowed are {_ALLOWED})") from None
