"""Text that a client sends in pieces, as the stream that a turn reads."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable

from voice_agent.llm.deltas import Break, Delta, End, TextDelta

__all__ = ["LiveText"]


class LiveText:
    """Pieces go in; :meth:`deltas` gives them as they come, until ``end``."""

    def __init__(self, passed: Callable[[], None] = lambda: None) -> None:
        """``passed`` is called when everything before a flush was read and planned by whoever iterates."""
        self.waiting_chars = 0
        """Of what was put in and not read."""
        self.ended = False
        self._passed = passed
        self._closed = False
        self._pieces: deque[str | None] = deque()  # None: a flush
        self._changed = asyncio.Event()

    def append(self, text: str) -> None:
        if text and not self._closed:
            self._pieces.append(text)
            self.waiting_chars += len(text)
            self._changed.set()

    def flush(self) -> None:
        """The text so far is a piece of its own, full stop or not."""
        self._pieces.append(None)
        self._changed.set()

    def end(self) -> None:
        self.ended = True
        self._changed.set()

    def close(self) -> None:
        """Nobody will read any more: drops what waits and what will come."""
        self._closed = True
        self._pieces.clear()
        self.waiting_chars = 0
        self.end()

    async def deltas(self) -> AsyncGenerator[Delta, None]:
        """To be iterated once."""
        while True:
            while self._pieces:
                piece = self._pieces.popleft()
                if piece is None:
                    yield Break("message")
                    self._passed()  # the next item is asked for when this one has gone through all stages
                else:
                    self.waiting_chars -= len(piece)
                    yield TextDelta(piece)
            if self.ended:
                yield End("stop")
                return
            self._changed.clear()
            await self._changed.wait()
