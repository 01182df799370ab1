"""What the examples share: their options, how they run, and a stand-in for an LLM that knows when to call a tool."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

from voice_agent.errors import SaylineError
from voice_agent.llm.deltas import ChatModel, Delta, End, Message, TextDelta, ToolCall
from voice_agent.llm.demo import DemoChat, tokens_of
from voice_agent.llm.openai_client import OpenAIChat


def options(description: str | None) -> argparse.ArgumentParser:
    """``--out FILE`` (default: the speaker) and ``--no-play`` (nobody listens)."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="speaker", help="a .wav file; default: the speaker")
    parser.add_argument("--no-play", dest="out", action="store_const", const="null", help="only compute")
    return parser


def chat_options(description: str | None) -> argparse.ArgumentParser:
    """The options of a conversation: whom to ask, what to ask."""
    parser = options(description)
    parser.add_argument("--llm", choices=("auto", "openai", "demo"), default="auto", help="auto: demo without a key")
    parser.add_argument("--model", default="gpt-4o-mini")
    parser.add_argument("questions", nargs="*", help="what to ask; default: a few examples")
    return parser


def run(main: Coroutine[Any, Any, None]) -> None:
    """Runs an example. Every error of Sayline is one line that says what to do."""
    try:
        asyncio.run(main)
    except SaylineError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


def model(name: str, llm: str, system: str, stand_in: Callable[[str], Delta | None]) -> AbstractAsyncContextManager[ChatModel]:
    """An OpenAI-compatible server (OPENAI_API_KEY, OPENAI_BASE_URL), or a stand-in without a key."""
    reachable = os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL")
    if llm == "openai" or (llm == "auto" and reachable):
        return OpenAIChat(name, system=system)
    print("(no key: scripted answers, no language model)")
    return nullcontext(StandIn(stand_in))


class StandIn:
    """Not an LLM: calls the tool that ``choose`` finds in the last question, then says what the tool gave.

    What ``choose`` has no answer to goes to the scripted demo.
    """

    def __init__(self, choose: Callable[[str], Delta | None]) -> None:
        self._choose = choose
        self._demo = DemoChat(pace=0.2)

    async def reply(self, messages: Sequence[Message], *, tools: Sequence[Mapping[str, Any]] = ()) -> AsyncIterator[Delta]:
        last = messages[-1]
        if last["role"] == "tool":
            for token in tokens_of(str(last["content"])):
                await asyncio.sleep(0.005)
                yield TextDelta(token)
            yield End("stop")
            return
        chosen = self._choose(str(last["content"]))
        if chosen is None:
            async for delta in self._demo.reply(messages):
                yield delta
            return
        if isinstance(chosen, ToolCall):
            yield TextDelta("好的，我查一下。" if any("\u4e00" <= c <= "\u9fff" for c in last["content"]) else "Let me see.")
        yield chosen
        yield End("stop")
