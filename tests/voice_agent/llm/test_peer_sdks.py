"""The real SDKs and frameworks of others, over HTTP against the local server; skipped where they are not installed.

pip install anthropic ollama litellm langchain-openai langgraph openai-agents
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.llm_replay import RecordedStream, check, load_streams, read
from tests.sse_server import SseServer

pytestmark = [pytest.mark.peer, pytest.mark.filterwarnings("ignore")]
ASKED = [{"role": "user", "content": "Hello"}]


@pytest.fixture(autouse=True)
def connections_of_sdks_end_here() -> Iterator[None]:
    """Several SDKs leave their connections to the garbage collector, whose warnings must not fall on another test."""
    yield
    gc.collect()


def recordings(kind: str) -> Any:
    streams = [stream for stream in load_streams() if (stream.inner or stream.format) == kind]
    return pytest.mark.parametrize("stream", streams, ids=lambda stream: stream.id)


def without_refusals(stream: RecordedStream) -> None:
    if any("refusal" in str(chunk) and "content" not in str(chunk) for chunk in stream.chunks):
        pytest.skip("this library drops refusals before anyone can read them")


@recordings("anthropic_messages")
async def test_anthropic(stream: RecordedStream, server: SseServer) -> None:
    anthropic = pytest.importorskip("anthropic")
    for make in (anthropic.AsyncAnthropic, anthropic.Anthropic):
        messages = make(base_url=server.address, api_key=server.key).messages
        check(stream, await read(messages.create(model=stream.id, messages=ASKED, max_tokens=9, stream=True)))
        check(stream, await read(messages.stream(model=stream.id, messages=ASKED, max_tokens=9)))


@recordings("ollama")
async def test_ollama(stream: RecordedStream, server: SseServer) -> None:
    ollama = pytest.importorskip("ollama")
    for make in (ollama.AsyncClient, ollama.Client):
        client = make(host=server.address)
        if "response" in stream.chunks[0]:
            check(stream, await read(client.generate(model=stream.id, prompt="Hello", stream=True)))
        else:
            check(stream, await read(client.chat(model=stream.id, messages=ASKED, stream=True)))


@recordings("openai_chat")
async def test_litellm(stream: RecordedStream, server: SseServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    litellm = pytest.importorskip("litellm")
    without_refusals(stream)
    request = {"messages": ASKED, "api_base": server.url, "api_key": server.key, "stream": True}
    check(stream, await read(litellm.acompletion(model=f"openai/{stream.id}", **request)))
    check(stream, await read(lambda: litellm.completion(model=f"openai/{stream.id}", **request)))


@recordings("openai_chat")
async def test_langchain(stream: RecordedStream, server: SseServer) -> None:
    openai = pytest.importorskip("langchain_openai")
    without_refusals(stream)
    model = openai.ChatOpenAI(model=stream.id, base_url=server.url, api_key=server.key, max_retries=0)
    check(stream, await read(model.astream("Hello")))
    check(stream, await read(model.stream("Hello")))
    check(stream, await read(model.astream_events("Hello", version="v2")))


@recordings("openai_responses")
async def test_langchain_over_responses(stream: RecordedStream, server: SseServer) -> None:
    openai = pytest.importorskip("langchain_openai")
    model = openai.ChatOpenAI(model=stream.id, base_url=server.url, api_key=server.key, use_responses_api=True)
    check(stream, await read(model.astream("Hello")))


@pytest.mark.parametrize(
    "options", [{"stream_mode": "messages"}, {"stream_mode": ["updates", "messages", "values"], "subgraphs": True}]
)
async def test_langgraph(options: dict[str, Any], server: SseServer) -> None:
    graph = pytest.importorskip("langgraph.graph")
    openai = pytest.importorskip("langchain_openai")
    [stream] = [stream for stream in load_streams() if stream.id == "openai_chat_basic"]
    model = openai.ChatOpenAI(model=stream.id, base_url=server.url, api_key=server.key)
    state: Any = graph.MessagesState
    builder = graph.StateGraph(state)
    builder.add_node("answer", _node(model))
    builder.add_edge(graph.START, "answer")
    check(stream, await read(builder.compile().astream({"messages": [("user", "Hello")]}, **options)))


def _node(model: Any) -> Callable[[Any], Any]:
    async def answer(state: dict[str, Any]) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])]}

    return answer


async def test_openai_agents(server: SseServer) -> None:
    agents = pytest.importorskip("agents")
    from openai import AsyncOpenAI

    agents.set_tracing_disabled(True)
    [stream] = [stream for stream in load_streams() if stream.id == "openai_responses_zh"]
    client = AsyncOpenAI(base_url=server.url, api_key=server.key)
    agent = agents.Agent(name="agent", model=agents.OpenAIResponsesModel(stream.id, client))
    check(stream, await read(agents.Runner.run_streamed(agent, "Hello").stream_events()))
