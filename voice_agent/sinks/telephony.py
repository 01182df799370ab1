"""A sink for telephone lines: 8 kHz G.711 in frames of 20 ms, each handed over when it is due."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import numpy as np

from tts_engine.types import AudioFormat
from voice_agent.errors import InputError
from voice_agent.pacing import Clock, Pacer
from voice_agent.sinks.frames import take_frames
from voice_agent.sinks.g711 import Law, encode
from voice_agent.sinks.player import Player
from voice_agent.sinks.sending import SendingSink
from voice_agent.sinks.valve import Valve

__all__ = ["FRAME_S", "TelephoneSink"]

FRAME_S = 0.02
_RATE = 8_000
_FRAME_SAMPLES = 160
_POLL_S = 0.005
_HOLD_S = 0.25  # how much longer than the latency a hold may take


class TelephoneSink(SendingSink):
    """Awaits ``send`` with 160 bytes of G.711 every 20 ms while there is speech, and not at all in between.

    Deadlines are absolute, so frames neither drift nor bunch; after a gap the next one is sent at once. The last frame
    of a sentence is filled up with silence. A sent frame counts as heard when it has sounded, ``latency_s`` after it
    was sent; ``clear`` cannot take back the one that is on its way. A hold fades out within the next frame, and then no
    more are sent. What ``send`` raises becomes a SinkError.
    """

    def __init__(
        self,
        send: Callable[[bytes], Awaitable[object]],
        *,
        law: Law = "ulaw",
        latency_s: float = 0.0,
        clock: Clock | None = None,
    ) -> None:
        """``law``: "ulaw" (North America, Japan) or "alaw". ``latency_s``: of the line and its jitter buffer."""
        if law not in ("ulaw", "alaw"):
            raise InputError(f"law has to be ulaw or alaw, not {law!r}")
        super().__init__(AudioFormat(_RATE, 1), latency_s=latency_s, clock=clock)
        self._send_frame = send
        self._law = law
        self._gaps = 0

    async def _send_all(self) -> None:
        pacer = Pacer(self._clock)
        while True:
            if not self._ready():
                await pacer.wait(0.0)  # the frame before has to sound first
                pacer.reset()
                while not self._ready():
                    await self._wait_for_more()
            await pacer.wait(FRAME_S)
            if self._queued_samples() < _FRAME_SAMPLES:  # the rest of it may be under way
                await self._clock.sleep(FRAME_S)
            samples = self._valve.apply(take_frames(self._queue, self._valve.admit(_FRAME_SAMPLES)))
            if not len(samples):  # cleared or held while it waited
                continue
            self._sent(samples)
            frame = np.zeros(_FRAME_SAMPLES, np.float32)
            frame[: len(samples)] = samples
            await self._send_frame(encode(frame, self._law))
            if not self._queue and self._resampler is not None:
                self._gaps += 1

    async def _cut(self) -> int:
        self._queue.clear()
        self._valve.resume()
        self._valve.rest()
        return self._frames_sent

    async def _pause(self) -> None:
        self._valve.hold()
        self._more.set()
        until_s = self._clock.now_s() + self._delay_s + _HOLD_S
        while self._held and not self._still() and self._failure is None and self._clock.now_s() < until_s:
            await self._clock.sleep(_POLL_S)

    def _go_on(self) -> None:
        self._valve.resume()
        self._more.set()

    def _still(self) -> bool:
        return self._valve.held and self._heard() >= self._frames_sent

    def _new_player(self) -> Player:
        """Of frames that have been through the valve."""
        return Player(self._clock, Valve(_RATE), self._tell, self._watched)

    def _underruns(self) -> int:
        """Times that speech ran out in the middle of a sentence."""
        return self._gaps

    def _ready(self) -> bool:
        """There are samples that may go out."""
        if not self._queue:
            self._valve.rest()
        return bool(self._queue and self._valve.admit(1))

    def _queued_samples(self) -> int:
        return sum(map(len, self._queue))
