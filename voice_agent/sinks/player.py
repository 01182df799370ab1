"""Follows frames that are played where we only reckon: each sounds as soon as those before it have, in a clock's time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from tts_engine.types import Samples
from voice_agent.pacing import Clock, Playout
from voice_agent.sinks.valve import Valve

__all__ = ["Player"]

_WATCH_S = 0.01


class Player:
    """Keeps what has not sounded yet, and gives it to ``sound`` as it goes out of ``valve``, with its moment.

    ``sound`` is called when somebody asks how much was heard, and every 10 ms while ``watched`` says so.
    """

    def __init__(
        self, clock: Clock, valve: Valve, sound: Callable[[Samples, float], None], watched: Callable[[], bool]
    ) -> None:
        self._clock = clock
        self._watched = watched
        self._timer: asyncio.TimerHandle | None = None
        self._valve = valve
        self._sound = sound
        self._playout = Playout(valve.rate)
        self._waiting: deque[Samples] = deque()
        self._offered = 0  # frames, less those that were cut
        self._sounded = 0
        self._stopped: int | None = None  # the first frame that a hold keeps

    def offer(self, frames: Samples, earliest_s: float) -> None:
        """The next frames; they sound from ``earliest_s`` of the clock on, or behind those before them."""
        if self._stopped is None:
            self._playout.offer(max(earliest_s, self._playout.end_s()), len(frames))
        self._waiting.append(frames)
        self._offered += len(frames)
        self._watch()

    def heard(self) -> int:
        """Frames that have sounded by now."""
        count = self._playout.heard(self._clock.now_s())
        while self._sounded < count:
            self._let_out(count, self._playout.due_s(self._sounded))
        return count

    def confirm(self, count: int) -> None:
        """Whoever plays says that ``count`` frames have sounded by now, whatever the reckoning was."""
        now_s = self._clock.now_s()
        while self._sounded < count and self._waiting:
            self._let_out(count, now_s - (count - self._sounded) / self._valve.rate)

    def hold(self) -> None:
        """Stops after a fade; what has not begun to sound does not begin."""
        if self._stopped is not None:
            return
        heard = self.heard()
        fade = self._valve.fade_frames if self._playout.due_s(heard) <= self._clock.now_s() else 0
        self._stopped = min(self._offered, heard + fade)
        self._playout.stop(self._stopped)
        self._valve.hold()
        if self._stopped == heard:
            self._valve.rest()

    def resume(self) -> None:
        """Goes on with the frame behind the last one."""
        if self._stopped is None:
            return
        self.heard()
        kept, self._stopped = self._offered - self._stopped, None
        self._valve.resume()
        if kept:
            self._playout.offer(max(self._clock.now_s(), self._playout.end_s()), kept)
            self._watch()
        else:
            self._valve.rest()

    def cut(self, heard: int | None = None) -> int:
        """Forgets what has not sounded, and ends a hold; returns the frames that have (``heard``, if that is known)."""
        if heard is None:
            heard = self.heard()
        else:
            self.confirm(heard)
        self._playout.stop(heard)  # not by the clock, which has gone on
        self._waiting.clear()
        self._offered = self._sounded = heard
        self._stopped = None
        self._valve.resume()
        self._valve.rest()
        return heard

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _watch(self) -> None:
        if self._timer is None and self._watched():
            self._timer = asyncio.get_running_loop().call_later(_WATCH_S, self._look)

    def _look(self) -> None:
        self._timer = None
        self.heard()
        if self._waiting and (self._stopped is None or self._sounded < self._stopped):
            self._watch()

    def _let_out(self, until: int, begins_s: float) -> None:
        """The next stretch of what waits, at most up to frame ``until``, sounds from ``begins_s`` on."""
        part = self._waiting.popleft()
        count = min(len(part), until - self._sounded)
        if count < len(part):
            self._waiting.appendleft(part[count:])
        self._valve.admit(count)
        self._sound(self._valve.apply(part[:count]), begins_s)
        self._sounded += count
