"""HTTP responses of real clients as sources: their body is read, and one that says it failed is an error."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from openai import AsyncOpenAI, OpenAI

from tests.llm_replay import read
from tests.sse_server import SseServer
from voice_agent.errors import SourceError
from voice_agent.llm.any_stream import stream_deltas

MODEL = "openai_chat_basic"
ASKED: Any = [{"role": "user", "content": "What is Pi?"}]


def request(server: SseServer, model: str, key: str | None = None) -> dict[str, Any]:
    """The arguments of a POST."""
    body = {"model": model, "messages": ASKED, "stream": True}
    return {"url": f"{server.url}/chat/completions", "json": body, "headers": {"authorization": f"Bearer {key or server.key}"}}


class AiohttpResponse:
    """The shape of ``aiohttp.ClientResponse``: entering gives itself, the body is in ``content``."""

    def __init__(self, pieces: list[bytes], status: int = 200) -> None:
        self.status = status
        self.content = SimpleNamespace(iter_any=lambda: self._pieces(pieces))

    async def _pieces(self, pieces: list[bytes]) -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    async def __aenter__(self) -> AiohttpResponse:
        return self

    async def __aexit__(self, *error: object) -> None:
        pass


async def source(kind: str, server: SseServer, model: str, stack: AsyncExitStack) -> Any:
    arguments = request(server, model)
    if kind in ("httpx async", "httpx async context"):
        client = await stack.enter_async_context(httpx.AsyncClient())
        context = client.stream("POST", **arguments)
        return context if kind.endswith("context") else await stack.enter_async_context(context)
    if kind in ("httpx", "httpx context", "httpx read"):
        blocking = stack.enter_context(httpx.Client())
        if kind == "httpx read":
            return await asyncio.to_thread(lambda: blocking.post(**arguments))
        there = blocking.stream("POST", **arguments)
        return there if kind.endswith("context") else await asyncio.to_thread(stack.enter_context, there)
    if kind == "requests":
        requests = pytest.importorskip("requests")
        response = await asyncio.to_thread(lambda: requests.post(stream=True, **arguments))
        return stack.enter_context(response)
    if kind in ("openai", "openai raw"):
        client_of_openai = stack.enter_context(OpenAI(base_url=server.url, api_key=server.key, max_retries=0))
        completions = client_of_openai.chat.completions
        wrapped = completions.with_raw_response if kind == "openai raw" else completions.with_streaming_response
        return wrapped.create(model=model, messages=ASKED, stream=True)
    async_client = await stack.enter_async_context(AsyncOpenAI(base_url=server.url, api_key=server.key, max_retries=0))
    if kind == "openai async raw":
        return async_client.chat.completions.with_raw_response.create(model=model, messages=ASKED, stream=True)
    return async_client.chat.completions.with_streaming_response.create(model=model, messages=ASKED, stream=True)


KINDS = ["httpx", "httpx context", "httpx read", "httpx async", "httpx async context", "requests", "openai", "openai async"]
RAW = ["openai raw", "openai async raw"]  # raise a refusal themselves, when they are asked for


@pytest.mark.parametrize("kind", [*KINDS, *RAW])
async def test_the_body_is_read(kind: str, server: SseServer) -> None:
    async with AsyncExitStack() as stack:
        got = await read(await source(kind, server, MODEL, stack))
    assert got.error is None
    assert got.text == server.streams[MODEL].expected_text


@pytest.mark.parametrize("kind", KINDS)
async def test_a_refusal_is_told_and_not_spoken(kind: str, server: SseServer) -> None:
    async with AsyncExitStack() as stack:
        got = await read(await source(kind, server, f"{MODEL}?status=429", stack))
    assert got.text == ""
    assert "Rate limit reached" in str(got.error)
    assert got.error is not None
    assert got.error.retryable


@pytest.mark.parametrize(
    ("body", "said"), [(b"<html>Bad gateway</html>", "Bad gateway"), (b'{"detail": "Not here"}', "Not here"), (b"", "502")]
)
async def test_whatever_a_server_says(body: bytes, said: str) -> None:
    with pytest.raises(SourceError, match=said) as caught:
        [delta async for delta in stream_deltas(AiohttpResponse([body], 502))]
    assert caught.value.retryable


@pytest.mark.parametrize("function", [False, True])
async def test_a_response_that_is_entered_as_itself(function: bool) -> None:
    response = AiohttpResponse([b'data: {"choices": [{"delta": {"cont', b'ent": "Hi"}}]}\n\n'])
    assert (await read((lambda: response) if function else response)).text == "Hi"


@pytest.mark.parametrize("kind", ["httpx", "httpx context"])
async def test_cancelling_ends_a_read_that_blocks(kind: str, server: SseServer) -> None:
    async with AsyncExitStack() as stack:
        stalled = await source(kind, server, f"{MODEL}?fault=stall&after=3", stack)
        deltas = stream_deltas(stalled)
        await anext(deltas)
        pending = asyncio.ensure_future(_all(deltas))
        await asyncio.sleep(0.1)
        pending.cancel()
        await asyncio.wait({pending})
        assert pending.cancelled()
        assert await asyncio.to_thread(server.requests[0].left.wait, 2), "the request goes on"


async def _all(deltas: AsyncIterator[Any]) -> list[Any]:
    return [delta async for delta in deltas]
