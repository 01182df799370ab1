"""A sink that keeps the audio, or only counts it; with a clock it plays in that clock's time like a device would."""

from __future__ import annotations

import numpy as np

from tts_engine.types import AudioFormat, Samples
from voice_agent.pacing import Clock, Playout
from voice_agent.sinks.base import BaseSink

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
        self._real_time = clock is not None
        self._device_latency_s = latency_s
        self._keep = keep
        self._frames: list[Samples] = []
        self._playout = Playout(self._format.sample_rate)

    @property
    def samples(self) -> Samples:
        """What was heard so far: [frames] float32, or [frames, channels], at the sink's own rate."""
        shape = (0,) if self._format.channels == 1 else (0, self._format.channels)
        kept = np.concatenate([np.zeros(shape, dtype=np.float32), *self._frames])
        return kept[: self._heard()]

    async def _open(self, format: AudioFormat) -> AudioFormat:
        self._playout = Playout(format.sample_rate)
        return format

    async def _put(self, frames: Samples) -> None:
        if self._keep:
            self._frames.append(frames.copy())
        if self._real_time:
            earliest_s = self._clock.now_s() + self._device_latency_s
            self._playout.offer(max(earliest_s, self._playout.end_s()), len(frames))

    async def _release(self) -> None:
        pass

    def _heard(self) -> int:
        return self._playout.heard(self._clock.now_s()) if self._real_time else super()._heard()

    async def _cut(self) -> int:
        if not self._real_time:
            return self._heard()
        heard = self._playout.cut(self._clock.now_s())
        if self._keep:
            self._frames = [np.concatenate(self._frames)[:heard]] if self._frames else []
        return heard

    def _latency_s(self) -> float:
        return self._device_latency_s
