"""The command line, ``sayline``."""

from __future__ import annotations

import os
import signal
from types import FrameType

__all__ = ["INTERRUPTED", "main", "stop_at_once"]

INTERRUPTED = 130
"""The exit code of what Ctrl-C stopped."""


def main() -> None:
    """The entry point of the ``sayline`` command."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, stop_at_once)
    from voice_agent.cli.main import app

    app()


def stop_at_once(number: int, frame: FrameType | None) -> None:
    """What Ctrl-C does until a command runs: a KeyboardInterrupt would be a traceback out of an import."""
    os._exit(INTERRUPTED)
