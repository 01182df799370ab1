"""A sink that keeps the audio, or only counts it; with a clock it plays in that clock's time like a device would."""

from __future__ import annotations

import numpy as np

from tts_engine.types import AudioFormat, Samples
from voice_agent.pacing import Clock
from voice_agent.sinks.base import BaseSink
from voice_agent.sinks.player import Player
from voice_agent.sinks.valve import FADE_S

__all__ = ["MemorySink"]


class MemorySink(BaseSink):
    """Collects float32 audio in ``samples``. Without a clock all that is written counts as heard at once.

    With a ``clock`` the sink is a simulated device: a frame is heard when those before it have sounded, and
    ``latency_s`` after it came at the earliest. A write blocks while more than ``buffer_s`` waits, and ``clear``
    drops what was not heard. ``keep=False`` only counts: the place for speech that nobody is to hear.
    """

    def __init__(
        self,
        format: AudioFormat | None = None,
        *,
        clock: Clock | None = None,
        latency_s: float = 0.0,
        keep: bool = True,
    ) -> None:
        super().__init__(format, clock=clock)
        self._playing = self.waited_for = clock is not None
        self._device_latency_s = latency_s
        self._keep = keep
        self._frames: list[Samples] = []
        self._player = self._new_player()

    @property
    def samples(self) -> Samples:
        """What was heard so far: [frames] float32, or [frames, channels], at the sink's own rate."""
        self._heard()
        shape = (0,) if self._format.channels == 1 else (0, self._format.channels)
        return np.concatenate([np.zeros(shape, dtype=np.float32), *self._frames])

    async def _open(self, format: AudioFormat) -> AudioFormat:
        self._valve.rate = format.sample_rate
        self._player = self._new_player()
        return format

    async def _put(self, frames: Samples) -> None:
        if self._playing:
            self._player.offer(frames.copy(), self._clock.now_s() + self._device_latency_s)
        elif self._keep:
            self._frames.append(frames.copy())

    async def _release(self) -> None:
        self._player.close()

    def _heard(self) -> int:
        return self._player.heard() if self._playing else super()._heard()

    async def _cut(self) -> int:
        return self._player.cut() if self._playing else super()._heard()

    async def _pause(self) -> None:
        if self._playing:
            self._player.hold()
            await self._clock.sleep(FADE_S)

    def _go_on(self) -> None:
        if self._playing:
            self._player.resume()

    def _new_player(self) -> Player:
        return Player(self._clock, self._valve, self._sound, lambda: self.monitor is not None)

    def _sound(self, frames: Samples, begins_s: float) -> None:
        if self._keep:
            self._frames.append(frames)
        self._tell(frames, begins_s)

    def _latency_s(self) -> float:
        return self._device_latency_s
