"""``/v1/audio/speech`` as clients meet it: the ``openai`` SDK and plain HTTP, a real engine, real sockets."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager

import httpx
import numpy as np
import openai
import pytest
from fastapi import FastAPI

from tests.pitch import RATE, pitch_change, pitch_of
from tests.voice_agent.server.serving import serving, until
from tests.voice_agent.server.test_encoders import PADDING_S, decoded
from tts_engine.scheduler import Scheduler
from tts_engine.types import AudioChunk, Utterance
from voice_agent.audio import pcm_to_samples
from voice_agent.errors import BusyError, EngineError
from voice_agent.server.app import create_app
from voice_agent.server.config import Limits, ServerConfig
from voice_agent.server.encoders import FORMATS, Container
from voice_agent.server.service import Service
from voice_agent.server.voices import OPENAI_VOICES
from voice_agent.testing.fake_engine import FakeSynthesizer

TEXT = "Thank you for calling. Your order number 4521 has shipped."
SPEECH = "/v1/audio/speech"


@pytest.fixture(scope="module")
def engine() -> Iterator[Scheduler]:
    scheduler = Scheduler()
    scheduler.start()
    yield scheduler
    scheduler.close()


@asynccontextmanager
async def client_of(app: FastAPI) -> AsyncGenerator[httpx.AsyncClient, None]:
    async with serving(app) as address, httpx.AsyncClient(base_url=f"http://{address}", timeout=60, trust_env=False) as client:
        await until(lambda: app.state.service.ready)
        yield client


@asynccontextmanager
async def sdk_of(app: FastAPI) -> AsyncGenerator[openai.AsyncOpenAI, None]:
    async with (
        serving(app) as address,
        httpx.AsyncClient(trust_env=False) as http,
        openai.AsyncOpenAI(base_url=f"http://{address}/v1", api_key="unused", max_retries=0, http_client=http) as client,
    ):
        await until(lambda: app.state.service.ready)
        yield client


def request(**changes: object) -> dict[str, object]:
    return {"model": "tts-1", "voice": "alloy", "input": TEXT, "response_format": "pcm", **changes}


async def ask(address: str, body: dict[str, object]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Sends a request over a bare socket, which reads only when it is told to."""
    host, port = address.split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
    data = json.dumps(body).encode()
    head = f"POST {SPEECH} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n"
    writer.write(f"{head}content-length: {len(data)}\r\n\r\n".encode() + data)
    return reader, writer


