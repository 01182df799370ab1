"""The answer of a model that may call tools, as one stream of deltas: text, tools, text again.

It remembers which text came from which request, so that the history can be told exactly, however far it was heard.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Protocol

from voice_agent.llm.any_stream import stream_deltas
from voice_agent.llm.deltas import Break, ChatModel, Delta, End, Message, TextDelta, ToolCall
from voice_agent.patience import patient
from voice_agent.tools import Tool

__all__ = ["Rounds", "Waiting"]

_NO_NAME = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64
INTERRUPTED = "error: interrupted by the user; it is not known whether this took effect"


class Waiting(Protocol):
    """Something that happens while tools run (``voice_agent.fillers.Filling``)."""

    async def during(self, work: Awaitable[None]) -> None:
        """Await the work."""
        ...

    def over(self) -> None:
        """The model speaks again."""
        ...


@dataclass(slots=True)
class _Round:
    """One request: the raw span of its text, the calls that were run and their results by position."""

    start: int
    end: int
    calls: list[ToolCall] = field(default_factory=list)
    results: dict[int, str] = field(default_factory=dict)
    run: bool = False


class Rounds:
    """Asks ``model`` again and again until it calls no tool; at most ``most`` times, the last time without tools."""

    def __init__(
        self,
        model: ChatModel,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        waiting: Waiting | None = None,
        tell: Callable[[ToolCall, str | None], None] = lambda call, result: None,
        stall_s: float | None = None,
        most: int = 8,
    ) -> None:
        """``tell`` hears of each call when it begins (None) and ends (its result). ``stall_s``: patience with the model."""
        self._model = model
        self._messages = list(messages)
        self._tools = {tool.name: tool for tool in tools}
        self._waiting = waiting
        self._tell = tell
        self._stall_s = stall_s
        self._most = most
        self._rounds: list[_Round] = []
        self._raw: list[str] = []
        self._length = 0

    async def deltas(self) -> AsyncGenerator[Delta, None]:
        """The deltas of all rounds; one ``End`` at the end. Closing it stops the request and the tools."""
        while True:
            last = len(self._rounds) + 1 == self._most or not self._tools
            round = _Round(self._length, self._length)
            asked = [*self._messages, *self.history(self._length)]
            self._rounds.append(round)
            end = End()
            schemas = [] if last else [tool.schema for tool in self._tools.values()]
            reply = stream_deltas(self._model.reply(asked, tools=schemas), name="the model's answer")
            async with aclosing(patient(reply, self._stall_s)) as deltas:
                async for delta in deltas:
                    if isinstance(delta, TextDelta):
                        self._take(round, delta.text)
                    elif isinstance(delta, ToolCall):
                        round.calls.append(delta)
                    if isinstance(delta, End):
                        end = delta
                    else:
                        yield delta
            if last or not round.calls:
                yield end
                return
            yield Break("tool_call")
            round.run = True
            work = self._run(round)
            await (work if self._waiting is None else self._waiting.during(work))

    def history(self, heard: int) -> list[Message]:
        """The messages that the rounds add to a conversation in which ``heard`` raw characters were heard.

        Every tool call has its result behind it and an id of its own; calls that were never run are left out.
        """
        raw = "".join(self._raw)
        messages: list[Message] = []
        taken = {call.get("id") for message in self._messages for call in message.get("tool_calls") or ()}
        for number, round in enumerate(self._rounds):
            text = raw[round.start : min(round.end, heard)]
            if not round.run:
                if text:
                    messages.append({"role": "assistant", "content": text})
                continue
            ids = []
            for position, call in enumerate(round.calls):
                own = f"call_{len(self._messages)}_{number}_{position}"
                ids.append(call.id if call.id and call.id not in taken else own)
                taken.add(ids[-1])
            calls = [_as_message(call, id) for call, id in zip(round.calls, ids, strict=True)]
            messages.append({"role": "assistant", "content": text or None, "tool_calls": calls})
            for position, id in enumerate(ids):
                result = round.results.get(position, INTERRUPTED)
                messages.append({"role": "tool", "tool_call_id": id, "content": result})
        return messages

    def _take(self, round: _Round, text: str) -> None:
        if self._waiting is not None:
            self._waiting.over()
        self._raw.append(text)
        self._length += len(text)
        round.end = self._length

    async def _run(self, round: _Round) -> None:
        """Runs the calls of a round, all at once."""
        async with asyncio.TaskGroup() as group:
            for position, call in enumerate(round.calls):
                group.create_task(self._run_one(round, position, call), name=f"sayline-tool-{call.name}")

    async def _run_one(self, round: _Round, position: int, call: ToolCall) -> None:
        self._tell(call, None)
        tool = self._tools.get(call.name)
        if tool is None:
            result = f"error: there is no tool {call.name!r}; there are {', '.join(self._tools)}"
        else:
            result = await tool.run(call.arguments, call.raw)
        round.results[position] = result
        self._tell(call, result)


def _as_message(call: ToolCall, id: str) -> dict[str, Any]:
    arguments = "{}" if call.arguments is None else json.dumps(call.arguments, ensure_ascii=False)
    name = _NO_NAME.sub("_", call.name)[:_LONGEST_NAME] or "_"  # a server refuses others, and with them the whole history
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
