"""Samples as bytes without a container, at any rate, for live streams: PCM and G.711."""

from __future__ import annotations

from typing import Literal, get_args

from tts_engine.types import Samples
from voice_agent.audio import Resampler, samples_to_pcm
from voice_agent.errors import InputError
from voice_agent.sinks.g711 import encode

__all__ = ["ENCODINGS", "RATE_RANGE_HZ", "Encoding", "RawEncoder"]

Encoding = Literal["pcm_s16le", "pcm_s24le", "pcm_f32le", "mulaw", "alaw"]
ENCODINGS: tuple[str, ...] = get_args(Encoding)
RATE_RANGE_HZ = (8_000, 48_000)
_WIDTHS: dict[str, int] = {"pcm_s16le": 2, "pcm_s24le": 3, "pcm_f32le": 4, "mulaw": 1, "alaw": 1}


class RawEncoder:
    """Encodes a mono stream; any chunking gives the bytes of the one-shot result."""

    def __init__(self, encoding: Encoding, source_rate: int, sample_rate: int) -> None:
        """Rates in Hz. Raises InputError for an encoding or a rate that there is not."""
        if encoding not in ENCODINGS:
            raise InputError(f"unknown encoding {encoding!r}: use one of {', '.join(ENCODINGS)}")
        check_rate(sample_rate)
        self.width = _WIDTHS[encoding]
        """Bytes of a sample."""
        self._encoding = encoding
        self._resampler = Resampler(source_rate, sample_rate)

    def feed(self, samples: Samples) -> bytes:
        """[samples] float32 in, bytes out; a change of rate holds back up to 40 ms."""
        return self._encode(self._resampler.feed(samples))

    def flush(self) -> bytes:
        """The rest; afterwards a new stream begins."""
        return self._encode(self._resampler.flush())

    def _encode(self, frames: Samples) -> bytes:
        if self._encoding == "mulaw":
            return encode(frames, "ulaw")
        if self._encoding == "alaw":
            return encode(frames, "alaw")
        return samples_to_pcm(frames, self.width)


def check_rate(sample_rate: int) -> None:
    """Raises InputError unless the rate, in Hz, is one that we make."""
    least, most = RATE_RANGE_HZ
    if not least <= sample_rate <= most:
        raise InputError(f"sample_rate is {sample_rate}: use a whole number of Hz from {least} to {most}")
