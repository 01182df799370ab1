"""Whatever a client gets wrong about HTTP is told in OpenAI's form, with what to do instead."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Mapping

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.voice_agent.server.serving import serving
from voice_agent.server.app import create_app
from voice_agent.server.config import ServerConfig
from voice_agent.testing.fake_engine import FakeSynthesizer

SPEECH = "/v1/audio/speech"
REQUEST = {"model": "tts-1", "voice": "alloy", "input": "Good morning.", "response_format": "pcm"}


def client_of_a_server() -> httpx.AsyncClient:
    app = create_app(ServerConfig(), engine=FakeSynthesizer(cost=0.0))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1")


def checked(body: Mapping[str, Mapping[str, str | None]]) -> Mapping[str, str | None]:
    """The error of an answer in OpenAI's form."""
    assert set(body) == {"error"}
    error = body["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["type"] == "invalid_request_error"
    return error


@pytest.mark.parametrize(
    ("content_type", "shown"),
    [("text/plain", "text/plain"), ("application/x-www-form-urlencoded", "x-www-form-urlencoded"), (None, "missing"),
     ("multipart/form-data; boundary=x", "multipart/form-data"), ("x" * 5000, "xxx...")],
)  # fmt: skip
async def test_a_body_that_is_not_said_to_be_json(content_type: str | None, shown: str) -> None:
    async with client_of_a_server() as client:
        headers = {} if content_type is None else {"content-type": content_type}
        answer = await client.post(SPEECH, content=json.dumps(REQUEST), headers=headers)
    error = checked(answer.json())
    assert (answer.status_code, error["code"]) == (400, "unsupported_content_type")
    assert shown in str(error["message"])
    assert "Content-Type: application/json" in str(error["message"])
    assert len(str(error["message"])) < 200


@pytest.mark.parametrize("content_type", ["application/json; charset=utf-8", "Application/JSON", "application/vnd.api+json"])
async def test_json_by_other_names(content_type: str) -> None:
    async with client_of_a_server() as client:
        answer = await client.post(SPEECH, content=json.dumps(REQUEST), headers={"content-type": content_type})
    assert answer.status_code == 200
    assert len(answer.content) > 10_000


@pytest.mark.parametrize(
    ("method", "path", "status", "code", "told"),
    [
        ("GET", "/v1/nothing", 404, "not_found", "GET /v1/nothing"),
        ("POST", "/nothing", 404, "not_found", "POST /nothing"),
        ("GET", SPEECH, 405, "method_not_allowed", "use POST"),
        ("OPTIONS", "/health", 405, "method_not_allowed", "use GET"),
        ("GET", f"{SPEECH}/stream", 426, "upgrade_required", "WebSocket"),
        ("GET", "/" + "x" * 3000, 404, "not_found", "xxx..."),
    ],
)
async def test_what_is_not_there(method: str, path: str, status: int, code: str, told: str) -> None:
    async with client_of_a_server() as client:
        answer = await client.request(method, path)
    error = checked(answer.json())
    assert (answer.status_code, error["code"]) == (status, code)
    assert told in str(error["message"])
    assert ("allow" in answer.headers) == (status == 405)


@pytest.mark.parametrize(
    ("change", "param", "code", "told"),
    [
        ({"stream": True}, "stream", "unknown_parameter", "parameter stream: leave it out"),
        ({"voice": {"id": "alloy", "tone": 1}}, "voice", "unknown_parameter", "voice.tone"),
        ({"voice": {"name": "alloy"}}, "voice", "missing", "voice.id"),
        ({"voice": 3}, "voice", "string_type", "voice:"),
        ({"input": None}, "input", "missing", "input:"),
    ],
)
async def test_fields_that_are_wrong(change: dict[str, object], param: str, code: str, told: str) -> None:
    async with client_of_a_server() as client:
        answer = await client.post(SPEECH, json={**REQUEST, **change})
    error = checked(answer.json())
    assert (answer.status_code, error["param"], error["code"]) == (400, param, code)
    assert told in str(error["message"])


async def test_null_is_as_good_as_left_out() -> None:
    nulls = dict.fromkeys(("voice", "instructions", "speed", "sample_rate", "stream_format"))
    async with client_of_a_server() as client:
        plain = await client.post(SPEECH, json=REQUEST)
        answer = await client.post(SPEECH, json={**REQUEST, **nulls})
        mp3 = await client.post(SPEECH, json={**REQUEST, "response_format": None})
    assert answer.status_code == 200
    assert answer.content == plain.content
    assert mp3.headers["content-type"] == "audio/mpeg"


@pytest.mark.parametrize("path", ["/health", "/", "/v1/models"])
async def test_head_is_get_without_a_body(path: str) -> None:
    app = create_app(ServerConfig(), engine=FakeSynthesizer(cost=0.0))
    async with serving(app) as address, httpx.AsyncClient(base_url=f"http://{address}", trust_env=False) as client:
        get, head = await client.get(path), await client.head(path)
    assert (head.status_code, head.content) == (get.status_code, b"")
    assert head.headers["content-type"] == get.headers["content-type"]
    assert len(get.content) > 0


@pytest.mark.parametrize("path", ["/nothing", SPEECH, "/", "/v1/speak/x"])
async def test_a_socket_that_is_not_there(path: str) -> None:
    app = create_app(ServerConfig(), engine=FakeSynthesizer(cost=0.0))
    async with serving(app) as address:
        with pytest.raises(InvalidStatus) as refused:
            await connect(f"ws://{address}{path}", proxy=None)
    response = refused.value.response
    assert response.status_code == 404
    assert "/v1/audio/speech/stream" in str(checked(json.loads(response.body or b""))["message"])


async def test_what_is_no_http_is_told_so() -> None:
    app = create_app(ServerConfig(), engine=FakeSynthesizer(cost=0.0))
    async with serving(app) as address:
        host, port = address.split(":")
        answer = await _said(host, int(port), b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request")
    assert checked(json.loads(body))["code"] == "bad_request"


async def _said(host: str, port: int, data: bytes) -> bytes:
    """All that the server answers until it closes."""
    reader, writer = await asyncio.open_connection(host, port, family=socket.AF_INET)
    writer.write(data)
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    return answer
