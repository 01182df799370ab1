"""A speech engine that makes no speech: packets of known length with known word times, in the event loop's own time.

With ``voice_agent.testing.clock.run_virtual`` minutes of dialogue take milliseconds, and come out the same each time.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Callable

import numpy as np

from tts_engine.admission import Priority
from tts_engine.text.language import HAN, is_han
from tts_engine.types import AudioChunk, AudioFormat, Utterance, WordTime
from voice_agent.errors import EngineError, SaylineError

__all__ = ["FakeSession", "FakeSynthesizer", "fake_words"]

RATE = 24_000
LETTER_SAMPLES = 1_440
"""60 ms a letter."""
HAN_SAMPLES = 4_800
"""200 ms a Chinese character."""
GAP_SAMPLES = 480
_WORD = re.compile(rf"[{HAN}]|[^\W_{HAN}]+(?:['’][^\W_]+)*")


def fake_words(utterance: Utterance) -> tuple[list[WordTime], int]:
    """When the words of an utterance sound, and how many samples it has, breaks included."""
    at = utterance.break_before_ms * RATE // 1000
    words = []
    for match in _WORD.finditer(utterance.text):
        length = HAN_SAMPLES if is_han(match.group()[0]) else LETTER_SAMPLES * len(match.group())
        end = at + int(length / utterance.speed)
        words.append(WordTime(match.start(), match.end(), at, end))
        at = end + GAP_SAMPLES
    return words, at + utterance.break_after_ms * RATE // 1000


class FakeSynthesizer:
    """Makes packets of ``packet_s`` seconds, each in ``cost`` times its length; ``fails`` says which sentences fail.

    ``level``: the samples of words all have this value, silence is 0, so that a test can see whose audio it hears. A
    sentence that fails does so behind its first packet.
    """

    def __init__(
        self,
        *,
        packet_s: float = 0.2,
        cost: float = 0.1,
        ahead_s: float = 8.0,
        level: float = 0.25,
        fails: Callable[[Utterance], bool] = lambda utterance: False,
    ) -> None:
        self.packet_samples = round(packet_s * RATE)
        self.cost = cost
        self.ahead_s = ahead_s
        self.level = level
        self.fails = fails
        self.priorities: list[Priority] = []
        """Those of the lines that were opened."""

    async def ready(self) -> None:
        """It always is."""

    def open(self, priority: Priority = "interactive") -> FakeSession:
        self.priorities.append(priority)
        return FakeSession(self)


class FakeSession:
    """One line through the fake engine: see ``voice_agent.protocols.SpeechSession``."""

    def __init__(self, engine: FakeSynthesizer) -> None:
        self._engine = engine
        self._waiting: deque[Utterance] = deque()
        self._made: deque[AudioChunk | SaylineError] = deque()
        self._changed = asyncio.Event()
        self._ended = False
        self.buffered_s = 0.0
        self._worker = asyncio.create_task(self._work(), name="fake-engine")
        self._worker.add_done_callback(lambda _: self._changed.set())

    async def put(self, utterance: Utterance) -> None:
        while len(self._waiting) >= 4 and not self._worker.done():
            await self._change()
        self._waiting.append(utterance)
        self._changed.set()

    def end(self) -> None:
        self._ended = True
        self._changed.set()

    def cancel(self) -> None:
        self._worker.cancel()
        self._waiting.clear()
        self._made.clear()
        self._ended = True
        self._changed.set()

    def __aiter__(self) -> AsyncIterator[AudioChunk]:
        return self

    async def __anext__(self) -> AudioChunk:
        while not self._made:
            if self._worker.done():
                raise StopAsyncIteration
            await self._change()
        item = self._made.popleft()
        self._changed.set()
        if isinstance(item, SaylineError):
            raise item
        self.buffered_s = max(0.0, self.buffered_s - item.duration_s)
        return item

    async def _work(self) -> None:
        while True:
            while not self._waiting:
                if self._ended:
                    return
                await self._change()
            await self._speak(self._waiting.popleft())

    async def _speak(self, utterance: Utterance) -> None:
        engine = self._engine
        clock = asyncio.get_running_loop().time
        words, total = fake_words(utterance)
        samples = np.zeros(total, np.float32)
        for word in words:
            samples[word.start_sample : word.end_sample] = engine.level
        first_frame_s = None
        for start in range(0, max(total, 1), engine.packet_samples):
            stop = min(start + engine.packet_samples, total)
            while self.buffered_s >= engine.ahead_s:
                await self._change()
            await asyncio.sleep(engine.cost * (stop - start) / RATE)
            if start and engine.fails(utterance):
                error = EngineError("the fake engine failed")
                error.unspoken = utterance.text
                self._give(error)
                return
            first_frame_s = first_frame_s or clock()
            begun = tuple(word for word in words if start <= word.start_sample < stop)
            part = samples[start:stop]
            last = stop == total
            self._give(AudioChunk(part, AudioFormat(RATE), utterance, start, begun, last, first_frame_s, clock()))

    def _give(self, item: AudioChunk | SaylineError) -> None:
        self._made.append(item)
        self.buffered_s += item.duration_s if isinstance(item, AudioChunk) else 0.0
        self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()
