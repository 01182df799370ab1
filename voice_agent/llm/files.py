"""Reads file objects without blocking the event loop and without waiting for whole lines: what arrived is given at
once.
"""

from __future__ import annotations

import asyncio
import codecs
import inspect
import io
import os
import stat
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any

from voice_agent.llm.pump import pumped

_READ_BYTES = 65_536


def is_file(source: Any) -> bool:
    """Whether it can be read like a file by blocking calls."""
    readable = callable(getattr(source, "read", None)) and callable(getattr(source, "readline", None))
    return readable and not inspect.iscoroutinefunction(source.read)


async def read_file(file: Any) -> AsyncGenerator[str, None]:
    """The file's text from where it stands, decoded with its encoding (UTF-8 for binary files), bad bytes replaced.

    Pipes, terminals and FIFOs are read through their descriptor, so hand them over unread: what the file object has
    buffered is not seen. The file is not closed.
    """
    decoder = codecs.getincrementaldecoder(_encoding(file))("replace")
    pieces: AsyncGenerator[Any, None]
    pieces = _read_descriptor(fd) if (fd := _pollable_descriptor(file)) is not None else pumped(_reader(file))
    try:
        async for piece in pieces:
            text = piece if isinstance(piece, str) else decoder.decode(piece)
            if text:
                yield text
    finally:
        await pieces.aclose()
    if rest := decoder.decode(b"", final=True):
        yield rest


async def _read_descriptor(fd: int) -> AsyncGenerator[bytes, None]:
    loop = asyncio.get_running_loop()
    while True:
        ready = loop.create_future()
        try:
            # Watched only while something is awaited: a descriptor with unread data would keep the loop busy.
            loop.add_reader(fd, _set, ready)
        except PermissionError:  # not pollable, such as /dev/null: reading it never blocks
            ready.set_result(None)
        try:
            await ready
        finally:
            loop.remove_reader(fd)
        data = os.read(fd, _READ_BYTES)
        if not data:
            return
        yield data


def _set(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


def _pollable_descriptor(file: Any) -> int | None:
    """The descriptor of a pipe, terminal or FIFO where the loop can watch it."""
    raw = getattr(file, "buffer", file)
    raw = getattr(raw, "raw", raw)
    if not isinstance(raw, io.FileIO) or os.name == "nt":
        return None
    fd = raw.fileno()
    return None if stat.S_ISREG(os.fstat(fd).st_mode) else fd


def _reader(file: Any) -> Callable[[Callable[[], bool]], Iterator[str | bytes]]:
    binary = getattr(file, "buffer", file)
    if binary is not file and file.seekable():
        file.seek(file.tell())  # brings the bytes below to where the text stands
    read = getattr(binary, "read1", None) or getattr(binary, "readline", None)

    def pieces(stopped: Callable[[], bool]) -> Iterator[str | bytes]:
        assert read is not None
        while not stopped() and (piece := read(_READ_BYTES)):
            yield piece

    return pieces


def _encoding(file: Any) -> str:
    encoding = getattr(file, "encoding", None)
    if not isinstance(encoding, str):
        return "utf-8-sig"
    name = codecs.lookup(encoding).name
    return "utf-8-sig" if name in ("utf-8", "ascii") else name
