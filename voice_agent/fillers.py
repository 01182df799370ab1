"""Says a few words while a tool takes long, and stops when the model has something to say."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

__all__ = ["Fillers", "Filling"]

_POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class Fillers:
    """What is said while tools run: the first phrase ``after_s`` seconds after the tool began, the next ones
    ``every_s`` seconds after the one before; none of them while something else is still to be heard. No phrases:
    silence.
    """

    after_s: float = 1.5
    every_s: float = 6.0
    english: tuple[str, ...] = (
        "One moment, please.",
        "I am still looking.",
        "Thank you for waiting, just a moment more.",
    )
    chinese: tuple[str, ...] = ("请稍等。", "我还在查。", "感谢您的耐心等待，马上就好。")


@dataclass(slots=True)
class Filling:
    """The fillers of one turn. ``fill`` speaks, ``unplayed_s`` says how much is made and not heard yet."""

    config: Fillers
    chinese: bool
    fill: Callable[[str], Awaitable[None]]
    unplayed_s: Callable[[], float]
    given_way: bool = field(default=False, init=False)
    """The model speaks again: what is left of a filler is not to be heard."""
    _said: int = field(default=0, init=False)

    async def during(self, work: Awaitable[None]) -> None:
        """Awaits the work, and speaks when it takes long."""
        self.given_way = False
        speaking = asyncio.create_task(self._speak(), name="sayline-fillers")
        try:
            await work
        finally:
            speaking.cancel()
            await asyncio.wait({speaking})

    def over(self) -> None:
        """The model speaks."""
        self.given_way = True

    async def _speak(self) -> None:
        phrases = self.config.chinese if self.chinese else self.config.english
        wait_s = self.config.after_s
        while self._said < len(phrases):
            await asyncio.sleep(wait_s)
            while (left_s := self.unplayed_s()) > _POLL_S:  # noqa: ASYNC110 — time makes it true
                await asyncio.sleep(max(_POLL_S, left_s - _POLL_S))
            phrase = phrases[self._said]
            self._said += 1
            await self.fill(phrase)
            wait_s = self.config.every_s
