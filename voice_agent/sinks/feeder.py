"""The audio thread's half of the speaker: what goes from the ring into each buffer of the device."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tts_engine.ring_buffer import RingBuffer
from tts_engine.types import AudioFormat, Samples
from voice_agent.pacing import Playout
from voice_agent.sinks.valve import Valve

__all__ = ["Feeder"]

_RAMP_S = 0.005


class Feeder:
    """Carries frames from the event loop (``push``, ``ask_to_drop``) to the audio thread (``fill``) without a lock.

    Every attribute is written by one of the two threads only. Sound never ends in a step: what ``ask_to_drop`` cuts
    off fades within 5 ms, and where frames run out the last one decays. What goes out goes through ``valve``, which the
    loop may hold, and every buffer is told to ``sound``, with the moment at which it does, from the audio thread.
    """

    def __init__(
        self,
        format: AudioFormat,
        capacity_s: float,
        valve: Valve | None = None,
        sound: Callable[[Samples, float], None] = lambda frames, due_s: None,
    ) -> None:
        self.format = format
        self._valve = valve or Valve(format.sample_rate)
        self._valve.rate = format.sample_rate
        self._sound = sound
        self._channels = format.channels
        self._ring = RingBuffer(round(capacity_s * format.sample_rate) * format.channels)
        self._playout = Playout(format.sample_rate)
        self._ramp = np.linspace(1.0, 0.0, round(_RAMP_S * format.sample_rate), dtype=np.float32)[:, None]
        self._last: NDArray[np.float32] = np.zeros(format.channels, dtype=np.float32)
        self._drop_until = 0  # loop: samples of the ring before this one are not to be heard any more
        self._dropped_until = 0  # audio
        self._starved = False  # audio
        self.speaking = False  # loop: more frames of the same speech will come, so silence is a gap
        self.played = 0  # audio: frames handed to the device and not taken back
        self.underruns = 0  # audio
        self.late = 0  # audio: buffers that the device missed, also while nothing was said
        self.finished = False  # audio: the device will ask no more
        self.filled_s = time.monotonic()  # audio: when the device last asked

    def push(self, frames: Samples) -> None:
        """``frames``: [frames] or [frames, channels] float32. There must be room for them."""
        flat = np.ascontiguousarray(frames, dtype=np.float32).reshape(-1)
        taken = self._ring.write(flat)
        assert taken == len(flat), "the writer waits for room first"

    def ask_to_drop(self) -> None:
        """The next ``fill`` fades out and forgets all that was pushed so far; what is pushed from now on is safe."""
        self._drop_until = self._ring.written

    @property
    def dropped(self) -> bool:
        return self._dropped_until >= self._drop_until

    def heard(self, now_s: float) -> int:
        """Frames that have left the device by ``now_s`` of the monotonic clock."""
        return self._playout.heard(now_s)

    def fill(self, out: NDArray[Any], due_s: float, late: bool = False) -> None:
        """Fill a device buffer ([frames, channels] float32) that sounds from ``due_s`` on.

        ``late``: the device had nothing to play before this one.
        """
        self.filled_s = time.monotonic()
        self.late += late
        held = self._valve.held
        # The valve first: whoever drops what is held does so before the valve opens.
        admitted = self._valve.admit(len(out))
        drop_until = self._drop_until
        dropping = drop_until > self._dropped_until
        if dropping:
            most = min(admitted, len(self._ramp), (drop_until - self._ring.taken) // self._channels)
            count = self._read(out[: 0 if held else most])
            out[:count] *= np.linspace(1.0, 0.0, count, dtype=np.float32)[:, None]
        else:
            count = self._read(out[:admitted])
        out[:count] = self._valve.apply(out[:count])
        if dropping:
            self._ring.drop(drop_until)
        if dropping or count < admitted:
            self._valve.rest()
        short = count < len(out)
        if short:
            self._decay(out[count:], out[count - 1] if count else self._last)
        self._last = out[-1].copy()
        missing = short and admitted == len(out)  # frames that a hold keeps are not missing
        ran_dry = missing and not self._starved and self.speaking
        torn = late and count and (self.speaking or not self._starved)  # also while the last frames play
        if (ran_dry or torn) and not dropping:
            self.underruns += 1
        self._starved = missing
        # Silence too: who compares it with a microphone counts frames, since moments jitter by tens of milliseconds.
        self._sound(out, due_s)
        if count:
            self._playout.offer(due_s, count)
            self.played += count
        self._dropped_until = drop_until

    def finish(self) -> None:
        """The device has stopped asking, because it was closed or went away."""
        self.finished = True

    def _read(self, out: NDArray[Any]) -> int:
        return self._ring.read(out.reshape(-1)) // self._channels

    def _decay(self, out: NDArray[Any], last: NDArray[Any]) -> None:
        ramp = self._ramp[: len(out)]
        out[: len(ramp)] = last * ramp
        out[len(ramp) :] = 0.0
