"""Everything that speaks or listens at the moment, and what becomes of it: figures, a line of the log, a span."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tts_engine.planning import AUDIBLE
from tts_engine.types import AudioChunk
from voice_agent.errors import SaylineError
from voice_agent.metrics import Timeline
from voice_agent.server.config import ServerConfig
from voice_agent.server.logs import request_log
from voice_agent.server.metrics import Latency, Metrics
from voice_agent.server.refusals import RefusedError
from voice_agent.server.tracing import Tracer

__all__ = ["Stream", "Streams"]

_LATE_S = 0.005
_LEAST_AUDIO_S = 0.5
"""A shorter answer says nothing about the real-time factor."""
_REMEMBERED = 64
"""Utterances of all streams."""


class Stream:
    """One request or session that speaks. ``ending`` is set when the server shuts down: finish what is said, then end.

    Of each turn the stream is told when its text begins (``text``), what goes out (``sent``) and when it is over
    (``turn_over``). ``outcome``: how it ended, if not by an error: "ok", or "left" when the client went away.
    """

    def __init__(self, host: Streams, kind: str, guest: str, voice: str, uid: str) -> None:
        self.uid = uid
        self.kind = kind
        self.guest = guest
        self.voice = voice
        self.ending = host.ending
        self.needs_s = host.needs_s
        self.outcome = "ok"
        self.began_s = time.monotonic()
        self.text_chars = 0
        self.said: list[str] = []
        self._kept_chars = 0  # of them
        self.audio_s = 0.0
        self.heard_s = 0.0
        self.waited_s = 0.0
        self.underruns = 0
        self.barge_ins = 0
        self.first_sound_s: float | None = None
        """Of the first turn."""
        self._host = host
        self._asked_s: float | None = None  # when the turn's request came
        self._text_s: float | None = None  # when its first text came
        self._sounded = self._audible = False
        self._sounds_until_s = 0.0

    def asked(self) -> None:
        """A turn was asked for, though there is no text of it yet: end to end counts from here."""
        if self._asked_s is None:
            self._asked_s = time.monotonic()

    def text(self, chars: int, text: str = "") -> None:
        """So many characters to speak have come in; ``text``: which, for logs that want it."""
        self.text_chars += chars
        if text and self._kept_chars < self._host.logged_chars:
            self.said.append(text[: self._host.logged_chars - self._kept_chars])
            self._kept_chars += len(self.said[-1])
        if self._text_s is None:
            self._text_s = time.monotonic()

    def complete(self, ago_s: float) -> None:
        """What is spoken first of a turn was there so long ago: the first sound counts from then, not from the first token."""
        if not self._sounded:
            self._text_s = time.monotonic() - ago_s

    def sent(self, chunk: AudioChunk, tempo: float = 1.0) -> None:
        """A packet goes out now, stretched to ``1 / tempo`` of its length."""
        if not len(chunk.samples):
            return
        now_s = time.monotonic()
        if not self._sounded:
            self._sounded = True
            self._tell("first_sound", self._text_s, now_s)
            if self.first_sound_s is None and self._text_s is not None:
                self.first_sound_s = now_s - self._text_s
        elif chunk.start_sample and now_s > self._sounds_until_s + _LATE_S:
            self.underran(1)
        if not self._audible and float(np.abs(chunk.samples).max()) > AUDIBLE:
            self._audible = True
            self._tell("first_audible", self._text_s, now_s)
            self._tell("end_to_end", self._asked_s if self._asked_s is not None else self._text_s, now_s)
        duration_s = chunk.duration_s / tempo
        self._sounds_until_s = max(self._sounds_until_s, now_s) + duration_s
        self.audio_s += duration_s

    def blocked(self, seconds: float) -> None:
        """So long the client took nothing: what it has lasts that much longer."""
        self._sounds_until_s += seconds

    def waited(self, timeline: Timeline, chunk: AudioChunk, seconds: float) -> None:
        """A packet of the turn has come that was waited for so long; before there was its text, nobody waited."""
        index = chunk.utterance.index
        if 0 <= index < len(timeline.sentences):
            ready_s = timeline.elapsed_s() - (timeline.sentences[index].closed_s or 0.0)
            self.waited_s += min(seconds, ready_s)

    def underran(self, count: int) -> None:
        """The listener ran dry."""
        self.underruns += count
        self._host.metrics.underran(self.kind, count)

    def interrupted(self, silence_s: float) -> None:
        """The turn was interrupted, and nothing of it went out any more after ``silence_s``."""
        self.barge_ins += 1
        self._host.metrics.interrupted(self.kind, silence_s)
        self.turn_over()

    def heard(self, seconds: float) -> None:
        """So much more was heard by the client."""
        self.heard_s += seconds

    def turn_over(self) -> None:
        """The next text begins another turn."""
        self._asked_s = self._text_s = None
        self._sounded = self._audible = False

    def row(self) -> dict[str, Any]:
        """What it is at, for people."""
        return {
            "uid": self.uid,
            "kind": self.kind,
            "guest": self.guest,
            "voice": self.voice,
            "age_s": round(time.monotonic() - self.began_s, 3),
            "first_sound_s": None if self.first_sound_s is None else round(self.first_sound_s, 4),
            "text_chars": self.text_chars,
            "audio_s": round(self.audio_s, 3),
            "heard_s": round(self.heard_s, 3),
            "underruns": self.underruns,
        }

    def _tell(self, name: Latency, since_s: float | None, now_s: float) -> None:
        if since_s is None:
            return
        self._host.metrics.latency(name, self.kind, now_s - since_s)
        if name == "first_sound":
            self._host.answered(now_s - since_s)


class Streams:
    """The live streams: ``with streams.open("speech", guest.name, voice) as stream``."""

    def __init__(
        self,
        config: ServerConfig,
        metrics: Metrics,
        tracer: Tracer,
        *,
        answered: Callable[[float], None] = lambda first_sound_s: None,
        waiting: Callable[[], int] = lambda: 0,
    ) -> None:
        """``answered`` gets each turn's time to the first sound, ``waiting`` tells how many wait for a row."""
        self.live: dict[str, Stream] = {}
        self.ending = asyncio.Event()
        self.needs_s: deque[float] = deque(maxlen=_REMEMBERED)
        """By how much the last utterances should have begun later to be without a gap, see ``StartBuffer``."""
        self._most = config.limits.streams
        self.logged_chars = config.limits.text_chars if config.logs.text else 0
        self.metrics = metrics
        self.answered = answered
        self._tracer = tracer
        self._waiting = waiting

    @contextmanager
    def open(self, kind: str, guest: str, voice: str, uid: str | None = None) -> Generator[Stream, None, None]:
        """A stream, live while the block runs; ``uid``: of the request that it answers.

        Raises RefusedError (503) when there are too many.
        """
        if len(self.live) >= self._most:
            raise RefusedError(503, f"{len(self.live)} streams are live; try again later", code="overloaded", retry_after_s=1.0)
        stream = Stream(self, kind, guest, voice, uid or uuid.uuid4().hex)
        queued = self._waiting()
        self.live[stream.uid] = stream
        try:
            with self._tracer.span(f"sayline.{kind}", stream):
                yield stream
        except BaseException as error:
            if stream.outcome == "ok":
                stream.outcome = _outcome(error)
            raise
        finally:
            del self.live[stream.uid]
            self._end(stream, queued)

    def _end(self, stream: Stream, queued: int) -> None:
        factor = stream.waited_s / stream.audio_s if stream.waited_s and stream.audio_s >= _LEAST_AUDIO_S else None
        self.metrics.ended(
            stream.kind,
            stream.outcome,
            chars=stream.text_chars,
            audio_s=stream.audio_s,
            heard_s=stream.heard_s,
            real_time_factor=factor,
        )
        request_log(stream.row(), stream.outcome, queued, "".join(stream.said) if self.logged_chars else None)


def _outcome(error: BaseException) -> str:
    if isinstance(error, RefusedError):
        return error.code or "refused"
    if isinstance(error, SaylineError):
        return "failed"
    return "left" if isinstance(error, asyncio.CancelledError | GeneratorExit) else "crashed"
