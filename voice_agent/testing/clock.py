"""A virtual clock: an event loop whose time jumps to the next timer, so that minutes of dialogue take milliseconds."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["LoopClock", "VirtualLoop", "run_virtual"]

T = TypeVar("T")


class LoopClock:
    """The time of the running event loop, virtual or real, as a ``voice_agent.pacing.Clock``."""

    def now_s(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _JumpingSelector(selectors.DefaultSelector):
    """Moves the time to the next timer. Only with no timer left does it really wait, for a thread or a socket."""

    def __init__(self, stall_s: float) -> None:
        super().__init__()
        self._stall_s = stall_s
        self.now_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            events = super().select(self._stall_s)
            if not events:
                raise RuntimeError(f"every task waits and nothing can wake one (for {self._stall_s} s of real time)")
            return events
        events = super().select(0)
        if not events:
            self.now_s += max(0.0, timeout)
        return events


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is virtual and starts at 0: ``asyncio.sleep`` and timeouts take no real time.

    Work in threads runs in real time, so a timer may overtake it. A loop in which nothing can happen any more raises
    RuntimeError after ``stall_s`` real seconds instead of hanging.
    """

    def __init__(self, stall_s: float = 5.0) -> None:
        self._selector_of_time = _JumpingSelector(stall_s)
        super().__init__(self._selector_of_time)

    def time(self) -> float:
        return self._selector_of_time.now_s


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """``asyncio.run`` in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