async def test_the_sdk_gets_every_format(engine: Scheduler) -> None:
    """Same length and pitch as the PCM, whether the answer is streamed or read whole."""
    async with sdk_of(create_app(ServerConfig(), engine=engine)) as client:
        speech = client.audio.speech
        whole = await speech.create(model="tts-1", voice="alloy", input=TEXT, response_format="pcm")
        plain = pcm_to_samples(whole.content)
        assert 2.0 < len(plain) / RATE < 6.0
        for container in FORMATS:
            streaming = speech.with_streaming_response.create(
                model="gpt-4o-mini-tts", voice="alloy", input=TEXT, response_format=container, instructions="Speak plainly."
            )
            async with streaming as response:
                pieces = [piece async for piece in response.iter_bytes()]
            samples, rate = decoded(b"".join(pieces), container)
            extra_s = len(samples) / rate - len(plain) / RATE
            assert -0.001 <= extra_s <= PADDING_S.get(container, 0.001), container
            assert pitch_change(plain, samples[:: rate // RATE][: len(plain)]) == pytest.approx(1.0, abs=0.01), container
            once = await speech.create(model="tts-1-hd", voice="alloy", input=TEXT, response_format=container)
            assert len(decoded(once.content, container)[0]) == len(samples), container


async def test_the_sdk_names_what_is_wrong(engine: Scheduler) -> None:
    async with sdk_of(create_app(ServerConfig(), engine=engine)) as client:
        with pytest.raises(openai.BadRequestError, match="unknown voice 'nobody'") as caught:
            await client.audio.speech.create(model="tts-1", voice="nobody", input="Hello.")
        assert (caught.value.param, caught.value.code, caught.value.type) == (
            "voice",
            "voice_not_found",
            "invalid_request_error",
        )
        with pytest.raises(openai.NotFoundError, match="no model 'gpt-9'"):
            await client.audio.speech.create(model="gpt-9", voice="alloy", input="Hello.")
        models = [model.id async for model in client.models.list()]
        assert "tts-1" in models
        assert (await client.models.retrieve("sayline")).owned_by == "sayline"
        with pytest.raises(openai.NotFoundError):
            await client.models.retrieve("gpt-9")


@pytest.mark.parametrize("text", [TEXT, "您好，您的订单已经发货，预计明天上午送到。还有什么可以帮您的吗？"])
async def test_speed_is_honoured_at_the_same_pitch(engine: Scheduler, text: str) -> None:
    async with client_of(create_app(ServerConfig(), engine=engine)) as client:

        async def speak(speed: float) -> np.ndarray:
            response = await client.post(SPEECH, json=request(input=text, speed=speed))
            assert response.status_code == 200
            return pcm_to_samples(response.content)

        plain = len(await speak(1.0))
        spoken = {speed: await speak(speed) for speed in (0.25, 0.5, 0.8, 0.9, 1.0, 1.1, 1.5, 2.0, 4.0)}
    for speed, samples in spoken.items():
        assert len(samples) * speed / plain == pytest.approx(1.0, abs=0.05), speed
    for voice, stretched in ((0.8, (0.25, 0.5)), (1.0, (1.5, 2.0, 4.0))):
        for speed in stretched:
            assert pitch_change(spoken[voice], spoken[speed]) == pytest.approx(1.0, abs=0.01), speed


async def test_server_sent_events(engine: Scheduler) -> None:
    async with client_of(create_app(ServerConfig(), engine=engine)) as client:
        plain = await client.post(SPEECH, json=request())
        async with client.stream("POST", SPEECH, json=request(stream_format="sse")) as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            lines = [line async for line in response.aiter_lines()]
    events = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    assert [event["type"] for event in events] == ["speech.audio.delta"] * (len(events) - 1) + ["speech.audio.done"]
    samples = pcm_to_samples(b"".join(base64.b64decode(event["audio"]) for event in events[:-1]))
    assert np.abs(samples - pcm_to_samples(plain.content)).max() < 0.01  # the packets may be cut otherwise
    usage = events[-1]["usage"]
    assert usage["input_tokens"] == len(TEXT)
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert usage["audio_seconds"] == pytest.approx(len(plain.content) / 2 / RATE, abs=0.01)


async def test_the_first_bytes_do_not_wait_for_the_rest(engine: Scheduler) -> None:
    async with client_of(create_app(ServerConfig(), engine=engine)) as client:
        long = "This is a sentence of a long text, and there is more of it to come. " * 40
        async with client.stream("POST", SPEECH, json=request(input=long)) as response:
            assert response.headers["content-type"] == "audio/pcm; rate=24000; channels=1; format=s16le"
            first = await anext(response.aiter_bytes())
        assert 0 < len(first) < 2 * RATE * 10


async def test_all_voices_and_the_thirteen_names(engine: Scheduler) -> None:
    async with client_of(create_app(ServerConfig(), engine=engine)) as client:
        voices = (await client.get("/v1/audio/voices")).json()["voices"]
        names = [voice["id"] for voice in voices]
        assert names[:3] == ["auto", "heart", "xiaobei"]
        assert set(OPENAI_VOICES) < set(names)
        assert len(OPENAI_VOICES) == 13
        pitches = {}
        for name in names:
            response = await client.post(SPEECH, json=request(voice={"id": name}, input="Good morning, everyone."))
            assert response.status_code == 200
            pitches[name] = pitch_of(pcm_to_samples(response.content))
        assert pitches["onyx"] < 0.85 * pitches["alloy"] < pitches["shimmer"]
        both = await client.post(SPEECH, json=request(voice="onyx", input="Hello. 你好。"))
        assert both.status_code == 200


@pytest.mark.parametrize(
    ("change", "param", "status"),
    [
        ({"input": ""}, "input", 400),
        ({"input": None}, "input", 400),
        ({"input": 3}, "input", 400),
        ({"input": "x" * 20_001}, "input", 400),
        ({"voice": "../../etc/passwd"}, "voice", 400),
        ({"voice": "embedded/voice.yaml"}, "voice", 400),
        ({"voice": {"id": "heart\x00"}}, "voice", 400),
        ({"voice": {"name": "heart"}}, "voice", 400),
        ({"voice": ["heart"]}, "voice", 400),
        ({"voice": "heart", "input": "你好"}, "voice", 400),
        ({"speed": 0.24}, "speed", 400),
        ({"speed": 4.01}, "speed", 400),
        ({"speed": "NaN"}, "speed", 400),
        ({"response_format": "ogg"}, "response_format", 400),
        ({"sample_rate": 7999}, "sample_rate", 400),
        ({"response_format": "opus", "sample_rate": 22_050}, "sample_rate", 400),
        ({"stream_format": "chunks"}, "stream_format", 400),
        ({"speeed": 1.0}, "speeed", 400),
        ({"model": "gpt-9"}, "model", 404),
        ({"model": None}, "model", 400),
    ],
)
async def test_errors_come_in_openais_form_before_anything_is_sent(
    engine: Scheduler, change: dict[str, object], param: str, status: int
) -> None:
    app = create_app(ServerConfig(), engine=engine)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        response = await client.post(SPEECH, json=request(**change))
    assert response.status_code == status
    error = response.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert (error["param"], error["type"]) == (param, "invalid_request_error")
    assert error["message"]


NO_REQUESTS = [
    b"", b"{", b"[]", b"\xff\xfe", b'{"input": NaN}', b"null", b"[" * 5000,
    b'{"model": "tts-1", "input": "half a \\ud800 character"}', b'{"model": "tts-1", "\\ud800": 1, "input": "Hi."}',
]  # fmt: skip


@pytest.mark.parametrize("body", NO_REQUESTS)
async def test_bodies_that_are_no_request(engine: Scheduler, body: bytes) -> None:
    app = create_app(ServerConfig(), engine=engine)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        response = await client.post(SPEECH, content=body, headers={"content-type": "application/json"})
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("text", ["!!!", "🎉", " \n ", "<think>hm</think>", "สวัสดี"])
@pytest.mark.parametrize("container", ["wav", "mp3", "opus"])
async def test_a_text_without_anything_to_say_is_a_short_silence(engine: Scheduler, text: str, container: Container) -> None:
    async with client_of(create_app(ServerConfig(), engine=engine)) as client:
        response = await client.post(SPEECH, json=request(input=text, response_format=container))
        assert response.status_code == 200
        samples, _ = decoded(response.content, container)
        assert len(samples)
        assert np.abs(samples).max() < 0.01


async def test_instructions_change_the_pace(engine: Scheduler) -> None:
    async with client_of(create_app(ServerConfig(), engine=engine)) as client:

        async def seconds(instructions: str | None) -> float:
            response = await client.post(SPEECH, json=request(instructions=instructions))
            return len(response.content) / 2 / RATE

        plain = await seconds(None)
        assert await seconds("Be friendly.") == plain
        assert await seconds("Please speak slowly.") > 1.1 * plain
        assert await seconds("说快一点") < 0.9 * plain
        assert await seconds("Do not speak slowly.") == plain


# ---- what happens in between: an engine that can fail, clients that leave ------------------------------------------


async def test_synthesis_stops_when_the_client_leaves(engine: Scheduler) -> None:
    app = create_app(ServerConfig(), engine=engine)
    service: Service = app.state.service
    async with serving(app) as address:
        await until(lambda: service.ready)
        reader, writer = await ask(address, request(input="This is a sentence of a long text. " * 500))
        await reader.readexactly(2000)
        assert len(service.streams.live) == 1
        assert engine.sessions == 1
        writer.transport.abort()
        await until(lambda: not service.streams.live and engine.sessions == 0, 5.0)
    assert 'outcome="left"' in service.metrics.text().decode()


async def test_a_client_that_leaves_before_the_first_packet() -> None:
    app = create_app(ServerConfig(), engine=FakeSynthesizer(cost=1000.0))
    service: Service = app.state.service
    async with serving(app) as address, httpx.AsyncClient(base_url=f"http://{address}", trust_env=False) as client:
        with pytest.raises(httpx.ReadTimeout):
            await client.post(SPEECH, json=request(), timeout=0.3)
        await until(lambda: not service.streams.live, 5.0)


class FailingEngine:
    """An engine none of whose sentences can be made, or that has no place."""

    buffered_s = 0.0

    def __init__(self, *, busy: bool = False) -> None:
        self._busy = busy
        self._failures = 0
        self._ended = False

    async def ready(self) -> None:
        pass

    def open(self, priority: str = "interactive") -> FailingEngine:
        if self._busy:
            raise BusyError("all places are taken", 2.5)
        return FailingEngine()

    async def put(self, utterance: Utterance) -> None:
        self._failures += 1

    def end(self) -> None:
        self._ended = True

    def cancel(self) -> None:
        self._ended = True

    def __aiter__(self) -> FailingEngine:
        return self

    async def __anext__(self) -> AudioChunk:
        await until(lambda: self._failures or self._ended)
        if not self._failures:
            raise StopAsyncIteration
        self._failures -= 1
        raise EngineError("the model is broken")


@pytest.mark.parametrize("changes", [{}, {"stream_format": "sse"}])
async def test_a_failure_before_the_first_bytes_is_an_answer(changes: dict[str, str]) -> None:
    address = serving(create_app(ServerConfig(), engine=FailingEngine()))
    async with address as where, httpx.AsyncClient(base_url=f"http://{where}", trust_env=False) as client:
        response = await client.post(SPEECH, json=request(**changes))
        health = await client.get("/health")
    assert response.status_code == 500
    assert response.json()["error"] == {
        "message": "the model is broken",
        "type": "server_error",
        "param": None,
        "code": "failed",
    }
    assert (health.status_code, health.json()["status"]) == (503, "sick")


async def test_a_full_engine_says_when_to_come_back() -> None:
    address = serving(create_app(ServerConfig(), engine=FailingEngine(busy=True)))
    async with address as where, httpx.AsyncClient(base_url=f"http://{where}", trust_env=False) as client:
        response = await client.post(SPEECH, json=request())
    assert (response.status_code, response.headers["retry-after"]) == (503, "3")
    assert response.json()["error"]["code"] == "overloaded"


async def test_a_failure_in_the_middle_breaks_the_answer_off() -> None:
    app = create_app(ServerConfig(), engine=FakeSynthesizer(fails=lambda utterance: utterance.index == 1))
    async with client_of(app) as client:
        with pytest.raises(httpx.RemoteProtocolError):
            await client.post(SPEECH, json=request())
        async with client.stream("POST", SPEECH, json=request(stream_format="sse")) as response:
            text = (await response.aread()).decode()
        last = json.loads(text.strip().rpartition("data: ")[2])
        assert last["type"] == "error"
        assert last["error"]["type"] == "server_error"
        assert text.count("speech.audio.delta") > 1


async def test_too_many_streams_are_told_when_to_come_back() -> None:
    app = create_app(ServerConfig(limits=Limits(streams=1)), engine=FakeSynthesizer(cost=0.2))
    async with client_of(app) as client:
        async with client.stream("POST", SPEECH, json=request()) as response:
            assert response.status_code == 200
            refused = await client.post(SPEECH, json=request())
            assert refused.status_code == 503
            assert int(refused.headers["retry-after"]) >= 1
            assert refused.json()["error"]["code"] == "overloaded"
            health = await client.get("/health")
            assert (health.status_code, health.json()["status"]) == (503, "full")
        await asyncio.sleep(0)


async def test_long_input_is_made_only_so_far_ahead_of_the_client(engine: Scheduler) -> None:
    """A client that reads nothing stops the engine: what is made stays bounded."""
    app = create_app(ServerConfig(), engine=engine)
    service: Service = app.state.service
    async with serving(app) as address:
        reader, writer = await ask(address, request(input="This is a sentence of a long text. " * 570, sample_rate=48_000))
        await reader.read(100)
        stream = next(iter(service.streams.live.values()))
        made_s, since_s = -1.0, time.monotonic()
        while stream.audio_s > made_s or time.monotonic() - since_s < 1.0:
            if stream.audio_s > made_s:
                made_s, since_s = stream.audio_s, time.monotonic()
            await asyncio.sleep(0.05)
        assert 1.0 < made_s < 120.0  # the text sounds for twenty minutes
        writer.transport.abort()
        await until(lambda: not service.streams.live, 5.0)
