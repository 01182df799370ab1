"""Who is served, who waits for a place and who is turned away. Plain bookkeeping: no clock, no lock, no thread."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Generic, Literal, TypeVar

from tts_engine.errors import BusyError, InputError
from tts_engine.resources import resident_bytes

Priority = Literal["interactive", "bulk"]
"""Whether someone listens now, or the audio goes to a file."""

Guest = TypeVar("Guest")

SMOOTHING = 0.2
RETRY_RANGE_S = (0.1, 30.0)
GUEST_BYTES = 8 << 20
"""What a guest may need: two rows, the one under way and the next, and seconds of audio (benchmarks/batch.py)."""
FIRST_GUESS_S = 1.0
"""When to try again while nobody has left yet."""


class Admission(Generic[Guest]):
    """At most ``places`` guests are served and ``queue`` more wait for a place; listeners are let in before bulk work.

    Beyond that, or when another guest might take the process above ``memory_limit_bytes`` (0: no limit), ``enter`` raises
    BusyError. A first guest is always served.
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
    def spare_bytes(self) -> int | None:
        """How much more the process may hold, at least 0; None: there is no limit."""
        return max(0, self._limit - self._resident()) if self._limit else None

    def enter(self, guest: Guest, priority: Priority, now_s: float) -> None:
        """Gives a place, or a place in the queue. Raises BusyError, and InputError for another priority."""
        if priority not in self._waiting:
            raise InputError(f"priority must be one of {', '.join(self._waiting)}, not {priority!r}")
        spare_bytes = self.spare_bytes
        if self.served and spare_bytes is not None and spare_bytes < GUEST_BYTES:
            raise BusyError(
                f"the {self._limit >> 20} MiB of memory that this process may use are taken; try again later or raise "
                "memory_limit_mb",
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
