"""What all commands share: options to sinks, errors to exit codes, Ctrl-C, progress."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from voice_agent.errors import InputError, MissingExtraError, SaylineError, SinkError, SourceError
from voice_agent.sinks.base import Sink
from voice_agent.sinks.opening import open_sink
from voice_agent.sinks.tee import TeeSink

EXIT_CODES = """\
Exit codes: 0 all was spoken; 2 the input or an option cannot be used; 3 the LLM failed; 4 no place to play to (device,
file, closed pipe); 5 the voice or the engine failed; 6 an optional package is missing; 130 stopped by Ctrl-C."""
INTERRUPTED = 130


def exit_code(error: SaylineError) -> int:
    """The exit code that stands for an error."""
    for kind, code in ((InputError, 2), (SourceError, 3), (SinkError, 4), (MissingExtraError, 6)):
        if isinstance(error, kind):
            return code
    return 5


def sink_for(out: str | None, play: bool | None, device: str | None = None) -> Sink:
    """``--out`` and ``--play`` to a sink: the speaker unless a file is named, both if asked for, none with ``--no-play``.

    ``device``: the speaker's, None for the system's.
    """
    speaker = "speaker" if device is None else f"speaker:{device}"
    if out is None:
        return open_sink("null" if play is False else speaker)
    file = open_sink(out)
    return TeeSink([open_sink(speaker), file]) if play else file


def run(main: Coroutine[Any, Any, int | None]) -> None:
    """Runs a command to its end and leaves the process with its exit code."""
    try:
        code = asyncio.run(main) or 0
    except SaylineError as error:
        complain(error)
        code = exit_code(error)
    except KeyboardInterrupt:
        code = INTERRUPTED
    with contextlib.suppress(OSError, ValueError):
        sys.stdout.flush()
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.flush()
    # The worker may still be loading torch; waiting for it would hold Ctrl-C up by a second.
    os._exit(code)


def complain(error: SaylineError) -> None:
    """An error in one line, and what was not spoken because of it."""
    print(f"sayline: {error}", file=sys.stderr)
    if error.unspoken:
        print(f"sayline: not spoken: {error.unspoken}", file=sys.stderr)


def warn(message: str) -> None:
    """A warning in one line."""
    print(f"sayline: warning: {message}", file=sys.stderr)


def print_json(value: object) -> None:
    """One line of JSON on the standard output."""
    print(json.dumps(value, ensure_ascii=False), flush=True)


@asynccontextmanager
async def progress(spoken_s: Callable[[], float], shown: bool) -> AsyncIterator[None]:
    """While the block runs, shows on a terminal how many seconds of speech are made."""
    if not (shown and sys.stderr.isatty()):
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status("loading the voice") as status:

        async def update() -> None:
            while True:
                await asyncio.sleep(0.2)
                if (seconds := spoken_s()) > 0:
                    status.update(f"{seconds:.1f} s of speech")

        updating = asyncio.create_task(update())
        try:
            yield
        finally:
            updating.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await updating
