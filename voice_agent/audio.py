"""Samples in other shapes: PCM bytes, another sample rate, another number of channels, a WAV header."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import soxr
from numpy.typing import NDArray

from tts_engine.errors import InputError
from tts_engine.types import AudioFormat, Samples

__all__ = ["Resampler", "map_channels", "pcm_to_samples", "samples_to_pcm", "wav_header"]

_WAV_PCM, _WAV_FLOAT = 1, 3
_WAV_UNKNOWN_SIZE = 0xFFFFFFFF


def samples_to_pcm(samples: Samples, width: int = 2) -> bytes:
    """Float samples in [-1, 1] as little-endian PCM bytes, interleaved where ``samples`` is [samples, channels].

    ``width`` is the bytes per sample: 2 and 3 are signed integers, 4 is float32. Full scale is 2**15 or 2**23, so that
    integers survive the way to float and back unchanged; louder samples are clipped, never wrapped; NaN becomes
    silence.
    """
    if width == 4:
        return np.ascontiguousarray(samples, dtype="<f4").tobytes()
    if width not in (2, 3):
        raise InputError(f"PCM has 2, 3 or 4 bytes per sample, not {width}")
    scale = float(1 << (8 * width - 1))
    # float64 for 24 bits: 2**23 - 1 and its neighbours are not all exact products in float32.
    scaled = np.multiply(samples, scale, dtype=np.float32 if width == 2 else np.float64)
    if np.isnan(scaled).any():
        scaled = np.nan_to_num(scaled, nan=0.0)
    whole = np.clip(np.rint(scaled, out=scaled), -scale, scale - 1, out=scaled)
    data: bytes = np.ascontiguousarray(whole, dtype="<i2" if width == 2 else "<i4").tobytes()
    return data if width == 2 else np.frombuffer(data, np.uint8).reshape(-1, 4)[:, :3].tobytes()


def pcm_to_samples(data: bytes | bytearray | memoryview, width: int = 2, channels: int = 1) -> Samples:
    """Little-endian PCM bytes as float32: [samples], or [samples, channels] where there are several.

    The inverse of ``samples_to_pcm``. ``data`` must hold whole samples of all channels.
    """
    if width not in (2, 3, 4):
        raise InputError(f"PCM has 2, 3 or 4 bytes per sample, not {width}")
    if len(data) % (width * channels):
        raise InputError(f"{len(data)} bytes are not whole samples of {channels} channels of {width} bytes")
    samples: Samples
    if width == 4:
        samples = np.frombuffer(data, dtype="<f4").astype(np.float32)
    elif width == 2:
        samples = np.frombuffer(data, dtype="<i2").astype(np.float32) / np.float32(1 << 15)
    else:
        padded = np.zeros((len(data) // 3, 4), dtype=np.uint8)
        padded[:, 1:] = np.frombuffer(data, dtype=np.uint8).reshape(-1, 3)
        samples = padded.view("<i4")[:, 0].astype(np.float32) / np.float32(1 << 31)
    return samples if channels == 1 else samples.reshape(-1, channels)


def map_channels(samples: Samples, channels: int) -> Samples:
    """Samples with the given number of channels: [samples] for one, [samples, channels] for several.

    Channels are averaged into one, or one is copied to all: speech has one source, so nothing else is lost.
    """
    if samples.ndim == 2 and samples.shape[1] == channels != 1:
        return samples
    mono: Samples = samples if samples.ndim == 1 else samples.mean(axis=1, dtype=np.float32)
    return mono if channels == 1 else np.repeat(mono[:, None], channels, axis=1)


class Resampler:
    """Carries a stream from one sample rate to another; any chunking gives the samples of the one-shot result.

    The band-limited conversion is libsoxr's at its high quality (20 bits). It holds back up to 40 ms of a stream of
    24 kHz (80 ms towards 8 kHz), which ``flush`` hands out. Equal rates pass through untouched.
    """

    def __init__(self, source_rate: int, target_rate: int, channels: int = 1) -> None:
        """``source_rate`` and ``target_rate`` in Hz."""
        if source_rate <= 0 or target_rate <= 0 or channels <= 0:
            raise InputError(f"rates and channels must be positive: {source_rate} Hz to {target_rate} Hz, {channels} channels")
        self._channels = channels
        self._stream: Any = None
        if source_rate != target_rate:
            self._stream = soxr.ResampleStream(source_rate, target_rate, channels, dtype="float32", quality="HQ")

    def feed(self, samples: Samples) -> Samples:
        """``samples``: [samples] float32 for one channel, else [samples, channels]; the same form comes back."""
        if self._stream is None:
            return samples
        resampled: NDArray[np.float32] = self._stream.resample_chunk(np.ascontiguousarray(samples, dtype=np.float32))
        return resampled

    def flush(self) -> Samples:
        """The rest of the stream; afterwards a new stream begins."""
        empty = np.zeros(0 if self._channels == 1 else (0, self._channels), dtype=np.float32)
        if self._stream is None:
            return empty
        rest: NDArray[np.float32] = self._stream.resample_chunk(empty, last=True)
        self._stream.clear()
        return rest

    def reset(self) -> None:
        """Forget the stream so far."""
        if self._stream is not None:
            self._stream.clear()


def wav_header(format: AudioFormat, frames: int | None) -> bytes:
    """The 44 bytes before the samples of a WAV file (58 for float32); ``frames`` None: the length is not known yet.

    Sizes that 32 bits cannot hold, and unknown ones, are written as 0xFFFFFFFF, which readers of streams take as
    "until the end of the file". Source: Multimedia Programming Interface and Data Specifications 1.0 (1991); the
    float form with its ``fact`` chunk: Microsoft's revision 3 (1994).
    """
    if format.width not in (2, 3, 4):
        raise InputError(f"a WAV file has 2, 3 or 4 bytes per sample, not {format.width}")
    frame_bytes = format.channels * format.width
    data_bytes = _WAV_UNKNOWN_SIZE if frames is None else min(frames * frame_bytes, _WAV_UNKNOWN_SIZE)
    kind = _WAV_FLOAT if format.width == 4 else _WAV_PCM
    about = struct.pack(
        "<HHIIHH",
        kind,
        format.channels,
        format.sample_rate,
        format.sample_rate * frame_bytes,
        frame_bytes,
        8 * format.width,
    )
    chunks = b"WAVE"
    if kind == _WAV_FLOAT:
        chunks += struct.pack("<4sI", b"fmt ", len(about) + 2) + about + b"\0\0"
        chunks += struct.pack("<4sII", b"fact", 4, _WAV_UNKNOWN_SIZE if frames is None else min(frames, _WAV_UNKNOWN_SIZE))
    else:
        chunks += struct.pack("<4sI", b"fmt ", len(about)) + about
    chunks += struct.pack("<4sI", b"data", data_bytes)
    padded = data_bytes + data_bytes % 2
    return struct.pack("<4sI", b"RIFF", min(len(chunks) + padded, _WAV_UNKNOWN_SIZE)) + chunks
