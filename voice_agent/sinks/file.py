"""A sink that writes WAV or raw PCM to a path, a file object or the standard output, valid whenever it is cut off."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path
from typing import BinaryIO, Literal

from tts_engine.types import AudioFormat, Samples
from voice_agent.audio import samples_to_pcm, wav_header
from voice_agent.errors import InputError, SinkError
from voice_agent.sinks.base import BaseSink
from voice_agent.sinks.byte_writer import ByteWriter

__all__ = ["Encoding", "FileSink"]

Encoding = Literal["wav", "pcm"]

_ENCODINGS: dict[str, Encoding] = {".wav": "wav", ".wave": "wav", ".pcm": "pcm", ".raw": "pcm"}
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class FileSink(BaseSink):
    """Writes each chunk when it comes; what is written counts as heard.

    After every chunk the sizes in a WAV header are brought up to date, behind the samples, so that the file of a
    process that is killed is whole up to its last chunk. Where nothing can be rewritten (a pipe, a file opened for
    appending) the sizes say "until the end", as they do beyond 4 GiB. Raw PCM is little-endian and has no header.
    """

    def __init__(
        self,
        target: str | os.PathLike[str] | BinaryIO,
        *,
        encoding: Encoding | None = None,
        format: AudioFormat | None = None,
    ) -> None:
        """``target`` "-" is the standard output. A file object is written from where it stands and stays open.

        ``encoding`` None goes by the extension of a path and is "wav" for everything else. ``format.width`` is 2
        (16-bit integers), 3 (24-bit) or 4 (float32); ``format`` None takes rate and channels of the speech, and 16
        bits.
        """
        super().__init__(format)
        self._target = os.fspath(target) if isinstance(target, str | os.PathLike) else target
        if not isinstance(target, str | os.PathLike):
            self._name = str(getattr(target, "name", "the file object"))
        elif os.fspath(target) == "-":
            self._name = "the standard output"
        else:
            self._name = _checked_path(os.fspath(target))
            encoding = encoding or _encoding_of(self._name)
            self.waited_for = os.path.exists(self._name) and not os.path.isfile(self._name)  # a pipe or a device
        self._encoding: Encoding = encoding or "wav"
        self._writer: ByteWriter | None = None
        self._header_bytes = 0

    async def _open(self, format: AudioFormat) -> AudioFormat:
        header = wav_header(format, None)  # refuses a width that cannot be written before a file is made
        self._format = format
        try:
            self._writer = await ByteWriter.open(self._target)
            if self._encoding == "wav":
                self._header_bytes = len(header)
                await self._writer.write(header)
                self._probe_header()
        except OSError as error:
            await self._release()
            raise self._explained(error) from error
        except BaseException:
            await self._release()
            raise
        return format

    async def _put(self, frames: Samples) -> None:
        assert self._writer is not None
        try:
            await self._writer.write(samples_to_pcm(frames, self._format.width), self._frame_bytes())
            self._update_header()
        except OSError as error:
            self._mend()
            raise self._explained(error) from error
        except ValueError as error:
            raise SinkError(f"cannot write {self._name}: {error}") from error  # its owner closed it

    async def _release(self) -> None:
        if self._writer is not None:
            if self._failure is None:
                await self._pad()
            self._writer.close()

    def _frame_bytes(self) -> int:
        return self._format.channels * self._format.width

    def _data_bytes(self) -> int:
        return max(0, self._writer.written - self._header_bytes) if self._writer else 0

    def _probe_header(self) -> None:
        assert self._writer is not None
        try:
            self._update_header()
        except (OSError, ValueError):
            self._writer.stay_sequential()

    def _update_header(self) -> None:
        assert self._writer is not None
        if self._header_bytes and self._writer.rewritable:
            self._writer.rewrite(wav_header(self._format, self._data_bytes() // self._frame_bytes()))

    def _mend(self) -> None:
        """After a failed write: no half frame at the end, and a header that says what is there."""
        assert self._writer is not None
        if self._writer.rewritable:
            with contextlib.suppress(OSError):
                self._writer.truncate(self._writer.written - self._data_bytes() % self._frame_bytes())
                self._update_header()

    async def _pad(self) -> None:
        """RIFF chunks have even lengths; the size in the header leaves the padding out."""
        assert self._writer is not None
        if self._header_bytes and self._data_bytes() % 2:
            with contextlib.suppress(OSError):
                await self._writer.write(b"\0")

    def _explained(self, error: OSError) -> SinkError:
        spoken = f"{self._data_bytes() / self._frame_bytes() / self._format.sample_rate:.2f} s of speech"
        if error.errno in _FULL:
            left = " and is a valid file" if self._encoding == "wav" and self._writer and self._writer.rewritable else ""
            return SinkError(
                f"the disk is full: {self._name} holds {spoken}{left}; free some space or choose another place to write to"
            )
        if isinstance(error, BrokenPipeError | ConnectionResetError):
            return SinkError(f"the reader of {self._name} went away after {spoken}")
        reason = error.strerror or str(error)
        if isinstance(error, FileNotFoundError):
            reason = f"the folder {Path(self._name).absolute().parent} does not exist; create it or choose another path"
        return SinkError(f"cannot write {self._name}: {reason}")


def _checked_path(path: str) -> str:
    try:
        if b"\0" in os.fsencode(path) or not path:
            raise InputError(f"{path!r} is no file name")
    except UnicodeEncodeError as error:
        raise InputError(f"{path!r} is no file name: it holds a lone surrogate") from error
    return path


def _encoding_of(path: str) -> Encoding:
    """What the extension of ``path`` asks for; InputError names the ones that can be written."""
    extension = Path(path).suffix.lower()
    if extension not in _ENCODINGS:
        what = f"cannot write {extension} files" if extension else "the name has no extension"
        raise InputError(f"{path}: {what}; use one of {' '.join(_ENCODINGS)}, or say wav:{path} or pcm:{path}")
    return _ENCODINGS[extension]
