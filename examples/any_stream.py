"""Speaks every kind of stream there is: strings, generators, queues, chunks of SDKs, raw server-sent events, files.

    python examples/any_stream.py [--out FILE.wav | --no-play]

Each call is the same: ``await speak(whatever, sink)``. No key and no server is needed; the streams are made up here.
"""

from __future__ import annotations

import asyncio
import io
import json
import queue
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from examples._common import options, run
from tts_engine.scheduler import Scheduler
from voice_agent import speak
from voice_agent.sinks.opening import open_sink


def generator() -> Iterator[str]:
    """What ``requests`` or any other blocking library gives; it runs in a thread of its own."""
    yield "A plain "
    yield "generator. "


async def async_generator() -> AsyncIterator[str]:
    for word in ["An", "async", "generator,", "word", "by", "word."]:
        await asyncio.sleep(0.02)
        yield f"{word} "


def openai_chunks() -> Iterator[Any]:
    """Objects with attributes, as the ``openai`` package gives them; ``client.chat.completions.create(stream=True)``."""
    for text in (None, "Chunks of ", "an SDK.", None):
        delta = SimpleNamespace(content=text, role="assistant", tool_calls=None)
        yield SimpleNamespace(
            object="chat.completion.chunk", choices=[SimpleNamespace(index=0, delta=delta, finish_reason=None)]
        )
    delta = SimpleNamespace(content=None, role=None, tool_calls=None)
    yield SimpleNamespace(object="chat.completion.chunk", choices=[SimpleNamespace(index=0, delta=delta, finish_reason="stop")])


def server_sent_events() -> Iterator[bytes]:
    """The body of an HTTP response, cut anywhere: ``response.iter_bytes()``."""
    chunk = {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "Raw server-sent events. "}}]}
    body = f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n".encode()
    yield body[:37]
    yield body[37:]


def ollama_lines() -> Iterator[dict[str, Any]]:
    yield {"model": "llama3.2", "response": "来自 Ollama 的", "done": False}
    yield {"model": "llama3.2", "response": "数据流。", "done": False}
    yield {"model": "llama3.2", "response": "", "done": True, "done_reason": "stop"}


def filled_queue() -> queue.Queue[str | None]:
    """Another thread puts tokens in; None ends the stream."""
    tokens: queue.Queue[str | None] = queue.Queue()

    def produce() -> None:
        for token in ("A queue ", "that a thread ", "fills.", None):
            tokens.put(token)

    threading.Thread(target=produce).start()
    return tokens


SOURCES: dict[str, Any] = {
    "a string": "Just a string, with **markdown** that is not spoken.",
    "a list": ["A list ", "of ", "tokens."],
    "a generator": generator,
    "an async generator": async_generator,
    "an SDK's chunks": openai_chunks,
    "server-sent events": server_sent_events,
    "Ollama": ollama_lines,
    "a queue": filled_queue,
    "a file": lambda: io.StringIO("A file, or standard input."),
}


async def main(out: str) -> None:
    engine = Scheduler()  # loaded once, for all calls
    try:
        async with open_sink(out) as sink:
            for name, source in SOURCES.items():
                report = await speak(source() if callable(source) else source, sink, synthesizer=engine)
                print(f"{name:<20} {report.heard_s:5.2f} s  {report.heard!r}")
    finally:
        engine.close()


if __name__ == "__main__":
    run(main(options(__doc__).parse_args().out))
