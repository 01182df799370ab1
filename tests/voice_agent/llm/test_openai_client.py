"""The real ``openai`` client over real HTTP: chat and Responses, async and sync, faults, keys, models and
cancellation.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from openai import AsyncOpenAI, OpenAI

from tests.llm_replay import RecordedStream, check, load_streams, outcome, read
from tests.sse_server import SseServer
from voice_agent.errors import ConfigError, SourceError
from voice_agent.llm.any_stream import stream_deltas
from voice_agent.llm.deltas import Delta, End, TextDelta
from voice_agent.llm.openai_client import OpenAIChat


def over(*formats: str) -> list[RecordedStream]:
    """The recordings that a server of one of these formats can send."""
    return [stream for stream in load_streams() if (stream.inner or stream.format) in formats]


CHAT = over("openai_chat", "text")
RESPONSES = over("openai_responses")
ASKED = [{"role": "user", "content": "Hello"}]


@pytest.fixture
async def client(server: SseServer) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=server.url, api_key=server.key, max_retries=0) as opened:
        yield opened


@pytest.fixture
def blocking(server: SseServer) -> Iterator[OpenAI]:
    with OpenAI(base_url=server.url, api_key=server.key, max_retries=0) as opened:
        yield opened


def chat(server: SseServer, model: str, **options: object) -> OpenAIChat:
    return OpenAIChat(model, base_url=server.url, api_key=server.key, retries=0, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("stream", CHAT, ids=lambda stream: stream.id)
@pytest.mark.parametrize("cut", [0, 5])
async def test_chat_completions(
    stream: RecordedStream, cut: int, client: AsyncOpenAI, blocking: OpenAI, server: SseServer
) -> None:
    model = f"{stream.id}?cut={cut}"

    def create_blocking() -> object:
        return blocking.chat.completions.create(model=model, messages=ASKED, stream=True)

    check(stream, await read(await client.chat.completions.create(model=model, messages=ASKED, stream=True)))
    check(stream, await read(client.chat.completions.create(model=model, messages=ASKED, stream=True)))
    check(stream, await read(create_blocking()))
    check(stream, await read(create_blocking))
    async with chat(server, model) as ours:
        got = await outcome(ours.reply(ASKED))
    if got.error is not None and "without a finish reason" in str(got.error):
        got.error = None
    check(stream, got)


@pytest.mark.parametrize("stream", RESPONSES, ids=lambda stream: stream.id)
async def test_responses(stream: RecordedStream, client: AsyncOpenAI, blocking: OpenAI) -> None:
    check(stream, await read(await client.responses.create(model=stream.id, input="Hello", stream=True)))
    check(stream, await read(blocking.responses.create(model=stream.id, input="Hello", stream=True)))


async def test_stream_helpers(client: AsyncOpenAI, blocking: OpenAI) -> None:
    [stream] = [stream for stream in CHAT if stream.id == "openai_chat_basic"]
    check(stream, await read(client.chat.completions.stream(model=stream.id, messages=ASKED)))
    check(stream, await read(blocking.chat.completions.stream(model=stream.id, messages=ASKED)))
    for stream in RESPONSES:
        check(stream, await read(client.responses.stream(model=stream.id, input="Hello")))


@pytest.mark.parametrize("fault", ["disconnect", "torn", "error"])
async def test_faults_in_mid_stream(server: SseServer, client: AsyncOpenAI, blocking: OpenAI, fault: str) -> None:
    model = f"openai_chat_basic?fault={fault}&after=8"
    async with chat(server, model) as chat_model:
        got = await outcome(chat_model.reply(ASKED))
    assert got.text == "Pi is 3.14."
    assert got.error is not None
    assert got.error.retryable
    assert server.url in str(got.error)
    for create in (client.chat.completions.create, blocking.chat.completions.create):
        got = await outcome(stream_deltas(create(model=model, messages=ASKED, stream=True)))
        assert got.text == "Pi is 3.14."
        if fault == "torn":  # the client drops a torn event without a word: only the missing reason tells
            assert got.deltas[-1] == End(None)
        else:
            assert got.error is not None
            assert got.error.__cause__ is not None
            assert got.error.retryable


@pytest.mark.parametrize(
    ("model", "says", "retryable"),
    [
        ("openai_chat_basic?status=400", "400", False),
        ("openai_chat_basic?status=401", "OPENAI_API_KEY", False),
        ("openai_chat_basic?status=403", "rights", False),
        ("no-such-model", "it offers anthropic_markdown_emoji", False),
        ("openai_chat_basic?status=429", "wait a little", True),
        ("openai_chat_basic?status=500", "try again", True),
        ("openai_chat_basic?status=503", "try again", True),
    ],
)
async def test_refusals_say_what_to_do(server: SseServer, model: str, says: str, retryable: bool) -> None:
    async with chat(server, model) as chat_model:
        got = await outcome(chat_model.reply(ASKED))
    assert got.deltas == []
    assert got.error is not None
    assert says in str(got.error)
    assert got.error.retryable is retryable


async def test_wrong_key_is_not_shown(server: SseServer) -> None:
    async with OpenAIChat("openai_chat_basic", base_url=server.url, api_key="sk-very-secret-0123456789abcdef") as model:
        got = await outcome(model.reply(ASKED))
    assert "401" in str(got.error)
    assert "very-secret" not in str(got.error)


async def test_connection_refused_names_the_address() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
    async with OpenAIChat("m", base_url=url, retries=0) as model:
        got = await outcome(model.reply(ASKED))
    assert got.error is not None
    assert url in str(got.error)
    assert "check that the server runs" in str(got.error)
    assert got.error.retryable


async def test_stall_times_out(server: SseServer) -> None:
    async with chat(server, "openai_chat_basic?fault=stall&after=3", timeout_s=0.1) as model:
        got = await outcome(model.reply(ASKED))
    assert got.text == "Pi is"
    assert got.error is not None
    assert got.error.retryable
    assert "time" in str(got.error)


async def test_slow_headers_time_out(server: SseServer) -> None:
    async with chat(server, "openai_chat_basic?headers_s=5", timeout_s=0.1) as model:
        got = await outcome(model.reply(ASKED))
    assert got.error is not None
    assert got.error.retryable


async def test_not_an_api(server: SseServer) -> None:
    async with OpenAIChat("openai_chat_basic", base_url=server.address + "/api", api_key=server.key) as model:
        got = await outcome(model.reply(ASKED))
    assert got.error is not None


def test_configuration_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set"):
        OpenAIChat("gpt-4o-mini")
    with pytest.raises(ConfigError, match="starts with http"):
        OpenAIChat("m", base_url="localhost:8080/v1")
    with pytest.raises(ConfigError, match="no model"):
        OpenAIChat("", base_url="http://localhost:8080/v1")


async def test_environment_and_system_message(server: SseServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", server.key)
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    tool = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {}}}}
    async with OpenAIChat("openai_chat_tools_between", system="Be brief.") as model:
        await outcome(model.reply(ASKED, tools=[tool]))
        await outcome(model.reply([{"role": "system", "content": "Mine."}, *ASKED]))
    first, second = server.requests
    assert first.body["messages"] == [{"role": "system", "content": "Be brief."}, *ASKED]
    assert first.body["tools"] == [tool]
    assert second.body["messages"][0]["content"] == "Mine."
    assert "tools" not in second.body


async def test_connection_is_kept_between_turns(server: SseServer) -> None:
    async with chat(server, "openai_chat_basic") as model:
        for _ in range(3):
            got = await outcome(model.reply(ASKED))
            assert isinstance(got.deltas[-1], End)
            assert got.deltas[-1].reason == "stop"


@pytest.mark.parametrize("kind", ["model", "async client", "sync client", "sync client in a callable"])
async def test_cancelling_stops_the_request(server: SseServer, client: AsyncOpenAI, blocking: OpenAI, kind: str) -> None:
    name = "openai_chat_basic?fault=stall&after=3"
    before = set(threading.enumerate())

    def create(some_client: object) -> Any:
        return some_client.chat.completions.create(model=name, messages=ASKED, stream=True)  # type: ignore[attr-defined]

    async with chat(server, name) as model:
        source = {
            "model": lambda: model.reply(ASKED),
            "async client": lambda: stream_deltas(create(client)),
            "sync client": lambda: stream_deltas(create(blocking)),
            "sync client in a callable": lambda: stream_deltas(lambda: create(blocking)),
        }[kind]()
        two_came = asyncio.Event()
        task = asyncio.create_task(_signal_after(source, 2, two_came))
        await two_came.wait()
        started = time.perf_counter()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.perf_counter() - started < 2.5, "cancelling has to be quick"
        [request] = server.requests
        assert await asyncio.to_thread(request.left.wait, 2), "the request goes on"
    assert not [thread for thread in set(threading.enumerate()) - before if thread.name == "llm-source"]


async def _signal_after(deltas: AsyncIterator[Delta], count: int, event: asyncio.Event) -> None:
    async for _ in deltas:
        count -= 1
        if count == 0:
            event.set()


async def test_cancelling_before_the_headers(server: SseServer) -> None:
    async with chat(server, "openai_chat_basic?headers_s=30") as model:
        task = asyncio.create_task(outcome(model.reply(ASKED)))
        assert await asyncio.to_thread(server.came.wait, 2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.requests[0].left.wait, 2)


async def test_leaving_early_closes_the_request(server: SseServer) -> None:
    async with chat(server, "openai_chat_basic?scale=1") as model:
        deltas = model.reply(ASKED)
        assert isinstance(await anext(deltas), TextDelta)
        await deltas.aclose()
        assert await asyncio.to_thread(server.requests[0].left.wait, 2)


async def test_replayed_in_time(server: SseServer) -> None:
    """The first text comes when the server sends it, not at the end."""
    async with chat(server, "openai_chat_basic?scale=0.5") as model:
        arrived = [time.perf_counter() async for delta in model.reply(ASKED) if isinstance(delta, TextDelta)]
    assert arrived[-1] - arrived[0] > 0.1


async def test_error_is_raised_in_place(server: SseServer) -> None:
    async with chat(server, "openai_chat_error_mid_sentence") as model:
        with pytest.raises(SourceError, match="stopped while answering"):
            [delta async for delta in model.reply(ASKED)]
