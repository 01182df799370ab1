"""One sink made of several: what is played is also written."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Self

from tts_engine.types import AudioChunk, AudioFormat
from voice_agent.errors import InputError
from voice_agent.pacing import Playhead
from voice_agent.sinks.base import Monitor, Sink

__all__ = ["TeeSink"]

_SLICE_S = 0.02
_Act = Callable[[Sink], Awaitable[object]]


class TeeSink:
    """Hands every chunk to each of ``sinks``, in slices of 20 ms. The first one is the listener's: its playhead counts.

    The gain is the listener's alone, and what the others keep is as it was made. A hold stops all of them. The others
    get each slice before the listener does, whose write waits while it plays. Where a write is cancelled in
    between, what they have already is not given to them again. What a ``clear`` takes back from the listener stays in
    a file.
    """

    def __init__(self, sinks: Sequence[Sink]) -> None:
        if not sinks:
            raise InputError("a tee needs at least one sink")
        self._listener, *self._others = sinks
        self._ahead = [0] * len(self._others)  # samples that each of the others has and the listener has not
        self._epoch = 0  # of clear(): a write that sees it move stops

    @property
    def waited_for(self) -> bool:
        return any(sink.waited_for for sink in self._all)

    @property
    def format(self) -> AudioFormat:
        return self._listener.format

    @property
    def playhead(self) -> Playhead:
        return self._listener.playhead

    async def start(self, format: AudioFormat | None = None) -> None:
        try:
            for sink in self._all:
                await sink.start(format)
        except BaseException:
            with contextlib.suppress(Exception):  # why it could not start says more
                await self._each(_abandon)
            raise

    async def write(self, chunk: AudioChunk) -> None:
        epoch = self._epoch
        step = max(1, round(chunk.format.sample_rate * _SLICE_S))
        for first in range(0, max(1, len(chunk.samples)), step):
            part = chunk.samples[first : first + step]
            last = chunk.last and first + step >= len(chunk.samples)
            await self._write_slice(replace(chunk, samples=part, last=last))
            if epoch != self._epoch:
                return

    async def drain(self) -> None:
        for sink in self._all:
            await sink.drain()

    async def clear(self) -> Playhead:
        self._epoch += 1
        self._ahead = [0] * len(self._others)
        await self._each(lambda sink: sink.clear())
        return self.playhead

    async def hold(self) -> Playhead:
        await self._each(lambda sink: sink.hold())
        return self.playhead

    async def resume(self) -> None:
        await self._each(lambda sink: sink.resume())

    @property
    def gain_db(self) -> float:
        return self._listener.gain_db

    def set_gain(self, db: float) -> None:
        self._listener.set_gain(db)

    @property
    def monitor(self) -> Monitor | None:
        return self._listener.monitor

    @monitor.setter
    def monitor(self, monitor: Monitor | None) -> None:
        self._listener.monitor = monitor

    async def close(self) -> None:
        await self._each(lambda sink: sink.close(), cancelled=_abandon)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._each(lambda sink: sink.__aexit__(kind, error, trace))

    @property
    def _all(self) -> list[Sink]:
        return [self._listener, *self._others]

    async def _write_slice(self, part: AudioChunk) -> None:
        epoch = self._epoch
        for index, sink in enumerate(self._others):
            rest = replace(part, samples=part.samples[self._ahead[index] :])
            before = sink.playhead.accepted_samples
            try:
                await sink.write(rest)
            finally:
                if epoch == self._epoch:
                    self._ahead[index] += sink.playhead.accepted_samples - before
        if epoch != self._epoch:
            return
        before = self._listener.playhead.accepted_samples
        try:
            await self._listener.write(part)
        finally:
            if epoch == self._epoch:
                taken = self._listener.playhead.accepted_samples - before
                self._ahead = [max(0, ahead - taken) for ahead in self._ahead]

    async def _each(self, act: _Act, cancelled: _Act | None = None) -> None:
        """Does it to all of them, whatever happens; then raises the first thing that went wrong.

        ``cancelled`` is done instead to those that are left after a cancellation: nobody waits for them any more.
        """
        failures: list[BaseException] = []
        for sink in self._all:
            stopped = any(isinstance(failure, asyncio.CancelledError) for failure in failures)
            try:
                await (cancelled(sink) if stopped and cancelled else act(sink))
            except BaseException as failure:
                failures.append(failure)
        if failures:
            raise failures[0]


async def _abandon(sink: Sink) -> None:
    await sink.clear()
    await sink.close()
