"""Who is served, who waits for a place and who is turned away. Plain bookkeeping: no clock, no lock, no thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, Literal, TypeVar

from tts_engine.errors import BusyError
from tts_engine.resources import resident_bytes

Priority = Literal["interactive", "bulk"]
"""Whether someone listens now, or the audio goes to a file."""

Guest = TypeVar("Guest")

SMOOTHING = 0.2
RETRY_RANGE_S = (0.1, 30.0)
FIRST_GUESS_S = 1.0
"""When to try again while nobody has left yet."""


class Admission(Generic[Guest]):
    """At most ``places`` guests are served and ``queue`` more wait for a place; listeners are let in before bulk work.

    Beyond that, or while the process holds more than ``memory_limit_bytes`` (0: no limit), ``enter`` raises
    BusyError.
    """

    def __init__(
        self,
        places: int,
        queue: int,
        memory_limit_bytes: int = 0,
        resident: Callable[[], int] = resident_bytes,
    ) -> None:
        self.served: list[Guest] = []
        self._places = places
        self._queue = queue
        self._limit = memory_limit_bytes
        self._resident = resident
        self._waiting: dict[Priority, deque[Guest]] = {"interactive": deque(), "bulk": deque()}
        self._left_s: float | None = None
        self._between_s = FIRST_GUESS_S  # two departures, smoothed

    @property
    def waiting(self) -> int:
        """How many wait for a place."""
        return sum(map(len, self._waiting.values()))

    @property
    def guests(self) -> list[Guest]:
        """Everyone, served or waiting."""
        return [*self.served, *self._waiting["interactive"], *self._waiting["bulk"]]

    @property
    def short_of_memory(self) -> bool:
        """The process holds more than it should."""
        return bool(self._limit) and self._resident() > self._limit

    def enter(self, guest: Guest, priority: Priority, now_s: float) -> None:
        """Gives a place, or a place in the queue. Raises BusyError."""
        if self.served and self.short_of_memory:
            raise BusyError(
                f"more than {self._limit >> 20} MiB of memory are in use; try again later or raise memory_limit_mb",
                self._retry_after_s(now_s),
            )
        if len(self.served) < self._places:
            self.served.append(guest)
        elif self.waiting < self._queue:
            self._waiting[priority].append(guest)
        else:
            retry_after_s = self._retry_after_s(now_s)
            raise BusyError(
                f"{len(self.served)} sessions are served and {self.waiting} wait; try again in {retry_after_s:.1f} s",
                retry_after_s,
            )

    def leave(self, guest: Guest, now_s: float) -> None:
        """Takes a guest out; the next one in the queue gets the place. Leaving twice does nothing."""
        for waiting in self._waiting.values():
            if guest in waiting:
                waiting.remove(guest)
                return
        if guest not in self.served:
            return
        self.served.remove(guest)
        if self._left_s is not None:
            self._between_s += SMOOTHING * (now_s - self._left_s - self._between_s)
        self._left_s = now_s
        queue = self._waiting["interactive"] or self._waiting["bulk"]
        if queue:
            self.served.append(queue.popleft())

    def clear(self) -> None:
        """Everyone is out."""
        self.served.clear()
        for waiting in self._waiting.values():
            waiting.clear()

    def _retry_after_s(self, now_s: float) -> float:
        """When the next place in the queue should be free, by how often guests left lately."""
        since_s = 0.0 if self._left_s is None else now_s - self._left_s
        low, high = RETRY_RANGE_S
        return min(max(self._between_s, since_s, low), high)
