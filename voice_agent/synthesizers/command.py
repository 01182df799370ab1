"""Speaks with a command: it is run for each sentence, gets the text, and writes PCM or WAV."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import shutil
import signal
import sys
from collections.abc import AsyncGenerator, Sequence

from tts_engine.types import AudioFormat, Utterance
from voice_agent.errors import EngineError, InputError
from voice_agent.synthesizers.session import QueueSynthesizer, Sound
from voice_agent.synthesizers.sound_reader import Encoding, SoundReader

_READ_BYTES = 1 << 16
_STDERR_BYTES = 4096  # of the end of what the command complains, kept for the message
_EXIT_S = 2.0  # between the end of the audio and the end of the command
_COMPLAINT_S = 0.5  # for the pipes of a killed command to run empty


class CommandSynthesizer(QueueSynthesizer):
    """Runs a command per sentence and plays its standard output while it comes.

        CommandSynthesizer("piper -m joe.onnx --output-raw", format=AudioFormat(22_050))
        CommandSynthesizer(["espeak-ng", "--stdout", "-s", "{words_a_minute}", "{text}"])

    The text goes to the standard input, or into the arguments where one holds ``{text}``. ``{voice}``, ``{language}``
    (empty where it is not known), ``{speed}`` (a factor), ``{length}`` (its inverse) and ``{words_a_minute}`` (175 at
    speed 1) are filled in too. No shell is involved. A cancel kills the command and everything that it started.

    A command that fails, is silent for ``timeout_s`` or writes something else than audio gives an EngineError with the
    last line that it complained.
    """

    def __init__(
        self,
        command: str | Sequence[str],
        *,
        format: AudioFormat | None = None,
        encoding: Encoding = "auto",
        timeout_s: float = 30.0,
    ) -> None:
        """``format``: of raw PCM; None is 24 kHz mono, 16 bits. ``encoding``: "auto" looks for a WAV header."""
        self._command = shlex.split(command) if isinstance(command, str) else list(command)
        if not self._command:
            raise InputError("the command is empty: name a program that writes audio to its standard output")
        self._format = format or AudioFormat()
        self._encoding: Encoding = encoding
        self._timeout_s = timeout_s

    async def ready(self) -> None:
        """Raises EngineError where the program is not found."""
        if shutil.which(self._command[0]) is None:
            raise self._failed("it is not found: install it, or give its whole path")

    async def sounds(self, utterance: Utterance) -> AsyncGenerator[Sound, None]:
        arguments, given = self._filled(utterance)
        running = await self._start(arguments, with_input=given is not None)
        if given is not None:
            running.give(given)
        reader = SoundReader(self._format, self._encoding)
        try:
            while data := await self._read(running.stdout):
                for sound in reader.feed(data):
                    yield sound
            await running.exit()
            for sound in reader.flush():
                yield sound
        except EngineError as error:
            await running.end()
            complaint = running.last_complaint()
            raise self._failed(f"{error}{f'; it said: {complaint}' if complaint else ''}") from error
        finally:
            await running.end()

    def _filled(self, utterance: Utterance) -> tuple[list[str], bytes | None]:
        """The arguments, and what goes to the standard input."""
        text = " ".join(utterance.text.split())
        values = {
            # A text that begins with a dash would be read as an option.
            "{text}": f" {text}" if text.startswith("-") else text,
            "{voice}": utterance.voice,
            "{language}": utterance.language or "",
            "{speed}": f"{utterance.speed:g}",
            "{length}": f"{1 / utterance.speed:g}",
            "{words_a_minute}": str(round(175 * utterance.speed)),
        }
        takes_text = any("{text}" in argument for argument in self._command[1:])
        arguments = [self._command[0], *(_fill(argument, values) for argument in self._command[1:])]
        return arguments, None if takes_text else f"{text}\n".encode()

    async def _start(self, arguments: Sequence[str], *, with_input: bool) -> _Running:
        pipe, loop = asyncio.subprocess.PIPE, asyncio.get_running_loop()
        try:
            transport, protocol = await loop.subprocess_exec(
                lambda: asyncio.subprocess.SubprocessStreamProtocol(_READ_BYTES, loop),
                *arguments,
                stdin=pipe if with_input else asyncio.subprocess.DEVNULL,
                stdout=pipe,
                stderr=pipe,
                start_new_session=True,  # so that what the command starts can be killed with it
            )
        except (OSError, ValueError) as error:
            raise self._failed(f"it cannot be started: {error}") from error
        return _Running(asyncio.subprocess.Process(transport, protocol, loop), transport)

    async def _read(self, stdout: asyncio.StreamReader) -> bytes:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await stdout.read(_READ_BYTES)
        except TimeoutError:
            raise EngineError(f"nothing came for {self._timeout_s:g} s") from None

    def _failed(self, reason: str) -> EngineError:
        return EngineError(f"the speech command {shlex.quote(self._command[0])} failed: {reason}")


def _fill(argument: str, values: dict[str, str]) -> str:
    """One pass, so that a text that holds a placeholder stays as it is."""
    for name, value in values.items():
        if name in argument:
            before, _, after = argument.partition(name)
            return _fill(before, values) + value + _fill(after, values)
    return argument


class _Running:
    """A command that runs, with what writes to it and what reads its complaints."""

    def __init__(self, process: asyncio.subprocess.Process, transport: asyncio.SubprocessTransport) -> None:
        assert process.stdout is not None
        self.stdout = process.stdout
        self.complaint = bytearray()
        self._process = process
        self._transport = transport
        self._helpers = [asyncio.create_task(self._collect())]

    def give(self, data: bytes) -> None:
        """Writes to the standard input, meanwhile."""
        self._helpers.append(asyncio.create_task(self._feed(data)))

    async def exit(self) -> None:
        """Raises where it failed. One that has closed its output need not be waited for long: the audio is whole."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_EXIT_S):
                if code := await self._process.wait():
                    raise EngineError(f"it ended with exit code {code}")

    def last_complaint(self) -> str:
        """The last line of its standard error."""
        lines = bytes(self.complaint).decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else ""

    async def end(self) -> None:
        """Kills it and everything that it started. The killing is done before anything is waited for."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if sys.platform == "win32":
                self._process.kill()
            else:
                os.killpg(self._process.pid, signal.SIGKILL)
        try:
            await asyncio.wait(self._helpers, timeout=_COMPLAINT_S)
        finally:
            for task in self._helpers:  # something that left the process group may still hold a pipe
                task.cancel()
            self._transport.close()
        await self._process.wait()

    async def _feed(self, data: bytes) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        with contextlib.suppress(ConnectionError):  # the command need not read all of it
            stdin.write(data)
            await stdin.drain()
        stdin.close()
        with contextlib.suppress(ConnectionError):
            await stdin.wait_closed()

    async def _collect(self) -> None:
        """Reads the standard error to its end, and keeps the end."""
        assert self._process.stderr is not None
        while data := await self._process.stderr.read(_STDERR_BYTES):
            self.complaint += data
            del self.complaint[:-_STDERR_BYTES]
