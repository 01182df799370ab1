"""A sink for a WebRTC peer: 48 kHz in frames of 20 ms, each when it is due, silence where there is nothing to say.

``WebRtcSink.track`` is what goes into an ``aiortc.RTCPeerConnection``. Who plays the speech may say how late it sounds
(``sound_delay``), so that what counts as heard was heard.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from tts_engine.types import AudioFormat, Samples
from voice_agent.errors import MissingExtraError
from voice_agent.pacing import Clock, Playout
from voice_agent.sinks.base import BaseSink
from voice_agent.sinks.frames import take_frames

if TYPE_CHECKING:
    from voice_agent.sinks.opus_track import OpusTrack

__all__ = ["FRAME_S", "FRAME_SAMPLES", "RATE", "WebRtcSink"]

RATE = 48_000
FRAME_S = 0.02
FRAME_SAMPLES = 960
_MOST_LATE_S = 0.1
"""A frame that is later than this is left out: its time has passed, and what it would say goes into the next one."""
_DECAY_S = 0.005
_MOST_DELAY_S = 3.0
_POLL_S = 0.005


class WebRtcSink(BaseSink):
    """Plays to whoever asks for frames (:meth:`next_frame`), usually its own :attr:`track`.

    Deadlines are absolute: the frames neither drift against the clock nor pile up behind a stall. A frame counts as
    heard when it has sounded, ``latency_s`` after it was due; one that is on its way cannot be taken back, so ``hold``
    and ``clear`` work from the next frame on. Nothing is asked for before the peer is connected: until then speech
    waits.
    """

    _playing = True

    def __init__(self, *, latency_s: float = 0.15, clock: Clock | None = None) -> None:
        """``latency_s``: of network, jitter buffer and device, until :meth:`sound_delay` knows better."""
        super().__init__(AudioFormat(RATE, 1), clock=clock)
        self._delay_s = latency_s
        self._queue: deque[Samples] = deque()
        self._playout = Playout(RATE)
        self._frames_sent = 0  # samples of speech that went out, less those that were cut
        self._track: OpusTrack | None = None
        self._origin_s: float | None = None  # when frame 0 was due
        self._next = 0  # the frame that is due next
        self._last_sample = 0.0
        self._was_cut = False  # since the last frame
        self._starved = False
        self._gaps = 0

    @property
    def track(self) -> OpusTrack:
        """The sink's track for ``RTCPeerConnection.addTrack``; it speaks Opus, so the peer has to. Extra: server."""
        if self._track is None:
            try:
                from voice_agent.sinks.opus_track import OpusTrack
            except ImportError as error:
                raise MissingExtraError('WebRTC needs aiortc: pip install "sayline[server]"') from error
            self._track = OpusTrack(self.next_frame)
        return self._track

    def sound_delay(self, seconds: float) -> None:
        """The player says that speech sounds so long after it was due here; holds for the frames from now on."""
        self._delay_s = min(max(0.0, seconds), _MOST_DELAY_S)

    async def next_frame(self) -> tuple[Samples, int, bool]:
        """The next frame, when it is due: [960] float32, its place in samples since the first one, whether it speaks.

        Places have holes where frames were left out. One task asks; a cancelled wait leaves the frame due.
        """
        now_s = self._clock.now_s()
        if self._origin_s is None:
            self._origin_s = now_s
        late_s = now_s - self._due_s
        if late_s < 0:
            await self._clock.sleep(-late_s)
        elif late_s > _MOST_LATE_S:
            self._next += int(late_s / FRAME_S)
        place, due_s = self._next * FRAME_SAMPLES, self._due_s
        self._next += 1
        frame, count = self._fill(due_s + self._delay_s)
        return frame, place, count > 0

    @property
    def _due_s(self) -> float:
        assert self._origin_s is not None
        return self._origin_s + self._next * FRAME_S

    def _fill(self, sounds_s: float) -> tuple[Samples, int]:
        """A frame that begins to sound at ``sounds_s``, and how many samples of speech begin it."""
        frame = np.zeros(FRAME_SAMPLES, dtype=np.float32)
        # The frame behind a cut only fades out.
        waiting = 0 if self._was_cut else min(FRAME_SAMPLES, sum(map(len, self._queue)))
        self._was_cut = False
        count = self._valve.admit(waiting) if waiting else 0
        if count:
            frame[:count] = self._valve.apply(take_frames(self._queue, count))
            self._playout.offer(max(sounds_s, self._playout.end_s()), count)
            self._frames_sent += count
            self._tell(frame[:count], sounds_s)
        if not self._queue:
            self._valve.rest()
        if count < FRAME_SAMPLES and not self._held:
            self._fade_out(frame, count)
        self._last_sample = float(frame[-1])
        starving = not self._queue and self._resampler is not None
        self._gaps += starving and not self._starved and count < FRAME_SAMPLES
        self._starved = starving
        return frame, count

    def _fade_out(self, frame: Samples, count: int) -> None:
        """Speech that ends inside a frame, or was cut before it, decays: a step to silence would be a click."""
        level = float(frame[count - 1]) if count else self._last_sample
        if level:
            decay = frame[count : count + round(_DECAY_S * RATE)]
            decay[:] = np.linspace(level, 0.0, len(decay), dtype=np.float32)

    async def _open(self, format: AudioFormat) -> AudioFormat:
        return format

    async def _put(self, frames: Samples) -> None:
        self._queue.append(frames.copy())

    async def _release(self) -> None:
        if self._track is not None:
            self._track.stop()

    def _heard(self) -> int:
        return self._playout.heard(self._clock.now_s())

    async def _cut(self) -> int:
        self._queue.clear()
        self._was_cut = True
        self._valve.resume()
        return self._frames_sent

    async def _pause(self) -> None:
        self._valve.hold()
        until_s = self._clock.now_s() + self._delay_s + 3 * FRAME_S  # longer only while no peer asks for frames
        while self._clock.now_s() < until_s and self._queue and not self._valve.held:
            await self._clock.sleep(_POLL_S)
        while self._clock.now_s() < until_s and self._heard() < self._frames_sent:
            await self._clock.sleep(_POLL_S)

    def _go_on(self) -> None:
        self._valve.resume()

    def _latency_s(self) -> float:
        return self._delay_s

    def _underruns(self) -> int:
        """Times that speech ran out in the middle of a sentence."""
        return self._gaps
