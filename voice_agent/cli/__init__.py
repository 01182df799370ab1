"""The command line, ``sayline``."""

from __future__ import annotations

from voice_agent.cli.main import main

__all__ = ["main"]
