"""One key of the terminal, without waiting for the end of the line."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from voice_agent.errors import InputError

__all__ = ["on_key"]


@asynccontextmanager
async def on_key(key: str, act: Callable[[], None]) -> AsyncGenerator[None, None]:
    """While the block runs, ``act`` is called whenever ``key`` (one character) is pressed; Ctrl-C works as ever.

    Raises InputError where the standard input is no terminal, or the system has no such terminals (Windows).
    """
    try:
        import termios
        import tty
    except ImportError as error:
        raise InputError("--push-to-talk needs a Unix terminal; leave it out") from error
    if sys.stdin is None or not sys.stdin.isatty():
        raise InputError("--push-to-talk needs a terminal as its standard input; leave it out")
    file = sys.stdin.fileno()
    before = termios.tcgetattr(file)
    loop = asyncio.get_running_loop()

    def read() -> None:
        for byte in os.read(file, 64):
            if chr(byte) == key:
                act()

    tty.setcbreak(file)
    loop.add_reader(file, read)
    try:
        yield
    finally:
        loop.remove_reader(file)
        termios.tcsetattr(file, termios.TCSADRAIN, before)
