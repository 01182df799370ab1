"""``sayline chat``: a typed question, a spoken answer, again and again."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from voice_agent.agent import Agent
from voice_agent.captions import write_events
from voice_agent.cli.running import complain, exit_code, show_report, standard_input
from voice_agent.conversation import Conversation
from voice_agent.errors import ConfigError, DeviceError, SaylineError, SinkError
from voice_agent.llm.deltas import ChatModel, Delta, Message, TextDelta
from voice_agent.llm.demo import DemoChat
from voice_agent.llm.files import read_file
from voice_agent.llm.openai_client import OpenAIChat
from voice_agent.prompts import system_prompt
from voice_agent.sinks.base import Sink
from voice_agent.tools import load_tools

PROMPT = "you> "


class Printed:
    """A chat model whose answers are also printed while they come in."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model

    async def reply(self, messages: Sequence[Message], *, tools: Sequence[Mapping[str, Any]] = ()) -> AsyncIterator[Delta]:
        """The model's answer, unchanged."""
        _show("bot> ")
        async for delta in self._model.reply(messages, tools=tools):
            if isinstance(delta, TextDelta):
                _show(delta.text)
            yield delta
        _show("\n")


def _show(text: str) -> None:
    try:
        print(text, end="", flush=True)
    except OSError as error:
        raise SinkError(f"the answer cannot be printed to the standard output: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """The options of ``sayline chat`` that say what is talked about and what is kept of it."""

    llm: str
    model: str
    base_url: str | None = None
    system: str | None = None
    tools: str | None = None
    resume: str | None = None
    events: str | None = None


async def converse(
    once: str | None, options: ChatOptions, sink: Sink, voice: str, speed: float, timeline: bool, json: bool
) -> int:
    """Runs the conversation; gives the exit code."""
    tools = load_tools(options.tools) if options.tools is not None else []
    conversation = Conversation.open(options.resume) if options.resume is not None else None
    system = options.system or system_prompt("en")
    async with open_model(options.llm, options.model, options.base_url, system) as model:
        shown: ChatModel = model if json else Printed(model)
        if isinstance(model, DemoChat):
            print(f"({model.label})", file=sys.stderr)
        agent = Agent(shown, sink, voice=voice, speed=speed, tools=tools, conversation=conversation)
        async with logged(agent, options.events), agent:
            if once is not None:
                await _answer(agent, once, timeline, json)
                return 0
            return await _talk(agent, timeline, json)


@contextlib.asynccontextmanager
async def logged(agent: Agent, path: str | None) -> AsyncGenerator[None, None]:
    """Writes what happens, as JSON lines, to the file while the block runs."""
    if path is None:
        yield
        return
    try:
        file = open(path, "w", encoding="utf-8")  # noqa: ASYNC230, SIM115 — opened once, closed below
    except OSError as error:
        raise ConfigError(f"--events {path}: cannot be written: {error.strerror}") from error
    with file:
        writing = asyncio.create_task(write_events(agent.events(), file))
        await asyncio.sleep(0)  # so that it listens before anything happens
        yield
        await writing


@contextlib.asynccontextmanager
async def open_model(llm: str, name: str, base_url: str | None, system: str) -> AsyncGenerator[ChatModel, None]:
    """The model that is talked to, while the block runs."""
    if llm == "demo":
        yield DemoChat()
        return
    async with OpenAIChat(name, base_url=base_url, system=system) as model:
        yield model


async def _talk(agent: Agent, timeline: bool, json: bool) -> int:
    """Asks for lines until the input ends. What fails is reported, and the conversation goes on while there is a sink."""
    failed = 0
    async with aclosing(_lines()) as lines:
        async for line in lines:
            if not line.strip():
                continue
            try:
                await _interruptible(_answer(agent, line.strip(), timeline, json))
            except SaylineError as error:
                if isinstance(error, SinkError) and not isinstance(error, DeviceError):
                    raise
                complain(error)
                failed = exit_code(error)
    return failed


async def _lines() -> AsyncGenerator[str, None]:
    """The lines of the standard input; a prompt is shown where someone types."""
    file = standard_input()
    typed = file.isatty()
    if typed:
        print(PROMPT, end="", flush=True)
    rest = ""
    async with aclosing(read_file(file)) as pieces:
        async for piece in pieces:
            rest += piece
            while "\n" in rest:
                line, rest = rest.split("\n", 1)
                yield line
                if typed:
                    print(PROMPT, end="", flush=True)
    if rest:
        yield rest


async def _interruptible(answer: Any) -> None:
    """Lets Ctrl-C stop this answer only."""
    task = asyncio.ensure_future(answer)
    loop = asyncio.get_running_loop()
    handled = True
    try:
        loop.add_signal_handler(signal.SIGINT, task.cancel)
    except (NotImplementedError, RuntimeError, ValueError):  # not on this system, or not in the main thread
        handled = False
    try:
        await task
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if current is not None and current.cancelling():
            raise
        print("\n(stopped)", file=sys.stderr)
    finally:
        if handled:
            loop.remove_signal_handler(signal.SIGINT)


async def _answer(agent: Agent, text: str, timeline: bool, json: bool) -> None:
    try:
        await agent.reply(text)
    finally:
        assert agent.turn is not None
        show_report(agent.turn.report(), timeline, json, asked=text)
