"""``POST /v1/chat/speech``: the model's answer as audio and as events, its failures, and a client that leaves."""

from __future__ import annotations

import base64
import json
import wave
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Any

import httpx
import pytest

from tests.voice_agent.scripted import ScriptedModel
from tests.voice_agent.server.serving import serving, until
from voice_agent.errors import SourceError
from voice_agent.server.app import create_app
from voice_agent.server.config import Limits, LlmSettings, ServerConfig
from voice_agent.testing.fake_engine import FakeSynthesizer

ANSWER = ["Your parcel ", "left on ", "Monday. ", "It arrives ", "tomorrow."]
ASKED = [{"role": "user", "content": "Where is my parcel?"}]


@asynccontextmanager
async def client_of(model: Any = None, **config: Any) -> AsyncGenerator[httpx.AsyncClient, None]:
    app = create_app(ServerConfig(**config), engine=FakeSynthesizer(cost=0.01), model=model)
    async with serving(app) as address, httpx.AsyncClient(base_url=f"http://{address}", timeout=20) as client:
        client.service = app.state.service  # type: ignore[attr-defined]
        yield client


def events_of(body: str) -> list[dict[str, Any]]:
    return [json.loads(line.removeprefix("data: ")) for line in body.splitlines() if line.startswith("data: ")]


async def test_the_answer_as_audio():
    model = ScriptedModel(ANSWER)
    async with client_of(model) as client:
        answer = await client.post("/v1/chat/speech", json={"messages": ASKED, "response_format": "wav", "sample_rate": 16_000})
        assert (answer.status_code, answer.headers["content-type"]) == (200, "audio/wav")
        data = bytearray(answer.content)
        data[40:44] = (len(data) - 44).to_bytes(4, "little")
        with wave.open(BytesIO(bytes(data))) as file:
            assert file.getframerate() == 16_000
            assert 2 < file.getnframes() / 16_000 < 6
    assert model.asked == [ASKED]


async def test_the_answer_as_events():
    async with client_of(ScriptedModel(ANSWER)) as client:
        wanted = {"messages": ASKED, "response_format": "pcm", "stream_format": "sse", "speed": 2.0}
        answer = await client.post("/v1/chat/speech", json=wanted)
        events = events_of(answer.text)
        assert "".join(event["delta"] for event in events if event["type"] == "chat.text.delta") == "".join(ANSWER)
        words = {word["index"]: word for event in events if event["type"] == "speech.words" for word in event["words"]}
        assert " ".join(word["text"] for word in words.values()) == "".join(ANSWER)
        audio = b"".join(base64.b64decode(event["audio"]) for event in events if event["type"] == "speech.audio.delta")
        done = events[-1]
        assert done["type"] == "speech.audio.done"
        assert done["text"] == "".join(ANSWER)
        assert len(audio) == pytest.approx(done["duration_s"] * 48_000, abs=4)
        assert words[len(words) - 1]["end_ms"] <= done["duration_s"] * 1000


async def test_the_first_sound_comes_while_the_answer_is_written():
    async with client_of(ScriptedModel([*ANSWER, 2.0, " And that is all."])) as client:
        wanted = {"messages": ASKED, "stream_format": "sse", "response_format": "pcm"}
        async with client.stream("POST", "/v1/chat/speech", json=wanted) as answer:
            kinds = []
            async for line in answer.aiter_lines():
                if line.startswith("data: "):
                    event = json.loads(line.removeprefix("data: "))
                    kinds.append(event["type"])
                    if event.get("delta") == " And that is all.":
                        break
            assert "speech.audio.delta" in kinds


async def test_a_client_that_leaves_stops_the_model():
    model = ScriptedModel([*ANSWER, 60.0])
    async with client_of(model) as client:
        async with client.stream("POST", "/v1/chat/speech", json={"messages": ASKED, "response_format": "pcm"}) as answer:
            await anext(answer.aiter_bytes())
            assert model.open == 1
        await until(lambda: not model.open)
        await until(lambda: not client.service.streams.live)


