"""What Ctrl-C does until a command runs, and the exit code of what it stopped."""

from __future__ import annotations

import os
from types import FrameType

__all__ = ["INTERRUPTED", "stop_at_once"]

INTERRUPTED = 130


def stop_at_once(number: int, frame: FrameType | None) -> None:
    """Leaves without a word: a KeyboardInterrupt would be a traceback out of an import."""
    os._exit(INTERRUPTED)
