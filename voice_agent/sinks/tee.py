"""One sink made of several: what is played is also written."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from tts_engine.types import AudioChunk, AudioFormat
from voice_agent.pacing import Playhead
from voice_agent.sinks.base import Sink

__all__ = ["TeeSink"]


class TeeSink:
    """Hands every chunk to each of ``sinks``, in order. The first one is the listener's: its playhead counts."""

    def __init__(self, sinks: Sequence[Sink]) -> None:
        self._sinks = list(sinks)

    @property
    def playhead(self) -> Playhead:
        return self._sinks[0].playhead

    async def start(self, format: AudioFormat | None = None) -> None:
        for sink in self._sinks:
            await sink.start(format)

    async def write(self, chunk: AudioChunk) -> None:
        for sink in reversed(self._sinks):  # the listener's blocks while it plays: files first
            await sink.write(chunk)

    async def drain(self) -> None:
        for sink in self._sinks:
            await sink.drain()

    async def clear(self) -> Playhead:
        heard = [await sink.clear() for sink in self._sinks]
        return heard[0]

    async def close(self) -> None:
        for sink in self._sinks:
            await sink.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for sink in self._sinks:
            await sink.__aexit__(kind, error, trace)
