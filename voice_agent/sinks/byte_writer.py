"""Writes bytes to a path, a file object or the standard output; a slow reader never blocks the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import io
import os
import stat
import sys
from typing import BinaryIO

from voice_agent.errors import InputError, SinkError

__all__ = ["ByteWriter"]

_PIPE_BLOCK_BYTES = 4096  # PIPE_BUF on Linux: a pipe that is ready for writing takes this much without blocking
_FIFO_POLL_S = 0.02


class ByteWriter:
    """``written`` bytes went out since it was opened. OSErrors come through as they are."""

    def __init__(self, file: BinaryIO | io.FileIO, *, close: bool) -> None:
        """``close``: ``file`` is ours to close."""
        self._file = file
        self._close = close
        self._slow = _is_slow(file)
        self._origin = _origin(file)
        self.written = 0

    @classmethod
    async def open(cls, target: str | BinaryIO) -> ByteWriter:
        """``target``: a path, "-" for the standard output, or a binary file object, written from where it stands.

        Raises InputError for a terminal or a file open for text, SinkError without a standard output, and OSError.
        """
        if not isinstance(target, str):
            if isinstance(target, io.TextIOBase):
                raise InputError("the file object is open for text; open it in binary mode")
            if isinstance(target, io.FileIO | io.BufferedWriter | io.BufferedRandom):
                # Past its buffer: what a buffer still holds is lost when the process is killed.
                target.flush()
                return cls(io.FileIO(target.fileno(), "w", closefd=False), close=True)
            return cls(target, close=False)
        if target == "-":
            return cls(_standard_output(), close=True)
        return cls(await _open_fifo(target) if _is_fifo(target) else io.FileIO(target, "w"), close=True)

    @property
    def rewritable(self) -> bool:
        """Bytes already written can be changed."""
        return self._origin is not None

    async def write(self, data: bytes, unit: int = 1) -> None:
        """Write all of ``data``, which is made of units of ``unit`` bytes.

        Cancelled or failed, ``written`` says how far it came. A cancelled write to a pipe ends between two units.
        """
        view = memoryview(data)
        while len(view):
            if not self._slow:
                count = self._file.write(view)
                count = len(view) if count is None else count  # file-like objects need not say
            else:
                await _writable(self._file.fileno())
                # None: another process made the pipe non-blocking and filled it meanwhile.
                count = self._file.write(view[: _PIPE_BLOCK_BYTES // unit * unit]) or 0
            self.written += count
            view = view[count:]
        self._file.flush()

    def rewrite(self, data: bytes) -> None:
        """Put ``data`` in place of the first bytes written. Only when ``rewritable``."""
        assert self._origin is not None
        self._file.seek(self._origin)
        self._file.write(data)
        self._file.seek(self._origin + self.written)

    def truncate(self, written: int) -> None:
        """Forget all but the first ``written`` bytes. Only when ``rewritable``."""
        assert self._origin is not None
        self._file.truncate(self._origin + written)
        self._file.seek(self._origin + written)
        self.written = written

    def stay_sequential(self) -> None:
        """Rewriting turned out to be impossible, whatever the file says (a compressed one)."""
        self._origin = None

    def close(self) -> None:
        if self._close:
            self._file.close()


def _standard_output() -> io.FileIO:
    try:
        sys.stdout.flush()
        descriptor = os.dup(sys.stdout.fileno())
    except (AttributeError, OSError, ValueError) as error:
        raise SinkError("there is no standard output to write to; name a file, such as out.wav") from error
    file = io.FileIO(descriptor, "w")
    if file.isatty():
        file.close()
        raise InputError("audio is not written to a terminal; send it on with | or >, or name a file, such as out.wav")
    return file


def _is_fifo(path: str) -> bool:
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except OSError:
        return False


async def _open_fifo(path: str) -> io.FileIO:
    """Wait until someone reads the FIFO: a blocking open could not be cancelled."""
    while True:
        try:
            return io.FileIO(os.open(path, os.O_WRONLY | os.O_NONBLOCK), "w")
        except OSError as error:
            if error.errno != errno.ENXIO:  # no reader yet
                raise
        await asyncio.sleep(_FIFO_POLL_S)


def _is_slow(file: BinaryIO | io.FileIO) -> bool:
    """A pipe or socket: its reader sets the pace."""
    if sys.platform == "win32":  # its event loop cannot wait for a pipe
        return False
    with contextlib.suppress(OSError, ValueError, AttributeError):
        mode = os.fstat(file.fileno()).st_mode
        return isinstance(file, io.FileIO) and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))
    return False


def _origin(file: BinaryIO | io.FileIO) -> int | None:
    """Where writing begins, None where one cannot come back to it."""
    try:
        if not file.seekable():
            return None
        if sys.platform != "win32" and isinstance(file, io.FileIO):
            import fcntl

            if fcntl.fcntl(file.fileno(), fcntl.F_GETFL) & os.O_APPEND:
                return None
        return file.tell()
    except (OSError, ValueError, AttributeError):
        return None


async def _writable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_writer(descriptor, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_writer(descriptor)
