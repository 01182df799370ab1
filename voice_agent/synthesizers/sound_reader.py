"""Bytes of PCM or WAV to samples, as they arrive, cut anywhere."""

from __future__ import annotations

import struct
from typing import Literal

from tts_engine.types import AudioFormat
from voice_agent.audio import pcm_to_samples
from voice_agent.errors import EngineError
from voice_agent.synthesizers.session import Sound

Encoding = Literal["auto", "pcm", "wav"]
_PCM, _FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_MOST_HEADER_BYTES = 1 << 16
_OTHER = {b"ID3": "MP3", b"OggS": "Ogg", b"fLaC": "FLAC", b"<!DOCTYPE": "HTML", b"<html": "HTML"}
_ADVICE = "let it write raw little-endian PCM or WAV"


class SoundReader:
    """``feed`` bytes, then ``flush``. ``format``: of raw PCM; a WAV header says its own.

    ``encoding`` "auto" looks at the first bytes. Raises EngineError for anything that is no such audio.
    """

    def __init__(self, format: AudioFormat, encoding: Encoding = "auto") -> None:
        self.format = format
        self._encoding = encoding
        self._held = b""
        self._in_samples = encoding == "pcm"
        self._left: int | None = None  # bytes of samples that the WAV header promises, None: until the end

    def feed(self, data: bytes) -> list[Sound]:
        """The samples that became whole."""
        self._held += data
        if not self._in_samples and not self._read_header():
            return []
        return self._samples()

    def flush(self) -> list[Sound]:
        """The end: nothing may be left over."""
        if not self._in_samples and self._held:
            if self._encoding == "wav" or self._held.startswith(b"RIFF"):
                raise self._no_audio("ends inside the WAV header")
            self._in_samples = True
        sounds = self._samples()
        if self._held and self._left != 0:
            raise EngineError(
                f"the audio ends inside a sample ({len(self._held)} bytes are left over): was it cut, or is it "
                f"not {8 * self.format.width}-bit PCM of {self.format.channels} channels? {_ADVICE}"
            )
        return sounds

    def _samples(self) -> list[Sound]:
        frame = self.format.width * self.format.channels
        there = len(self._held) if self._left is None else min(len(self._held), self._left)
        whole = there - there % frame
        data, self._held = self._held[:whole], self._held[whole:]
        if self._left is not None:
            self._left -= whole
            if not self._left:
                self._held = b""  # chunks behind the samples
        return [Sound(pcm_to_samples(data, self.format.width, self.format.channels), self.format)] if data else []

    def _read_header(self) -> bool:
        """Whether the samples have begun."""
        if len(self._held) < 12:
            return False
        if self._held[:4] != b"RIFF" or self._held[8:12] != b"WAVE":
            for start, name in _OTHER.items():
                if self._held.startswith(start):
                    raise self._no_audio(f"is {name}")
            if self._encoding == "wav":
                raise self._no_audio("has no WAV header")
            self._in_samples = True
            return True
        place = 12
        format: AudioFormat | None = None
        while len(self._held) >= place + 8:
            name, size = struct.unpack_from("<4sI", self._held, place)
            body = self._held[place + 8 : place + 8 + size]
            if name == b"data":
                if format is None:
                    raise self._no_audio("has a WAV header without a format")
                self.format = format
                self._left = None if size in (0, 0x7FFFFFFF) or size >= 0xFFFFFF00 else size
                self._held = self._held[place + 8 :]
                self._in_samples = True
                return True
            if len(body) < size:
                break
            if name == b"fmt ":
                format = self._format(body)
            place += 8 + size + size % 2
        if len(self._held) > _MOST_HEADER_BYTES:
            raise self._no_audio("has a WAV header without samples")
        return False

    def _format(self, body: bytes) -> AudioFormat:
        if len(body) < 16:
            raise self._no_audio("has a broken WAV header")
        kind, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", body)
        if kind == _EXTENSIBLE and len(body) >= 26:
            (kind,) = struct.unpack_from("<H", body, 24)
        if (kind, bits) not in ((_PCM, 16), (_PCM, 24), (_FLOAT, 32)) or not channels or not rate:
            raise self._no_audio(f"is WAV of kind {kind} with {bits} bits, {channels} channels and {rate} Hz")
        return AudioFormat(rate, channels, bits // 8)

    def _no_audio(self, what: str) -> EngineError:
        return EngineError(f"what came {what}, beginning with {self._held[:24]!r}; {_ADVICE}")
