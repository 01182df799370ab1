"""How far a turn reads ahead of the ear: utterances wait here, bounded in characters, until the engine needs them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable

from tts_engine.types import Utterance

__all__ = ["ReadAhead"]

_CHARS_PER_S = 15.0
_POLL_S = (0.02, 0.5)


class ReadAhead:
    """A line of utterances between the reading of the LLM's stream and the engine.

    ``put`` waits while more than ``most_chars`` wait, so the stream is not read further. Iterating gives an utterance
    when less than ``ahead_s`` of audio is made and not heard; ``made_s`` tells how much that is.
    """

    def __init__(self, most_chars: int, ahead_s: float, made_s: Callable[[], float]) -> None:
        self._most_chars = most_chars
        self._ahead_s = ahead_s
        self._made_s = made_s
        self._waiting: deque[Utterance] = deque()
        self._chars = 0
        self._ended = False
        self._changed = asyncio.Event()

    @property
    def waiting_s(self) -> float:
        """About how long what waits will sound."""
        return self._chars / _CHARS_PER_S

    async def put(self, utterance: Utterance) -> None:
        """Adds an utterance; waits first while there are too many characters."""
        while self._waiting and self._chars + len(utterance.text) > self._most_chars:
            await self._change()
        self._waiting.append(utterance)
        self._chars += len(utterance.text)
        self._changed.set()

    def end(self) -> None:
        """No more will come."""
        self._ended = True
        self._changed.set()

    async def utterances(self) -> AsyncGenerator[Utterance, None]:
        """The utterances in order, each as late as it may come."""
        while True:
            while not self._waiting:
                if self._ended:
                    return
                await self._change()
            while (spare_s := self._made_s() - self._ahead_s) >= 0:  # noqa: ASYNC110 — time makes it true
                await asyncio.sleep(min(max(spare_s, _POLL_S[0]), _POLL_S[1]))
            utterance = self._waiting.popleft()
            self._chars -= len(utterance.text)
            self._changed.set()
            yield utterance

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()
