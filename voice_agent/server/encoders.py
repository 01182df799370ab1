"""Samples to bytes while they are made: raw PCM, WAV, MP3, Opus, FLAC and AAC. ``flush`` gives the last sample too."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np

from tts_engine.types import AudioFormat, Samples
from voice_agent.audio import Resampler, samples_to_pcm, wav_header
from voice_agent.errors import InputError, MissingExtraError

__all__ = ["FORMATS", "Container", "Encoder", "check_rate", "load_codecs", "media_type"]

Container = Literal["mp3", "opus", "aac", "flac", "wav", "pcm"]
FORMATS: tuple[Container, ...] = get_args(Container)
RATE_RANGE = (8_000, 48_000)
_MPEG_RATES = (8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000)
_OPUS_RATES = (8_000, 12_000, 16_000, 24_000, 48_000)
_SPEECH_BITS = 64_000
_BITS_A_SAMPLE = 3
"""Beyond which MPEG's frames at low rates are full."""


@dataclass(frozen=True, slots=True)
class _Codec:
    """``container`` and ``codec`` as FFmpeg names them; ``rates`` None: all; ``effort``: its compression level, None: usual."""

    media_type: str
    container: str = ""
    codec: str = ""
    options: tuple[tuple[str, str], ...] = ()
    rates: tuple[int, ...] | None = None
    bits: int | None = None
    effort: int | None = None


# Opus at 5 is as close to the original by its spectrum as at 10, the usual, and takes a third of the time.
# Without these options the muxers would want to seek back at the end, or keep a second of audio back.
_CODECS: dict[str, _Codec] = {
    "mp3": _Codec("audio/mpeg", "mp3", "libmp3lame", (("write_xing", "0"), ("id3v2_version", "0")), _MPEG_RATES, _SPEECH_BITS),
    "opus": _Codec("audio/ogg", "ogg", "libopus", (("page_duration", "20000"),), _OPUS_RATES, 32_000, 5),
    "aac": _Codec("audio/aac", "adts", "aac", (), _MPEG_RATES, _SPEECH_BITS),
    "flac": _Codec("audio/flac", "flac", "flac"),
    "wav": _Codec("audio/wav"),
    "pcm": _Codec("audio/pcm"),
}


def media_type(container: Container, sample_rate: int) -> str:
    """The Content-Type; that of PCM says what the bytes are."""
    kind = _CODECS[container].media_type
    return f"{kind}; rate={sample_rate}; channels=1; format=s16le" if container == "pcm" else kind


def check_rate(encoding: str, sample_rate: int) -> None:
    """Raises InputError for a rate that the container does not have; samples without one have any rate in the range."""
    low, high = RATE_RANGE
    if not low <= sample_rate <= high:
        raise InputError(f"sample_rate has to lie between {low} and {high} Hz, not {sample_rate}")
    rates = codec.rates if (codec := _CODECS.get(encoding)) is not None else None
    if rates is not None and sample_rate not in rates:
        raise InputError(f"{encoding} has the sample rates {', '.join(map(str, rates))} Hz, not {sample_rate}")


class Encoder:
    """Mono samples of ``source_rate`` in, bytes of one file out. Any chunking gives the same bytes."""

    def __init__(self, container: Container, source_rate: int, sample_rate: int) -> None:
        """Raises InputError for a rate that the format does not have, MissingExtraError where PyAV is needed and missing."""
        check_rate(container, sample_rate)
        self.media_type = media_type(container, sample_rate)
        self._resampler = Resampler(source_rate, sample_rate)
        codec = _CODECS[container]
        self._bytes: _Pcm | _Compressed
        if codec.container:
            self._bytes = _Compressed(codec, sample_rate)
        else:
            self._bytes = _Pcm(wav_header(AudioFormat(sample_rate), None) if container == "wav" else b"")

    def feed(self, samples: Samples) -> bytes:
        """The next samples [samples] float32; gives what is complete."""
        return self._bytes.feed(samples_to_pcm(self._resampler.feed(samples)))

    def flush(self) -> bytes:
        """The rest of the file; nothing can be fed after it."""
        return self._bytes.feed(samples_to_pcm(self._resampler.flush())) + self._bytes.flush()

    def close(self) -> None:
        """Frees a file that is not finished; harmless after ``flush``."""
        self._bytes.close()


class _Pcm:
    """16-bit samples as they are, behind a header."""

    def __init__(self, header: bytes) -> None:
        self._header = header

    def feed(self, pcm: bytes) -> bytes:
        header, self._header = self._header, b""
        return header + pcm

    def flush(self) -> bytes:
        return b""

    def close(self) -> None:
        pass


class _Written:
    """The file that libavformat writes to: it cannot seek, and is emptied after each packet."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        data = b"".join(self._parts)
        self._parts.clear()
        return data


class _Compressed:
    """A codec and its container, by FFmpeg's libraries (PyAV)."""

    def __init__(self, codec: _Codec, sample_rate: int) -> None:
        self._av = _import_av()
        self._rate = sample_rate
        self._written = _Written()
        options = {"flush_packets": "1", "fflags": "+bitexact", **dict(codec.options)}
        self._container = self._av.open(self._written, "w", format=codec.container, options=options)
        effort = {} if codec.effort is None else {"compression_level": str(codec.effort)}
        self._stream = self._container.add_stream(codec.codec, rate=sample_rate, options=effort)
        self._stream.layout = "mono"
        if codec.bits is not None:
            self._stream.bit_rate = min(codec.bits, _BITS_A_SAMPLE * sample_rate)
        self._fed = 0

    def feed(self, pcm: bytes) -> bytes:
        samples = np.frombuffer(pcm, np.int16)
        if len(samples):
            frame = self._av.AudioFrame.from_ndarray(samples[None, :], format="s16", layout="mono")
            frame.sample_rate = self._rate
            frame.time_base = Fraction(1, self._rate)
            frame.pts = self._fed
            self._fed += len(samples)
            self._mux(frame)
        return self._written.take()

    def flush(self) -> bytes:
        self._mux(None)
        self.close()
        return self._written.take()

    def close(self) -> None:
        self._container.close()

    def _mux(self, frame: Any) -> None:
        for packet in self._stream.encode(frame):
            self._container.mux(packet)


def load_codecs() -> None:
    """Loads what the first compressed file would wait for, if it is installed."""
    with contextlib.suppress(MissingExtraError):
        Encoder("mp3", _OPUS_RATES[-1], _OPUS_RATES[-1]).close()


def _import_av() -> Any:
    try:
        import av  # 0.2 s, only for compressed formats
    except ImportError as error:
        raise MissingExtraError('mp3, opus, aac and flac need PyAV: pip install "sayline[server]"') from error
    return av