async def test_a_model_that_fails_before_it_says_anything():
    async with client_of(ScriptedModel([SourceError("the LLM is down")])) as client:
        for form in ("audio", "sse"):
            answer = await client.post("/v1/chat/speech", json={"messages": ASKED, "stream_format": form})
            assert answer.status_code == 502
            assert "the LLM is down" in answer.json()["error"]["message"]


async def test_a_model_that_fails_in_the_middle():
    async with client_of(ScriptedModel([*ANSWER, SourceError("the LLM is down")])) as client:
        wanted = {"messages": ASKED, "response_format": "pcm"}
        answer = await client.post("/v1/chat/speech", json={**wanted, "stream_format": "sse"})
        events = events_of(answer.text)
        assert [event["error"]["message"] for event in events if event["type"] == "error"] == ["the LLM is down"]
        assert [event for event in events if event["type"] == "speech.audio.delta"]
        assert events[-1]["text"] == "".join(ANSWER)
        with pytest.raises(httpx.RemoteProtocolError):  # an answer that is not whole does not look whole
            await client.post("/v1/chat/speech", json=wanted)


@pytest.mark.parametrize(
    ("wanted", "param"),
    [
        ({}, "messages"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "pope", "content": "x"}]}, "messages"),
        ({"messages": [{"role": "user", "content": "x" * 101}]}, "messages"),
        ({"messages": ASKED, "voice": "nobody"}, "voice"),
        ({"messages": ASKED, "speed": 9}, "speed"),
        ({"messages": ASKED, "response_format": "opus", "sample_rate": 44_100}, "sample_rate"),
    ],
)
async def test_what_cannot_be_done_is_refused(wanted, param):
    async with client_of(ScriptedModel(ANSWER), limits=Limits(text_chars=100)) as client:
        answer = await client.post("/v1/chat/speech", json=wanted)
        assert answer.status_code == 400
        assert answer.json()["error"]["param"] == param


async def test_messages_as_clients_of_openai_send_them():
    model = ScriptedModel(ANSWER)
    parts = [{"type": "text", "text": "Where is "}, {"type": "text", "text": "my parcel?"}]
    messages = [{"role": "user", "content": parts, "name": "ann"}, {"role": "assistant", "content": "On its way."}]
    async with client_of(model) as client:
        answer = await client.post("/v1/chat/speech", json={"messages": messages, "response_format": "pcm"})
        assert answer.status_code == 200
        said = {"role": "user", "content": "Where is my parcel?", "name": "ann"}
        assert model.asked == [[said, {"role": "assistant", "content": "On its way."}]]
        for content in ([{"type": "image_url", "image_url": "x"}], [{"type": "text"}], [1], {"type": "text", "text": "x"}):
            answer = await client.post("/v1/chat/speech", json={"messages": [{"role": "user", "content": content}]})
            assert answer.status_code == 400
            assert "messages[0].content" in answer.json()["error"]["message"]


async def test_without_a_model_there_is_no_answer():
    async with client_of(llm=LlmSettings(kind="none")) as client:
        answer = await client.post("/v1/chat/speech", json={"messages": ASKED})
        assert answer.status_code == 501
        assert "no language model" in answer.json()["error"]["message"]


async def test_waits_and_failures_are_counted():
    async with client_of(ScriptedModel(ANSWER)) as client:
        assert (await client.post("/v1/chat/speech", json={"messages": ASKED})).status_code == 200
        assert 'sayline_real_time_factor_count{kind="chat"} 1.0' in client.service.metrics.text().decode()
    async with client_of(ScriptedModel([SourceError("the model is away")])) as client:
        for form in ("audio", "sse"):
            answer = await client.post("/v1/chat/speech", json={"messages": ASKED, "stream_format": form})
            assert answer.status_code == 502
        await until(lambda: not client.service.streams.live)
        counted = 'sayline_requests_total{kind="chat",outcome="model_failed"} 2.0'
        assert counted in client.service.metrics.text().decode()
