"""The command line, ``sayline``."""

from __future__ import annotations

import signal

from voice_agent.cli.interrupt import stop_at_once

__all__ = ["main"]


def main() -> None:
    """The entry point of the ``sayline`` command."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, stop_at_once)
    from voice_agent.cli.main import app

    app()
