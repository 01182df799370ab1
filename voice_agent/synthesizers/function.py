"""Speaks with a Python function: a text in, its audio out."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tts_engine.types import AudioFormat, Samples, Utterance
from voice_agent.errors import EngineError
from voice_agent.synthesizers.session import QueueSynthesizer, Sound
from voice_agent.synthesizers.sound_reader import Encoding, SoundReader

Audio = bytes | NDArray[Any]
Speaker = Callable[[str], Audio | Iterable[Audio] | AsyncIterable[Audio] | Awaitable[Audio | Iterable[Audio]]]
_END = object()


class FunctionSynthesizer(QueueSynthesizer):
    """Calls ``function`` with each sentence's text; the function may be async.

    It gives bytes (PCM of ``format``, or WAV), an array ([samples] or [samples, channels] of floats in [-1, 1] or of
    int16), or an iterator of such, sync or async, which is played while it comes. Sync code runs in a thread: a cancel
    drops what it gives and stops the iteration, but cannot stop a call that is under way.
    """

    def __init__(self, function: Speaker, *, format: AudioFormat | None = None, encoding: Encoding = "auto") -> None:
        """``format``: of raw PCM bytes and of arrays; None is 24 kHz mono, 16 bits."""
        self._function = function
        self._format = format or AudioFormat()
        self._encoding = encoding

    async def sounds(self, utterance: Utterance) -> AsyncGenerator[Sound, None]:
        reader = SoundReader(self._format, self._encoding)
        async with aclosing(self._parts(utterance.text)) as parts:
            async for part in parts:
                if isinstance(part, bytes | bytearray | memoryview):
                    for sound in reader.feed(bytes(part)):
                        yield sound
                else:
                    yield Sound(self._array(part), self._format)
        for sound in reader.flush():
            yield sound

    async def _parts(self, text: str) -> AsyncGenerator[Any, None]:
        """What the function gives, piece by piece."""
        function: Callable[[str], Any] = self._function
        if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
            given = function(text)
        else:
            given = await asyncio.to_thread(function, text)
        if inspect.isawaitable(given):
            given = await given
        if isinstance(given, bytes | bytearray | memoryview | np.ndarray):
            yield given
            return
        try:
            async with aclosing(_steps(given)) as pieces:
                async for piece in pieces:
                    yield piece
        finally:
            await _close(given)

    def _array(self, part: Any) -> Samples:
        array = np.asarray(part)
        if array.dtype == np.int16:
            array = array.astype(np.float32) / np.float32(1 << 15)
        elif not np.issubdtype(array.dtype, np.floating):
            raise EngineError(
                f"the function gave {type(part).__name__} of {array.dtype}: give bytes, floats in [-1, 1] or int16"
            )
        samples: Samples = np.nan_to_num(array.astype(np.float32), nan=0.0, posinf=1.0, neginf=-1.0)
        expected = 1 if self._format.channels == 1 else 2
        if samples.ndim != expected or (expected == 2 and samples.shape[1] != self._format.channels):
            raise EngineError(f"the function gave samples of shape {samples.shape}: give [samples], or [samples, channels]")
        return samples


async def _steps(given: Any) -> AsyncGenerator[Any, None]:
    if isinstance(given, AsyncIterable):
        async for piece in given:
            yield piece
        return
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise EngineError(f"the function gave {type(given).__name__}: give bytes, an array, or an iterator of them")
    iterator: Iterator[Any] = iter(given)
    while (piece := await asyncio.to_thread(next, iterator, _END)) is not _END:
        yield piece


async def _close(given: Any) -> None:
    """Lets a generator that was left release what it holds."""
    if inspect.isasyncgen(given):
        await given.aclose()
    elif inspect.isgenerator(given) and not given.gi_running:
        given.close()
