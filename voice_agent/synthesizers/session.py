"""A line of utterances through any speech engine that turns one text into sound: the half that such engines share."""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

import numpy as np

from tts_engine.admission import Priority
from tts_engine.types import AudioChunk, AudioFormat, Samples, Utterance
from voice_agent.errors import EngineError, SaylineError
from voice_agent.synthesizers.word_estimate import WordEstimate

_AHEAD_S = 10.0
_QUEUED_UTTERANCES = 4


@dataclass(frozen=True, slots=True)
class Sound:
    """A stretch of an engine's audio. ``samples``: [samples] float32, or [samples, channels], in ``format``."""

    samples: Samples
    format: AudioFormat


class QueueSynthesizer(ABC):
    """A ``voice_agent.protocols.Synthesizer`` made of one method, ``sounds``.

    Planned breaks become silence before and after, ``volume`` a gain. Tags inside a sentence and ``pitch`` are not
    honoured. Word times are an estimate: even, by the length of the words (see ``word_estimate``).
    """

    async def ready(self) -> None:  # noqa: B027 - most engines need no preparation
        """Return when it can speak; raise why it cannot."""

    @abstractmethod
    def sounds(self, utterance: Utterance) -> AsyncGenerator[Sound, None]:
        """The sound of ``utterance.text``, as it comes. Closing the generator stops the engine.

        ``text`` is valid Unicode without NUL and has something to say. Raises EngineError.
        """

    def open(self, priority: Priority = "interactive") -> QueueSession:
        """A new line through the engine, for the running event loop. All lines run side by side, whatever their priority."""
        return QueueSession(self.sounds)


class QueueSession:
    """Speaks one utterance after the other; the next is made while the packets of the one before wait to be taken.

    At most ten seconds are made ahead of the taker. A failed utterance raises from ``__anext__`` in its place, with its
    text in ``unspoken``; iterating on gives the utterances after it. All methods belong to one event loop.
    """

    def __init__(self, sounds: Callable[[Utterance], AsyncGenerator[Sound, None]]) -> None:
        self._sounds = sounds
        self._changed = asyncio.Event()
        self._waiting: deque[Utterance] = deque()
        self._made: deque[AudioChunk | SaylineError] = deque()
        self._buffered_s = 0.0
        self._ended = False
        self._cancelled = False
        self._worker: asyncio.Task[None] | None = None

    @property
    def buffered_s(self) -> float:
        """Seconds of audio that are made but not taken."""
        return self._buffered_s

    async def put(self, utterance: Utterance) -> None:
        """Hands an utterance in; waits while too many are waiting. Does nothing after ``cancel``."""
        await self._until(lambda: len(self._waiting) < _QUEUED_UTTERANCES or self._cancelled)
        if self._cancelled:
            return
        self._waiting.append(utterance)
        self._changed.set()
        if self._worker is None:
            self._worker = asyncio.create_task(self._work(), name="sayline-synthesizer")
            self._worker.add_done_callback(lambda _: self._changed.set())

    def end(self) -> None:
        """No more utterances will come: iteration stops after the last packet."""
        self._ended = True
        self._changed.set()

    def cancel(self) -> None:
        """Drops everything, and stops what is being made: its request is closed, its process killed."""
        self._cancelled = self._ended = True
        self._waiting.clear()
        self._made.clear()
        self._buffered_s = 0.0
        if self._worker is not None:
            self._worker.cancel()
        self._changed.set()

    def __aiter__(self) -> AsyncIterator[AudioChunk]:
        return self

    async def __anext__(self) -> AudioChunk:
        await self._until(lambda: self._made or self._finished)
        if not self._made:
            raise StopAsyncIteration
        item = self._made.popleft()
        self._changed.set()
        if isinstance(item, SaylineError):
            raise item
        self._buffered_s -= item.duration_s
        return item

    @property
    def _finished(self) -> bool:
        idle = self._worker is None or self._worker.done()
        return self._cancelled or (self._ended and idle)

    async def _until(self, condition: Callable[[], object]) -> None:
        while not condition():
            self._changed.clear()
            await self._changed.wait()

    async def _work(self) -> None:
        while True:
            await self._until(lambda: self._waiting or self._ended)
            if not self._waiting:
                return
            utterance = self._waiting.popleft()
            self._changed.set()
            try:
                async with aclosing(_chunks(utterance, self._sounds)) as chunks:
                    async for chunk in chunks:
                        self._give(chunk)
                        await self._until(lambda: self._buffered_s < _AHEAD_S)
            except SaylineError as error:
                error.unspoken = utterance.text
                self._give(error)
            except Exception as error:
                failure = EngineError(f"the synthesizer failed: {type(error).__name__}: {error}")
                failure.__cause__ = error
                failure.unspoken = utterance.text
                self._give(failure)

    def _give(self, item: AudioChunk | SaylineError) -> None:
        if not self._cancelled:
            self._made.append(item)
            self._buffered_s += item.duration_s if isinstance(item, AudioChunk) else 0.0
            self._changed.set()


async def _chunks(
    utterance: Utterance, sounds: Callable[[Utterance], AsyncGenerator[Sound, None]]
) -> AsyncGenerator[AudioChunk, None]:
    """The packets of an utterance, with its breaks, its volume and its words; the closing one may be empty."""
    format = AudioFormat()
    put_out = 0
    first_s: float | None = None
    words = WordEstimate(utterance.text, utterance.speed)

    def packet(samples: Samples, *, last: bool = False) -> AudioChunk:
        nonlocal put_out
        start, put_out = put_out, put_out + len(samples)
        begun = words.until(put_out, format.sample_rate, last=last)
        return AudioChunk(samples, format, utterance, start, begun, last, first_s, time.monotonic())

    spoken = replace(utterance, text=_clean(utterance.text))
    before_ms = utterance.break_before_ms
    if words.total:
        async with aclosing(sounds(spoken)) as stretches:
            async for sound in stretches:
                if not len(sound.samples):
                    continue
                samples = sound.samples * np.float32(utterance.volume) if utterance.volume != 1 else sound.samples
                if first_s is None:
                    first_s, format = time.monotonic(), sound.format
                    words.begin(_silent_samples(before_ms, format))
                    samples = np.concatenate((_silence(before_ms, format), samples))
                    before_ms = 0
                yield packet(samples)
        if first_s is None:
            raise EngineError("the engine gave no sound for the sentence; check that it speaks the language of the text")
    yield packet(_silence(before_ms + utterance.break_after_ms, format), last=True)


def _clean(text: str) -> str:
    """Valid Unicode without NUL: what a request or a command line can carry."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")


def _silent_samples(ms: int, format: AudioFormat) -> int:
    return round(ms * format.sample_rate / 1000)


def _silence(ms: int, format: AudioFormat) -> Samples:
    count = _silent_samples(ms, format)
    return np.zeros(count if format.channels == 1 else (count, format.channels), np.float32)
