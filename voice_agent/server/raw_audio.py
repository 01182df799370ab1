"""Samples of a turn as bytes while they are made: without a container (PCM, G.711) for live streams, or as a file."""

from __future__ import annotations

from typing import Literal, get_args

from tts_engine.types import Samples
from voice_agent.audio import Resampler, samples_to_pcm
from voice_agent.server.encoders import Container, Encoder, check_rate
from voice_agent.sinks.g711 import encode
from voice_agent.stretch import Stretcher

__all__ = ["ENCODINGS", "Encoding", "RawEncoder", "TurnEncoder"]

Encoding = Literal["pcm_s16le", "pcm_s24le", "pcm_f32le", "mulaw", "alaw"]
ENCODINGS: tuple[str, ...] = get_args(Encoding)
_WIDTHS: dict[str, int] = {"pcm_s16le": 2, "pcm_s24le": 3, "pcm_f32le": 4, "mulaw": 1, "alaw": 1}


class RawEncoder:
    """Encodes a mono stream without a header; any chunking gives the bytes of the one-shot result."""

    def __init__(self, encoding: Encoding, source_rate: int, sample_rate: int) -> None:
        """Rates in Hz. Raises InputError for a rate that there is not."""
        check_rate(encoding, sample_rate)
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

    def close(self) -> None:
        """Nothing has to be freed."""

    def _encode(self, frames: Samples) -> bytes:
        if self._encoding == "mulaw":
            return encode(frames, "ulaw")
        if self._encoding == "alaw":
            return encode(frames, "alaw")
        return samples_to_pcm(frames, self.width)


class TurnEncoder:
    """Stretches mono speech to ``1 / tempo`` of its length and encodes it; ``samples`` are put out so far."""

    def __init__(self, encoding: Encoding | Container, source_rate: int, sample_rate: int, tempo: float) -> None:
        self.samples = 0
        self._ratio = sample_rate / source_rate
        self._fed = 0
        self._stretcher = None if tempo == 1.0 else Stretcher(tempo)
        self._encoder: RawEncoder | Encoder
        if encoding in _WIDTHS:
            self._encoder = RawEncoder(encoding, source_rate, sample_rate)  # type: ignore[arg-type]
        else:
            self._encoder = Encoder(encoding, source_rate, sample_rate)  # type: ignore[arg-type]

    def feed(self, samples: Samples) -> bytes:
        """[samples] float32 in, bytes out."""
        stretched = samples if self._stretcher is None else self._stretcher.feed(samples)
        return self._count(len(stretched), self._encoder.feed(stretched))

    def flush(self) -> bytes:
        """The rest. Without a container a new stream begins afterwards; a file is complete."""
        rest = b""
        fed = 0
        if self._stretcher is not None:
            stretched = self._stretcher.flush()
            fed = len(stretched)
            rest = self._encoder.feed(stretched)
        return self._count(fed, rest + self._encoder.flush())

    def close(self) -> None:
        """Frees a file that is not finished; harmless otherwise."""
        self._encoder.close()

    def _count(self, fed: int, data: bytes) -> bytes:
        self._fed += fed
        if isinstance(self._encoder, RawEncoder):
            self.samples += len(data) // self._encoder.width
        else:
            self.samples = round(self._fed * self._ratio)
        return data
