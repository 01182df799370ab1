"""Everything that speaks or listens at the moment, and what becomes of it."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Generator
from contextlib import contextmanager

from tts_engine.types import AudioChunk
from voice_agent.server.config import ServerConfig
from voice_agent.server.refusals import RefusedError

__all__ = ["Stream", "Streams"]


class Stream:
    """One request or session that speaks. ``ending`` is set when the server shuts down: finish what is said, then end."""

    def __init__(self, kind: str, guest: str, voice: str, ending: asyncio.Event) -> None:
        self.uid = uuid.uuid4().hex
        self.kind = kind
        self.guest = guest
        self.voice = voice
        self.ending = ending
        self.began_s = time.monotonic()
        self.text_chars = 0
        self.audio_s = 0.0
        self.heard_s = 0.0

    def text(self, chars: int) -> None:
        """So many characters to speak have come in."""
        self.text_chars += chars

    def sent(self, chunk: AudioChunk) -> None:
        """A packet went out."""
        self.audio_s += chunk.duration_s


class Streams:
    """The live streams: ``with streams.open("speech", guest.name, voice) as stream``."""

    def __init__(self, config: ServerConfig) -> None:
        self.live: dict[str, Stream] = {}
        self.ending = asyncio.Event()
        self._most = config.limits.streams

    @contextmanager
    def open(self, kind: str, guest: str, voice: str) -> Generator[Stream, None, None]:
        """A stream, live while the block runs. Raises RefusedError (503) when there are too many."""
        if len(self.live) >= self._most:
            raise RefusedError(503, f"{len(self.live)} streams are live; try again later", code="overloaded", retry_after_s=1.0)
        stream = Stream(kind, guest, voice, self.ending)
        self.live[stream.uid] = stream
        try:
            yield stream
        finally:
            del self.live[stream.uid]
