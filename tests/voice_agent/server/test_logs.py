"""The log, spans, and what pages of other origins are told."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from voice_agent.errors import EngineError, MissingExtraError
from voice_agent.server.answers import StreamedAnswer
from voice_agent.server.app import create_app
from voice_agent.server.config import Limits, LogSettings, ServerConfig
from voice_agent.server.logs import set_up_logging
from voice_agent.server.service import Service
from voice_agent.server.tracing import Tracer
from voice_agent.testing.fake_engine import FakeSynthesizer


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    names = ("sayline", "voice_agent", "tts_engine", "uvicorn", "aiortc", "uvicorn.access")
    before = {name: (logging.getLogger(name).handlers, logging.getLogger(name).propagate) for name in names}
    file = io.StringIO()
    set_up_logging("info", file)
    yield file
    for name, (handlers, propagate) in before.items():
        logging.getLogger(name).handlers, logging.getLogger(name).propagate = handlers, propagate


@pytest.mark.parametrize("asked", [False, True])
def test_what_was_said_is_logged_only_when_it_is_asked_for(log: io.StringIO, asked: bool) -> None:
    service = Service(ServerConfig(logs=LogSettings(text=asked)), FakeSynthesizer())
    with service.streams.open("live", "web", "heart") as stream:
        stream.text(6, "Hello ")
        stream.text(5, "you.\n")
        stream.heard(1.5)
    line = json.loads(log.getvalue())
    assert line.get("text") == ("Hello you.\n" if asked else None)
    assert (line["kind"], line["guest"], line["voice"], line["text_len"]) == ("live", "web", "heart", 11)
    assert (line["heard_s"], line["latency_ms"], line["outcome"]) == (1.5, None, "ok")


def test_a_trace_is_one_line(log: io.StringIO) -> None:
    try:
        raise ValueError("a\nb")
    except ValueError:
        logging.getLogger("voice_agent.server.live").exception("it broke")
    line = json.loads(log.getvalue())
    assert (line["level"], line["message"]) == ("error", "it broke")
    assert "ValueError: a\nb" in line["trace"]


class Spans:
    """A tracer that remembers."""

    def __init__(self) -> None:
        self.ended: list[tuple[str, dict[str, Any]]] = []
        self._attributes: dict[str, Any] = {}

    @contextmanager
    def start_as_current_span(self, name: str) -> Iterator[Spans]:
        self._attributes = {}
        yield self
        self.ended.append((name, self._attributes))

    def set_attribute(self, name: str, value: object) -> None:
        self._attributes[name] = value


def test_a_span_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = pytest.importorskip("opentelemetry.trace")
    spans = Spans()
    monkeypatch.setattr(trace, "get_tracer", lambda name: spans)
    service = Service(ServerConfig(logs=LogSettings(traces=True)), FakeSynthesizer())
    with service.streams.open("speech", "web", "auto") as stream:
        stream.text(3, "Hi.")
    ((name, attributes),) = spans.ended
    assert name == "sayline.speech"
    assert (attributes["sayline.uid"], attributes["sayline.text_chars"]) == (stream.uid, 3)
    assert "Hi." not in str(attributes)


def test_traces_need_opentelemetry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    Tracer(False)
    with pytest.raises(MissingExtraError, match="pip install opentelemetry"):
        Tracer(True)


async def test_pages_of_known_origins_may_read_answers_and_refusals() -> None:
    app = create_app(ServerConfig(origins=("https://app.example",)), engine=FakeSynthesizer())
    known, unknown = {"origin": "https://app.example"}, {"origin": "https://evil.example"}
    asking = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type"}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        before = await client.options("/v1/audio/speech", headers={**known, **asking})
        assert (before.status_code, before.headers["access-control-allow-origin"]) == (200, "https://app.example")
        assert "authorization" in before.headers["access-control-allow-headers"]
        listed = await client.get("/v1/models", headers=known)
        assert (listed.status_code, listed.headers["access-control-allow-origin"]) == (200, "https://app.example")
        wrong = await client.get("/v1/models/none", headers=known)
        assert (wrong.status_code, wrong.headers["access-control-allow-origin"]) == (404, "https://app.example")
        assert (await client.options("/v1/audio/speech", headers={**unknown, **asking})).status_code == 400
        refused = await client.get("/v1/models", headers=unknown)
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "origin_not_allowed")
        assert "access-control-allow-origin" not in refused.headers


def test_texts_are_kept_only_for_the_log_and_only_so_much_of_them() -> None:
    for asked in (False, True):
        service = Service(ServerConfig(logs=LogSettings(text=asked), limits=Limits(text_chars=1000)), FakeSynthesizer())
        with service.streams.open("live", "web", "heart") as stream:
            for _ in range(1000):
                stream.text(100, "x" * 100)
            assert sum(map(len, stream.said)) == (1000 if asked else 0)
            assert stream.text_chars == 100_000


async def test_an_answer_that_breaks_off_logs_nothing_of_what_was_said(log: io.StringIO) -> None:
    async def pieces() -> AsyncGenerator[bytes, None]:
        yield b"x"
        raise EngineError("cannot say 'my secret'")

    async def receive() -> dict[str, Any]:
        return await asyncio.Event().wait()  # type: ignore[return-value]

    async def send(message: Any) -> None:
        pass

    await StreamedAnswer(pieces(), "audio/wav")({"type": "http"}, receive, send)
    (line,) = log.getvalue().splitlines()
    assert "EngineError" in line
    assert "secret" not in line
