"""Recognition by a server: what is sent, what comes back, and each way in which it goes wrong."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from tests.voice_agent.ears.transcription_server import TranscriptionServer
from voice_agent.ears.remote import RemoteRecognizer
from voice_agent.errors import ConfigError, RecognizerError

RATE = 16_000


def voice(seconds: float = 1.0) -> np.ndarray:
    """A vowel that comes and goes, which every detector takes for a voice."""
    at = np.arange(round(RATE * seconds)) / RATE
    vowel = sum(np.sin(2 * np.pi * 120 * n * at) / n for n in range(1, 20))
    return (0.1 * vowel * (0.6 + 0.4 * np.sin(2 * np.pi * 4 * at))).astype(np.float32)


@pytest.fixture
def server():
    with TranscriptionServer() as running:
        yield running


def recognizer(server: TranscriptionServer, model: str = "whisper-1", **options) -> RemoteRecognizer:
    return RemoteRecognizer(model, base_url=server.url, api_key=server.key, retries=0, **options)


async def failure(server: TranscriptionServer, model: str, **options) -> RecognizerError:
    async with recognizer(server, model, **options) as remote:
        with pytest.raises(RecognizerError) as caught:
            await asyncio.wait_for(remote.transcribe(voice()), 10)
    return caught.value


@pytest.mark.parametrize(("language", "asked"), [("auto", None), ("en", "en"), ("zh", "zh")])
async def test_the_audio_is_sent_and_the_text_comes_back(server, language, asked):
    samples = voice()
    async with recognizer(server) as remote:
        await remote.ready()
        transcript = await remote.transcribe(samples, language)
    assert (transcript.text, transcript.language, transcript.doubt) == ("Where is my parcel?", "en", "")
    request = server.requests[0]
    assert request.rate == RATE
    assert np.abs(request.samples - samples).max() < 1e-4
    assert request.fields["model"] == "whisper-1"
    assert request.fields.get("language") == asked


async def test_a_language_that_the_server_does_not_name_is_the_one_asked_for(server):
    server.language = None
    async with recognizer(server) as remote:
        assert (await remote.transcribe(voice(), "zh")).language == "zh"
        assert (await remote.transcribe(voice())).language is None


async def test_a_server_without_the_verbose_answer_is_asked_plainly_from_then_on(server):
    async with recognizer(server, "plain") as remote:
        for _ in range(2):
            assert (await remote.transcribe(voice())).text == "Where is my parcel?"
    assert [request.fields["response_format"] for request in server.requests] == ["verbose_json", "json", "json"]


async def test_silence_is_not_sent(server):
    async with recognizer(server) as remote:
        for samples in (np.zeros(RATE, np.float32), np.zeros(0, np.float32), np.full(RATE, np.nan, np.float32)):
            assert (await remote.transcribe(samples)).doubt == "silence"
    assert server.requests == []


@pytest.mark.parametrize(
    ("said", "no_speech", "logprob"),
    [("you", 0.8, -0.9), ("Thanks for watching!", 0.1, -0.2), ("", 0.1, -0.2), ("I am not sure.", 0.1, -2.2)],
)
async def test_what_the_server_makes_up_is_no_turn(server, said, no_speech, logprob):
    server.said = said
    server.segments = [{"no_speech_prob": no_speech, "avg_logprob": logprob}]
    async with recognizer(server) as remote:
        transcript = await remote.transcribe(voice())
    assert transcript.text == ""
    assert transcript.doubt


async def test_segments_are_judged_together(server):
    server.segments = [{"no_speech_prob": 0.9, "avg_logprob": -0.3}, {"no_speech_prob": 0.01, "avg_logprob": -0.3}, {}]
    async with recognizer(server) as remote:
        assert (await remote.transcribe(voice())).text == "Where is my parcel?"
        server.segments = []
        assert (await remote.transcribe(voice())).text == "Where is my parcel?"


@pytest.mark.parametrize(
    ("model", "says", "retryable"),
    [
        ("status=503", "answered 503: The model is tired; the server failed: try again", True),
        ("status=429", "answered 429: The model is tired; too many requests", True),
        ("status=413", "the turn is too long for the server", False),
        ("status=404", "check the model's name and the base URL", False),
        ("disconnect", "broke off: try again", True),
    ],
)
async def test_failures_say_what_to_do(server, model, says, retryable):
    error = await failure(server, model)
    assert says in str(error)
    assert error.retryable is retryable


async def test_a_page_instead_of_an_answer_is_no_text(server):
    async with recognizer(server, "html") as remote:
        with pytest.raises(RecognizerError, match="sent no transcription"):
            await remote.transcribe(voice())


async def test_a_server_that_says_nothing_is_given_up(server):
    assert "nothing came in time" in str(await failure(server, "stall", timeout_s=0.3))


async def test_nobody_there():
    with TranscriptionServer() as gone:
        url = gone.url
    async with RemoteRecognizer(base_url=url, api_key="none", retries=0) as remote:
        with pytest.raises(RecognizerError, match="nobody answers there"):
            await remote.transcribe(voice())


async def test_a_refused_key_is_not_shown(server):
    async with RemoteRecognizer(base_url=server.url, api_key="sk-wrong-0123456789", retries=0) as remote:
        with pytest.raises(RecognizerError, match="refused the key") as caught:
            await remote.transcribe(voice())
    assert "0123456789" not in str(caught.value)


async def test_a_cancelled_transcription_closes_its_request(server):
    async with recognizer(server, "stall") as remote:
        task = asyncio.ensure_future(remote.transcribe(voice()))
        async with asyncio.timeout(10):
            while not server.requests:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.requests[0].left.wait, 10)


async def test_the_key_and_the_address_come_from_the_environment(server, monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", server.key)
    async with RemoteRecognizer() as remote:
        assert (await remote.transcribe(voice())).text == "Where is my parcel?"


def test_without_a_key_or_with_a_strange_address_it_says_so(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set"):
        RemoteRecognizer()
    with pytest.raises(ConfigError, match="starts with http"):
        RemoteRecognizer(base_url="localhost:8000")
