"""Lets turns pass one by one, in the order in which they took their place."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

__all__ = ["Line", "Place"]


@dataclass(slots=True)
class Place:
    """A place in a line. ``arrive`` returns when all before it have left; everyone has to ``leave``, also unserved.

    ``epoch``: of the agent when the place was taken; after an interruption the place is worth nothing.
    """

    epoch: int
    before: Place | None
    left: asyncio.Event
    gone: bool = False

    async def arrive(self) -> None:
        while self.before is not None:
            before = self.before
            await before.left.wait()
            self.before = None if not before.gone else before.before

    def leave(self) -> None:
        """Lets the next one pass; from the middle of the line, the one behind takes this one's wait over."""
        self.gone = self.before is not None
        self.left.set()


class Line:
    """Hands out places."""

    def __init__(self) -> None:
        self._last: Place | None = None

    def place(self, epoch: int) -> Place:
        """The place behind all others. It counts from now on, not from when it is waited for."""
        before = self._last if self._last is not None and not (self._last.left.is_set() and not self._last.gone) else None
        self._last = Place(epoch, before, asyncio.Event())
        return self._last
