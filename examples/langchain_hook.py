"""Makes a LangChain program speak, in two ways: its stream is handed to ``speak``, or a callback handler feeds a queue.

    python examples/langchain_hook.py [--out FILE.wav | --no-play]

    await speak(chain.astream({"question": "..."}))        # the whole integration

LangChain need not be installed: where it is not, objects of the same shape stand in.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from examples._common import options, run
from tts_engine.scheduler import Scheduler
from voice_agent import speak
from voice_agent.llm.demo import tokens_of
from voice_agent.sinks.base import Sink
from voice_agent.sinks.opening import open_sink

try:
    from langchain_core.callbacks import AsyncCallbackHandler
    from langchain_core.messages import AIMessageChunk
except ImportError:

    class AsyncCallbackHandler:  # type: ignore[no-redef]
        """As in LangChain: methods that are called while a model runs."""

    class AIMessageChunk:  # type: ignore[no-redef]
        """As in LangChain: ``content`` is the next piece of text."""

        def __init__(self, content: str) -> None:
            self.type = "AIMessageChunk"
            self.content = content
            self.tool_call_chunks: list[Any] = []


class Chain:
    """Stands for any runnable: ``prompt | model``. Streams chunks, and tells its callbacks of each token."""

    async def astream(self, question: str, callbacks: tuple[Any, ...] = ()) -> AsyncIterator[AIMessageChunk]:
        for token in tokens_of(f"You asked: {question} Here is the answer, spoken while it is written."):
            await asyncio.sleep(0.01)
            for callback in callbacks:
                await callback.on_llm_new_token(token)
            yield AIMessageChunk(content=token)
        for callback in callbacks:
            await callback.on_llm_end(None)


class SpeakingHandler(AsyncCallbackHandler):
    """Speaks every token that any model of a chain writes: ``chain.ainvoke(..., {"callbacks": [handler]})``."""

    def __init__(self, sink: Sink, engine: Scheduler) -> None:
        self._tokens: asyncio.Queue[str | None] = asyncio.Queue()
        self.speaking = asyncio.create_task(speak(self._tokens, sink, synthesizer=engine))

    async def on_llm_new_token(self, token: str, **_: Any) -> None:
        await self._tokens.put(token)

    async def on_llm_end(self, response: Any, **_: Any) -> None:
        await self._tokens.put(None)


async def main(out: str) -> None:
    engine, chain = Scheduler(), Chain()
    try:
        async with open_sink(out) as sink:
            report = await speak(chain.astream("Does it stream?"), sink, synthesizer=engine)
            print(f"stream:   {report.heard!r}")
            handler = SpeakingHandler(sink, engine)
            async for _ in chain.astream("And with callbacks?", callbacks=(handler,)):
                pass
            print(f"callback: {(await handler.speaking).heard!r}")
    finally:
        engine.close()


if __name__ == "__main__":
    run(main(options(__doc__).parse_args().out))
