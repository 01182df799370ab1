"""``sayline serve``: the server, from flags, environment and a file to a socket."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from voice_agent.cli.running import print_json
from voice_agent.errors import MissingExtraError, SinkError
from voice_agent.server.config import ServerConfig
from voice_agent.server.settings import load_config

_FILES_A_CLIENT = 2
_FILES_BESIDE = 256


def settings(path: Path | None, flags: dict[str, Any], sets: Sequence[str]) -> ServerConfig:
    """The settings from all places. Raises ConfigError."""
    return load_config(path, os.environ, flags, sets)


def show(config: ServerConfig) -> None:
    """Prints the settings as one line of JSON, without what is secret."""
    print_json(_without_secrets(asdict(config)))


async def serve(config: ServerConfig) -> int:
    """Serves until SIGTERM or Ctrl-C; gives the exit code."""
    try:
        from voice_agent.server.app import create_app
        from voice_agent.server.logs import set_up_logging
        from voice_agent.server.serving import make_server
    except ModuleNotFoundError as error:
        if error.name is None or "." in error.name:  # a module of a package that is there: a fault, not a missing extra
            raise
        raise MissingExtraError(f'the server needs {error.name}: pip install "sayline[server]"') from error
    set_up_logging(config.logs.level)
    app = create_app(config)
    app.state.service.on_ready.append(_settle_memory)
    _allow_files(config.limits.connections * _FILES_A_CLIENT + _FILES_BESIDE)
    server = make_server(app, config)
    if config.open_to_all:
        print(f"sayline: warning: everyone who reaches {config.host} may use this server: no API key is set", file=sys.stderr)
    try:
        await server.serve()
    except SystemExit as error:  # uvicorn's way to say that the address cannot be had; it has logged why
        raise SinkError(f"cannot listen on {config.host}:{config.port}: choose another one with --host and --port") from error
    return 0


def _settle_memory() -> None:
    """What was loaded stays: the collector need not look through it again, and stop everything for a tenth of a second."""
    gc.collect()
    gc.freeze()


def _allow_files(count: int) -> None:
    """Each connection is an open file; the usual limit is 1024."""
    with contextlib.suppress(ImportError, ValueError, OSError):  # no such thing on Windows, or not allowed
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < count:
            resource.setrlimit(resource.RLIMIT_NOFILE, (count if hard == resource.RLIM_INFINITY else min(count, hard), hard))


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: "…" if each and key in ("key", "api_key", "credential") else _without_secrets(each)
            for key, each in value.items()
        }
    return [_without_secrets(each) for each in value] if isinstance(value, list | tuple) else value
