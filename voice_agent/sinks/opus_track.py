"""The track of a WebRtcSink: its frames as Opus packets for aiortc, which this module needs.

Mono speech at 32 kbit/s whose packets also carry the one before at lower quality (in-band FEC, RFC 6716, 2.1.7), so
that a receiver fills single losses with what was said.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from fractions import Fraction
from typing import Any

import av
from aiortc.mediastreams import MediaStreamError, MediaStreamTrack

from tts_engine.types import Samples

__all__ = ["OpusTrack"]

_RATE = 48_000
_TIME_BASE = Fraction(1, _RATE)
_BIT_RATE = 32_000
_OPTIONS = {"application": "voip", "fec": "1", "packet_loss": "10", "compression_level": "5"}
_SETTLED_FRAMES = 25
"""After so much silence the encoder has nothing left to say, and one packet stands for all that follow."""


class OpusTrack(MediaStreamTrack):
    """``recv`` gives the packet of the frame that is due. The peer connection has to negotiate Opus.

    ``next_frame`` waits for it, see :meth:`voice_agent.sinks.webrtc.WebRtcSink.next_frame`.
    """

    kind = "audio"

    def __init__(self, next_frame: Callable[[], Awaitable[tuple[Samples, int, bool]]]) -> None:
        super().__init__()
        self._next_frame = next_frame
        self._encoder = _encoder()
        self._silent_frames = 0
        self._silence = b""

    async def recv(self) -> av.Packet[Any]:
        """One packet of 20 ms, every 20 ms. Raises MediaStreamError once the track was stopped."""
        if self.readyState != "live":
            raise MediaStreamError
        frame, place, speaks = await self._next_frame()
        if self.readyState != "live":
            raise MediaStreamError
        self._silent_frames = 0 if speaks else self._silent_frames + 1
        if self._silent_frames <= _SETTLED_FRAMES:
            self._silence = bytes(self._encode(frame, place))
        packet = av.Packet(self._silence)
        packet.pts = place
        packet.time_base = _TIME_BASE
        return packet

    def _encode(self, samples: Samples, place: int) -> av.Packet[Any]:
        frame = av.AudioFrame.from_ndarray(samples[None], format="flt", layout="mono")
        frame.sample_rate = _RATE
        frame.pts = place
        frame.time_base = _TIME_BASE
        (packet,) = self._encoder.encode(frame)
        return packet


def _encoder() -> av.AudioCodecContext:
    encoder = av.AudioCodecContext.create("libopus", "w")
    encoder.bit_rate = _BIT_RATE
    encoder.format = av.AudioFormat("flt")
    encoder.layout = "mono"
    encoder.sample_rate = _RATE
    encoder.time_base = _TIME_BASE
    encoder.options = dict(_OPTIONS)
    return encoder
