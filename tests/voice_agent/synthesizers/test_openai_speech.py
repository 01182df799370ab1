"""The speech client against a real server: whole, slow, broken, and left in the middle."""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise

import numpy as np
import pytest

from tests.voice_agent.synthesizers.speech_server import RATE, SpeechServer, tone
from tts_engine.types import Utterance
from voice_agent.errors import ConfigError, EngineError
from voice_agent.sinks import MemorySink
from voice_agent.synthesizers import OpenAISpeech
from voice_agent.turn import Turn


@pytest.fixture(scope="module")
def server():
    with SpeechServer() as running:
        yield running


def client(server, model="tone", **options):
    return OpenAISpeech(model, base_url=server.url, api_key=server.key, retries=0, **options)


async def spoken(synthesizer, *utterances):
    session = synthesizer.open()
    for utterance in utterances:
        await session.put(utterance)
    session.end()
    return [chunk async for chunk in session]


async def failure_of(session):
    while True:
        await anext(session)


def joined(chunks):
    return np.concatenate([chunk.samples for chunk in chunks])


@pytest.mark.parametrize("cut", [1, 7, 480, 100_000])
async def test_the_samples_come_whole_for_any_cut(server, cut):
    async with client(server, f"tone?cut={cut}") as synthesizer:
        chunks = await spoken(synthesizer, Utterance("Hi there, you."))
    samples = joined(chunks)
    assert len(samples) == len(tone(140))
    np.testing.assert_allclose(samples, tone(140), atol=2**-15)
    assert [chunk.last for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    starts = np.cumsum([0, *(len(chunk.samples) for chunk in chunks)])[:-1]
    assert [chunk.start_sample for chunk in chunks] == list(starts)
    words = [word for chunk in chunks for word in chunk.words]
    assert [(word.start, word.end) for word in words] == [(0, 2), (3, 8), (10, 13)]
    assert all(a.start_sample <= b.start_sample for a, b in pairwise(words))
    assert words[-1].end_sample <= len(samples)


async def test_what_is_asked_for(server):
    async with client(server, voice="nova") as synthesizer:
        await spoken(
            synthesizer,
            Utterance("One\0 \ud800.", speed=1.25),
            Utterance("Two.", voice="echo", speed=9.0, volume=0.5),
        )
    one, two = (request.body for request in server.requests[-2:])
    assert one == {"model": "tone", "voice": "nova", "input": "One  ?.", "response_format": "pcm", "speed": 1.25}
    assert (two["voice"], two["speed"]) == ("echo", 4.0)


async def test_breaks_and_volume(server):
    async with client(server) as synthesizer:
        plain = joined(await spoken(synthesizer, Utterance("Hello.")))
        chunks = await spoken(synthesizer, Utterance("Hello.", volume=0.5, break_before_ms=100, break_after_ms=50))
        silent = await spoken(synthesizer, Utterance("…", break_before_ms=30, break_after_ms=20))
    samples = joined(chunks)
    assert not samples[:2400].any()
    assert not samples[-1200:].any()
    np.testing.assert_allclose(samples[2400:-1200], plain / 2)
    assert chunks[0].words[0].start_sample == 2400
    assert len(silent) == 1
    assert len(joined(silent)) == RATE * 50 // 1000
    assert silent[0].last


async def test_it_plays_while_it_comes(server):
    async with client(server, "tone?cut=960&wait_s=0.05") as synthesizer:
        session = synthesizer.open()
        await session.put(Utterance("x" * 40))
        session.end()
        began_s = time.monotonic()
        await anext(session)
        first_s = time.monotonic() - began_s
        [_ async for _ in session]
        assert first_s < (time.monotonic() - began_s) / 3


async def test_a_wav_says_its_own_rate(server):
    async with client(server, "wav?cut=11") as synthesizer:
        chunks = await spoken(synthesizer, Utterance("Hello."))
    assert {chunk.format.sample_rate for chunk in chunks} == {16_000}


@pytest.mark.parametrize(
    ("model", "said", "retryable"),
    [
        ("tone?status=400", "names of the model and the voice", False),
        ("tone?status=404", "ends in /v1", False),
        ("tone?status=429", "wait a little", True),
        ("tone?status=500", "try again", True),
        ("mp3", "sent audio/mpeg where PCM was asked for", False),
        ("html", "sent text/html", False),
        ("tone?fault=disconnect&after=4800", "broke off: try again", True),
        ("tone?fault=stall&after=4800", "nothing came in time", True),
        ("tone?after=4801", "inside a sample", False),
        ("tone?after=0", "no sound", False),
    ],
)
async def test_failures_say_what_to_do_and_the_line_goes_on(server, model, said, retryable):
    async with client(server, model, timeout_s=0.5) as synthesizer:
        session = synthesizer.open()
        await session.put(Utterance("This sentence is long enough."))
        await session.put(Utterance("…"))
        session.end()
        with pytest.raises(EngineError, match=said) as caught:
            await failure_of(session)
        assert caught.value.retryable == retryable
        assert caught.value.unspoken == "This sentence is long enough."
        assert [chunk.last async for chunk in session] == [True]


async def test_a_wrong_key_is_not_shown(server):
    async with OpenAISpeech("tone", base_url=server.url, api_key="wrong", retries=0) as synthesizer:
        with pytest.raises(EngineError, match="refused the key") as caught:
            await spoken(synthesizer, Utterance("Hello."))
    assert "sk-secret" not in str(caught.value)


async def test_nobody_there():
    async with OpenAISpeech("tone", base_url="http://127.0.0.1:9/v1", api_key="x", retries=0) as synthesizer:
        with pytest.raises(EngineError, match="nobody answers there"):
            await spoken(synthesizer, Utterance("Hello."))


def test_settings_that_cannot_work(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set"):
        OpenAISpeech()
    with pytest.raises(ConfigError, match="no address"):
        OpenAISpeech(base_url="localhost:80")


async def test_a_cancel_closes_the_request(server):
    async with client(server, "tone?fault=stall&after=4800") as synthesizer:
        session = synthesizer.open()
        await session.put(Utterance("This sentence is long enough."))
        await anext(session)
        request = server.requests[-1]
        waiting = asyncio.ensure_future(anext(session))
        await asyncio.sleep(0.05)
        session.cancel()
        with pytest.raises(StopAsyncIteration):
            await waiting
        assert await asyncio.to_thread(request.left.wait, 30)
        await session.put(Utterance("Nobody hears this."))
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_turn_speaks_through_it(server):
    async with client(server) as synthesizer, MemorySink() as sink:
        turn = Turn(synthesizer)
        async for chunk in turn.chunks("Good morning, how are you today? I am fine, thank you very much."):
            await sink.write(chunk)
        await sink.drain()
        report = turn.report()
    assert report.unspoken == ()
    assert [times.text for times in report.sentences]
    assert len(sink.samples) / RATE == pytest.approx(report.audio_s)
