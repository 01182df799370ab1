"""The half that sinks share whose audio is sent to somebody: a queue, and a task that sends what is in it."""

from __future__ import annotations

import asyncio
import contextlib
from abc import abstractmethod
from collections import deque

from tts_engine.types import AudioFormat, Samples
from voice_agent.errors import SinkError
from voice_agent.pacing import Clock
from voice_agent.sinks.base import BaseSink
from voice_agent.sinks.player import Player

__all__ = ["SendingSink"]


class SendingSink(BaseSink):
    """Accepts frames without waiting for the other side, so that a ``clear`` is never behind a send that blocks.

    A subclass sends what ``_queue`` holds, in ``_send_all``, and calls ``_sent`` for it. What was sent is taken to
    sound from then on, without a gap, ``latency_s`` later.
    """

    _playing = True

    def __init__(self, format: AudioFormat | None, *, latency_s: float, clock: Clock | None) -> None:
        super().__init__(format, clock=clock)
        self._delay_s = latency_s
        self._queue: deque[Samples] = deque()
        self._more = asyncio.Event()  # something to send
        self._player = self._new_player()
        self._frames_sent = 0  # less those that were cut
        self._sender: asyncio.Task[None] | None = None

    @abstractmethod
    async def _send_all(self) -> None:
        """Sends from the queue until it is cancelled. Whatever it raises ends the sink."""

    async def _open(self, format: AudioFormat) -> AudioFormat:
        self._valve.rate = format.sample_rate
        self._player = self._new_player()
        self._sender = asyncio.create_task(self._send(), name="sayline-sender")
        return format

    async def _put(self, frames: Samples) -> None:
        self._queue.append(frames.copy())
        self._more.set()

    async def _release(self) -> None:
        self._player.close()
        if self._sender is not None:
            self._sender.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._sender

    def _sent(self, frames: Samples) -> None:
        """``frames`` are on their way."""
        self._frames_sent += len(frames)
        self._player.offer(frames, self._clock.now_s() + self._delay_s)

    def _heard(self) -> int:
        return self._player.heard()

    def _latency_s(self) -> float:
        return self._delay_s

    def _new_player(self) -> Player:
        return Player(self._clock, self._valve, self._tell, self._watched)

    def _watched(self) -> bool:
        """Somebody wants to know at once what has sounded by our reckoning."""
        return self.monitor is not None

    async def _wait_for_more(self) -> None:
        self._more.clear()
        await self._more.wait()

    async def _send(self) -> None:
        try:
            await self._send_all()
        except SinkError as error:
            self._failure = error
        except Exception as error:
            self._failure = SinkError(f"the listener is gone: sending failed with {type(error).__name__}: {error}")
            self._failure.__cause__ = error
