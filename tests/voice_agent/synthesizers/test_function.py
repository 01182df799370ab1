"""Python functions as speech engines, in every shape that they may have."""

from __future__ import annotations

import asyncio
import threading
import time

import numpy as np
import pytest

from tts_engine.types import AudioFormat, Utterance
from voice_agent.audio import samples_to_pcm, wav_header
from voice_agent.errors import EngineError
from voice_agent.synthesizers import FunctionSynthesizer

WANTED = np.linspace(-0.5, 0.5, 4801, dtype=np.float32)
PCM = samples_to_pcm(WANTED)


def as_bytes(text):
    return PCM


def as_wav(text):
    return wav_header(AudioFormat(24_000), 4801) + PCM + b"LIST\4\0\0\0junk"


def as_floats(text):
    return WANTED.astype(np.float64)


def as_integers(text):
    return np.frombuffer(PCM, np.int16)


def as_pieces(text):
    yield PCM[:1001]
    yield PCM[1001:]


def as_list(text):
    return [WANTED[:100], WANTED[100:]]


async def as_coroutine(text):
    await asyncio.sleep(0)
    return bytearray(PCM)


async def as_async_pieces(text):
    for at in range(0, len(PCM), 333):
        await asyncio.sleep(0)
        yield PCM[at : at + 333]


class Callable:
    async def __call__(self, text):
        return as_pieces(text)


SHAPES = [as_bytes, as_wav, as_floats, as_integers, as_pieces, as_list, as_coroutine, as_async_pieces, Callable()]


async def spoken(synthesizer, text="Hello."):
    session = synthesizer.open()
    await session.put(Utterance(text))
    session.end()
    return [chunk async for chunk in session]


@pytest.mark.parametrize("function", SHAPES, ids=lambda function: getattr(function, "__name__", "object"))
async def test_shapes(function):
    chunks = await spoken(FunctionSynthesizer(function))
    np.testing.assert_allclose(np.concatenate([chunk.samples for chunk in chunks]), WANTED, atol=2**-15)
    assert chunks[-1].last


async def test_stereo():
    stereo = np.stack([WANTED, -WANTED], axis=1)
    chunks = await spoken(FunctionSynthesizer(lambda text: stereo, format=AudioFormat(48_000, 2)))
    assert np.concatenate([chunk.samples for chunk in chunks]).shape == (4801, 2)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (None, "gave NoneType"),
        ("a string", "gave str"),
        (np.zeros(5, np.int64), "of int64"),
        (np.zeros((5, 2)), r"shape \(5, 2\)"),
        ([["x"]], "give bytes, floats"),
        (b"", "no sound"),
        (b"abc", "inside a sample"),
    ],
)
async def test_what_is_no_audio_is_refused(given, said):
    with pytest.raises(EngineError, match=said) as caught:
        await spoken(FunctionSynthesizer(lambda text: given))
    assert caught.value.unspoken == "Hello."


async def test_an_exception_is_named():
    def fail(text):
        raise KeyError("voice")

    with pytest.raises(EngineError, match="KeyError: 'voice'"):
        await spoken(FunctionSynthesizer(fail))


async def test_bad_numbers_become_silence():
    chunks = await spoken(FunctionSynthesizer(lambda text: np.array([np.nan, np.inf, 0.5])))
    assert chunks[0].samples.tolist() == [0.0, 1.0, 0.5]


async def test_a_slow_function_does_not_block_the_loop():
    threads = []

    def slow(text):
        threads.append(threading.current_thread())
        for _ in range(5):
            time.sleep(0.02)
            yield PCM[:480]

    speaking = asyncio.ensure_future(spoken(FunctionSynthesizer(slow)))
    longest = 0.0
    while not speaking.done():
        began_s = time.monotonic()
        await asyncio.sleep(0.001)
        longest = max(longest, time.monotonic() - began_s)
    assert longest < 0.08  # the calls take 0.1 s in all
    assert threads[0] is not threading.main_thread()


async def test_a_cancel_closes_the_generator():
    closed = asyncio.Event()

    async def endless(text):
        try:
            while True:
                yield PCM
                await asyncio.sleep(0.01)
        finally:
            closed.set()

    session = FunctionSynthesizer(endless).open()
    await session.put(Utterance("Hello."))
    await anext(session)
    session.cancel()
    await asyncio.wait_for(closed.wait(), 1)
    with pytest.raises(StopAsyncIteration):
        await anext(session)
    await asyncio.sleep(0.01)
    assert asyncio.all_tasks() == {asyncio.current_task()}
