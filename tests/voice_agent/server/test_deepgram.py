"""The Deepgram-compatible socket: its messages, parameters and answers. The real clients are in test_peers."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx
import pytest
from websockets.exceptions import InvalidStatus

from tests.voice_agent.server.serving import LiveClient, serving
from voice_agent.server.app import create_app
from voice_agent.server.config import Limits, ServerConfig
from voice_agent.server.deepgram import speaking_of
from voice_agent.server.speaking import Speaking
from voice_agent.server.voices import Voices
from voice_agent.testing.fake_engine import FakeSynthesizer

TEXT = "The parcel left on Monday. It arrives on Friday, we hope."


@asynccontextmanager
async def speak(query: str = "", config: ServerConfig | None = None, engine=None) -> AsyncGenerator[LiveClient, None]:
    app = create_app(config or ServerConfig(), engine=engine or FakeSynthesizer(cost=0.01))
    async with serving(app) as address, LiveClient(f"ws://{address}/v1/speak{query}") as client:
        await client.until("Metadata")
        yield client


async def test_speak_and_flush():
    async with speak("?model=aura-2-andromeda-en&encoding=linear16&sample_rate=16000&mip_opt_out=false") as client:
        assert client.messages[0]["model_name"] == "aura-2-andromeda-en"
        for word in TEXT.split():
            await client.send("Speak", text=word + " ")
        await client.send("Flush")
        assert (await client.until("Flushed"))["sequence_id"] == 0
        first = len(client.audio)
        assert first > 2 * 16_000
        await client.send("Speak", text="And more.")
        await client.send("Flush")
        assert (await client.until("Flushed"))["sequence_id"] == 1
        assert len(client.audio) > first
        assert {message["type"] for message in client.messages} == {"Metadata", "Flushed"}


async def test_clear_drops_what_is_not_sent_and_answers_no_flush():
    async with speak(engine=FakeSynthesizer(cost=0.5)) as client:
        await client.send("Speak", text=TEXT * 5)
        await client.send("Flush")
        while not client.audio:
            client.audio += await client.socket.recv()
        await client.send("Clear")
        await client.until("Cleared")
        before = len(client.audio)
        await client.send("Speak", text="Yes.")
        await client.send("Flush")
        await client.until("Flushed")
        assert 0 < len(client.audio) - before < 48_000
        assert [message["type"] for message in client.messages] == ["Metadata", "Cleared", "Flushed"]


async def test_close_says_what_is_there_and_ends():
    async with speak() as client:
        await client.send("Speak", text=TEXT)
        await client.send("Close")
        assert await client.closed() == 1000
        assert len(client.audio) > 48_000
    async with speak() as client:
        await client.send("Flush")  # what LiveKit's client does with a connection that it gives back
        await client.send("Close")
        assert await client.closed() == 1000
        assert client.messages[-1]["type"] == "Flushed"


async def test_what_cannot_be_followed_is_a_warning():
    async with speak(config=ServerConfig(limits=Limits(text_chars=100))) as client:
        for message in ("{", "{}", '{"type": "Sing"}', '{"type": "Speak"}', json.dumps({"type": "Speak", "text": "x" * 101})):
            await client.socket.send(message)
            warning = await client.until("Warning")
            assert warning["description"] == warning["warn_msg"]
            assert warning["code"]
        await client.send("Speak", text="Fine.")
        await client.send("Flush")
        await client.until("Flushed")


async def test_a_sentence_that_fails_is_a_warning_and_the_flush_is_answered():
    async with speak(engine=FakeSynthesizer(fails=lambda utterance: True, cost=0.0)) as client:
        await client.send("Speak", text="This will fail.")
        await client.send("Flush")
        assert "failed" in (await client.until("Warning"))["description"]
        await client.until("Flushed")


@pytest.mark.parametrize(
    "query",
    ["?encoding=mp3", "?sample_rate=x", "?sample_rate=4000", "?speed=fast", "?speed=7", "?model=aura-2-javier-es", "?model=no"],
)
async def test_parameters_that_cannot_be_met_are_refused_before_the_socket_opens(query):
    app = create_app(ServerConfig(), engine=FakeSynthesizer())
    async with serving(app) as address:
        with pytest.raises(InvalidStatus) as refused:
            async with LiveClient(f"ws://{address}/v1/speak{query}"):
                pass
        assert refused.value.response.status_code == 400
        error = json.loads(refused.value.response.body or b"")["error"]
        assert error["param"] == query[1:].partition("=")[0]


@pytest.mark.parametrize(
    ("query", "kind", "begins"),
    [
        ("encoding=linear16&container=none&sample_rate=24000", "audio/l16;rate=24000;channels=1", b"\0"),
        ("encoding=linear16", "audio/wav", b"RIFF"),
        ("encoding=mulaw&container=none", "audio/mulaw;rate=8000;channels=1", b"\xff"),
        ("", "audio/mpeg", b"\xff"),
        ("encoding=opus&container=ogg", "audio/ogg", b"OggS"),
        ("encoding=flac&model=aura-2-thalia-en&mip_opt_out=true", "audio/flac", b"fLaC"),
    ],
)
async def test_a_file(query, kind, begins):
    app = create_app(ServerConfig(), engine=FakeSynthesizer(cost=0.0, level=0.0))
    async with serving(app) as address, httpx.AsyncClient() as client:
        answer = await client.post(f"http://{address}/v1/speak?{query}", json={"text": TEXT})
        assert (answer.status_code, answer.headers["content-type"]) == (200, kind)
        assert answer.content.startswith(begins)
        assert len(answer.content) > 1000
        if kind.startswith("audio/l16"):
            assert len(answer.content) > 2 * 2 * 24_000


@pytest.mark.parametrize("query", ["encoding=mp4", "encoding=mp3&container=wav", "encoding=opus&sample_rate=44100", "speed=9"])
async def test_a_file_that_cannot_be_made(query):
    app = create_app(ServerConfig(), engine=FakeSynthesizer())
    async with serving(app) as address, httpx.AsyncClient() as client:
        assert (await client.post(f"http://{address}/v1/speak?{query}", json={"text": TEXT})).status_code == 400


def test_parameters():
    voices = Voices.load()
    assert speaking_of({}, voices, "auto") == Speaking()
    assert speaking_of({"encoding": "mulaw"}, voices, "auto") == Speaking(encoding="mulaw", sample_rate=8_000)
    assert speaking_of({"model": "aura-asteria-en"}, voices, "auto") == Speaking()
    assert speaking_of({"model": "xiaobei", "speed": "1.25"}, voices, "heart") == Speaking(voice="xiaobei", speed=1.25)
    assert speaking_of({"model": "onyx"}, voices, "heart") == Speaking(pitch=voices.find("onyx").pitch)


@pytest.mark.parametrize(
    ("query", "least"),
    [
        ("encoding=linear16", 44 + 2400),
        ("encoding=linear16&container=none", 2400),
        ("encoding=mulaw&container=none", 400),
        ("", 200),
    ],
)
async def test_a_file_without_anything_to_say_is_a_short_silence(query, least):
    app = create_app(ServerConfig(), engine=FakeSynthesizer())
    async with serving(app) as address, httpx.AsyncClient() as client:
        answer = await client.post(f"http://{address}/v1/speak?{query}", json={"text": "😀"})
        assert answer.status_code == 200
        assert len(answer.content) >= least


async def test_a_stream_without_anything_to_say_is_empty():
    async with speak() as client:
        await client.send("Speak", text="😀")
        await client.send("Flush")
        await client.until("Flushed")
        assert not client.audio


async def test_a_request_is_known_by_one_name():
    async with speak() as client:
        assert client.messages[0]["request_id"] == client.socket.response.headers["x-request-id"]
