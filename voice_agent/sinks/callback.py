"""A sink that hands the audio to a function: the shortest way to any library that plays or sends sound."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Literal, overload

from tts_engine.types import AudioFormat, Samples
from voice_agent.audio import samples_to_pcm
from voice_agent.errors import SinkError
from voice_agent.sinks.base import BaseSink

__all__ = ["CallbackSink"]


class CallbackSink(BaseSink):
    """Calls ``function`` with each stretch of audio, as little-endian 16-bit PCM bytes or as a float32 array.

    The function may be async: it is awaited, so a slow one slows the speech down. What it was called with counts as
    heard when it returns. Whatever it raises becomes a SinkError.
    """

    @overload
    def __init__(
        self,
        function: Callable[[bytes], Awaitable[None] | None],
        *,
        samples: Literal["pcm16"] = "pcm16",
        format: AudioFormat | None = None,
    ) -> None: ...

    @overload
    def __init__(
        self,
        function: Callable[[Samples], Awaitable[None] | None],
        *,
        samples: Literal["float32"],
        format: AudioFormat | None = None,
    ) -> None: ...

    def __init__(
        self,
        function: Callable[[bytes], Awaitable[None] | None] | Callable[[Samples], Awaitable[None] | None],
        *,
        samples: Literal["pcm16", "float32"] = "pcm16",
        format: AudioFormat | None = None,
    ) -> None:
        """``format``: rate and channels to be called with; None keeps those of the speech."""
        super().__init__(format)
        self._function: Callable[..., Awaitable[None] | None] = function
        self._samples = samples

    async def _open(self, format: AudioFormat) -> AudioFormat:
        return format

    async def _put(self, frames: Samples) -> None:
        try:
            result = self._function(samples_to_pcm(frames) if self._samples == "pcm16" else frames)
            if inspect.isawaitable(result):
                await result
        except Exception as error:
            raise SinkError(f"the function that takes the audio failed: {type(error).__name__}: {error}") from error

    async def _release(self) -> None:
        pass
