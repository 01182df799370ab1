"""What the tests of the agent share: scripted models, a device in virtual time that remembers what it was given."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

import numpy as np

from voice_agent.llm.deltas import Break, Delta, End, Message, TextDelta, ToolCall
from voice_agent.sinks.memory import MemorySink
from voice_agent.testing.clock import LoopClock

Step = str | float | Exception | ToolCall | Break
"""Text; seconds to wait; an error to raise; a tool call; a break."""


class ScriptedModel:
    """Answers the n-th request with the n-th script (then again with the last); keeps what it was asked."""

    def __init__(self, *scripts: Sequence[Step]) -> None:
        self.scripts = scripts
        self.asked: list[list[Message]] = []
        self.tools: list[list[str]] = []
        self.open = 0
        """Requests that are under way."""

    async def reply(self, messages: Sequence[Message], *, tools: Sequence[Mapping[str, Any]] = ()) -> AsyncIterator[Delta]:
        script = self.scripts[min(len(self.asked), len(self.scripts) - 1)]
        self.asked.append([dict(message) for message in messages])
        self.tools.append([tool["function"]["name"] for tool in tools])
        self.open += 1
        try:
            for step in script:
                if isinstance(step, str):
                    yield TextDelta(step)
                elif isinstance(step, float | int):
                    await asyncio.sleep(step)
                elif isinstance(step, Exception):
                    raise step
                else:
                    yield step
            yield End("stop")
        finally:
            self.open -= 1


class Device(MemorySink):
    """A simulated device that notes when it was given samples: (virtual second, how many, their largest value)."""

    def __init__(self, latency_s: float = 0.05, **options: Any) -> None:
        super().__init__(clock=LoopClock(), latency_s=latency_s, **options)
        self.writes: list[tuple[float, int, float]] = []

    async def _put(self, frames: np.ndarray) -> None:
        self.writes.append((self._clock.now_s(), len(frames), float(np.abs(frames).max(initial=0.0))))
        await super()._put(frames)


async def until(condition: Callable[[], object], limit_s: float = 60.0) -> None:
    """Waits in virtual time."""
    async with asyncio.timeout(limit_s):
        while not condition():  # noqa: ASYNC110 — anything may make it true
            await asyncio.sleep(0.01)


def check_history(messages: Sequence[Message]) -> None:
    """Raises AssertionError unless an OpenAI-compatible server would take the messages."""
    wanted: list[str] = []
    known: set[str] = set()
    for message in messages:
        role = message["role"]
        if role == "tool":
            assert message["tool_call_id"] in wanted, "a result without its call"
            wanted.remove(message["tool_call_id"])
            assert isinstance(message["content"], str)
            continue
        assert not wanted, f"calls without results: {wanted}"
        if role == "assistant" and message.get("tool_calls"):
            wanted = [call["id"] for call in message["tool_calls"]]
            assert len({*wanted, *known}) == len(wanted) + len(known), "two calls have the same id"
            known.update(wanted)
            for call in message["tool_calls"]:
                assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", call["function"]["name"])
                assert isinstance(json.loads(call["function"]["arguments"]), dict)
        else:
            assert isinstance(message["content"], str)
            assert message["content"]
    assert not wanted, f"calls without results: {wanted}"
