"""What all commands share: options to sinks, errors to exit codes, Ctrl-C, progress, what is shown of a turn."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, TextIO

from voice_agent.cli.interrupt import INTERRUPTED, stop_at_once
from voice_agent.errors import InputError, MissingExtraError, SaylineError, SinkError, SourceError
from voice_agent.llm.files import read_file
from voice_agent.sinks.base import Sink
from voice_agent.sinks.opening import open_sink
from voice_agent.sinks.tee import TeeSink

if TYPE_CHECKING:
    from voice_agent.report import Report

EXIT_CODES = """\
Exit codes: 0 all was spoken; 2 the input or an option cannot be used; 3 the LLM failed; 4 no place to play to (device,
file, closed pipe); 5 the voice or the engine failed; 6 an optional package is missing; 130 stopped by Ctrl-C."""
_NO_PLACE = 4
_BEGINNING_CHARS = 8192


def exit_code(error: SaylineError) -> int:
    """The exit code that stands for an error."""
    for kind, code in ((InputError, 2), (SourceError, 3), (SinkError, _NO_PLACE), (MissingExtraError, 6)):
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
    finish(lambda: asyncio.run(main))


def finish(work: Callable[[], int | None]) -> None:
    """:func:`run` for a command that only computes: there Ctrl-C stops it where it stands."""
    _ready_streams()
    if signal.getsignal(signal.SIGINT) is stop_at_once:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        code = work() or 0
        if sys.stdout is not None:
            sys.stdout.flush()
    except SaylineError as error:
        complain(error)
        code = exit_code(error)
    except BrokenPipeError:  # whoever reads what is printed has seen enough
        code = _NO_PLACE
    except OSError as error:  # a full disk behind the standard output
        _tell(f"sayline: {error}")
        code = _NO_PLACE
    except KeyboardInterrupt:
        code = INTERRUPTED
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    # The worker may still be loading torch; waiting for it would hold Ctrl-C up by a second.
    os._exit(code)


def complain(error: SaylineError) -> None:
    """An error in one line, and what was not spoken because of it."""
    _tell(f"sayline: {error}")
    if error.unspoken:
        _tell(f"sayline: not spoken: {error.unspoken}")


def warn(message: str) -> None:
    """A warning in one line."""
    _tell(f"sayline: warning: {message}")


def print_json(value: object) -> None:
    """One line of JSON on the standard output."""
    escaped = getattr(sys.stdout, "encoding", "utf-8").lower() != "utf-8"
    print(json.dumps(value, ensure_ascii=escaped), flush=True)


def standard_input() -> TextIO:
    """Where a user's text comes from. Raises InputError if the process was started without."""
    if sys.stdin is None:
        raise InputError("there is no standard input to read: it was closed when the command began")
    return sys.stdin


async def text_of(file: TextIO) -> AsyncGenerator[str, None]:
    """The file's text as it arrives. Raises InputError for a binary file, which shows by a NUL where it begins."""
    seen = 0
    async with aclosing(read_file(file)) as pieces:
        async for piece in pieces:
            if "\0" in piece[: max(0, _BEGINNING_CHARS - seen)]:
                raise InputError("the standard input is no text but a binary file: pipe text into it")
            seen += len(piece)
            yield piece


def _ready_streams() -> None:
    """What the terminal's encoding lacks is printed as an escape; without a standard error, what is told there is lost."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 (for as long as the process lives)


def _tell(line: str) -> None:
    with contextlib.suppress(OSError):
        print(line, file=sys.stderr)


def show_report(report: Report, timeline: bool, json: bool, **asked: str) -> None:
    """Warnings, and what ``--timeline`` and ``--json`` show of a turn; ``asked``: what it answered."""
    for warning in report.warnings:
        warn(warning)
    if timeline:
        from voice_agent.cli.timeline import show_timeline

        show_timeline(report)
    if json:
        print_json({**asked, **report.as_dict()})


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
