"""A real llama.cpp server with a real small model, read in each wire format that it speaks. See tests/peer_llama.py."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from openai import AsyncOpenAI

from tests.llm_replay import Outcome, read
from tests.peer_llama import MODEL, running
from voice_agent.llm.deltas import End, TextDelta
from voice_agent.llm.openai_client import OpenAIChat

pytestmark = pytest.mark.peer
ASKED = [{"role": "user", "content": "Count: one, two, three, four,"}]
TOKENS = 6


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    given, venv = os.environ.get("SAYLINE_LLAMA_SERVER_URL"), os.environ.get("SAYLINE_LLAMA_VENV")
    if given:
        yield given
    elif venv:
        with running(Path(venv)) as started:
            yield started
    else:
        pytest.skip("no llama.cpp server: set SAYLINE_LLAMA_SERVER_URL or SAYLINE_LLAMA_VENV (see tests/peer_llama.py)")


def post(url: str, path: str, **body: Any) -> Any:
    """The raw response of a plain HTTP client: an iterable of lines, as bytes."""
    request = urllib.request.Request(
        url.removesuffix("/v1") + path,
        data=json.dumps({"model": MODEL, "stream": True, **body}).encode(),
        headers={"content-type": "application/json"},
    )
    return urllib.request.urlopen(request, timeout=120)


def spoke(got: Outcome) -> None:
    assert got.error is None, got.error
    assert got.text.strip()
    assert "None" not in got.text
    assert "{" not in got.text
    assert isinstance(got.deltas[-1], End)


@pytest.fixture
async def client(url: str) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=url, api_key="unused", timeout=120) as opened:
        yield opened


async def test_chat_completions(client: AsyncOpenAI) -> None:
    got = await read(client.chat.completions.create(model=MODEL, messages=ASKED, stream=True, max_tokens=TOKENS, temperature=0))
    spoke(got)
    assert isinstance(got.deltas[-1], End)
    assert got.deltas[-1].reason in ("length", "stop")


async def test_text_completions(client: AsyncOpenAI) -> None:
    spoke(
        await read(
            client.completions.create(model=MODEL, prompt="one, two, three,", stream=True, max_tokens=TOKENS, temperature=0)
        )
    )


async def test_responses(client: AsyncOpenAI) -> None:
    spoke(await read(client.responses.create(model=MODEL, input="one, two,", stream=True, max_output_tokens=TOKENS)))


async def test_raw_bodies(url: str) -> None:
    """SSE of three formats as the lines of a plain HTTP client, read in a thread."""
    with post(url, "/v1/chat/completions", messages=ASKED, max_tokens=TOKENS) as body:
        spoke(await read(body))
    with post(url, "/v1/messages", messages=ASKED, max_tokens=TOKENS) as body:
        spoke(await read(iter(body)))
    with post(url, "/completion", prompt="one, two, three,", n_predict=TOKENS) as body:
        spoke(await read(iter(body), "sse"))


async def test_our_model_stops_when_it_is_closed(url: str) -> None:
    async with (
        OpenAIChat(MODEL, base_url=url, api_key="unused", timeout_s=120) as model,
        aclosing(model.reply(ASKED)) as deltas,
    ):
        texts = [delta.text for delta in [await anext(deltas), await anext(deltas)] if isinstance(delta, TextDelta)]
    assert texts
