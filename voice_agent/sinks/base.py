"""The contract of a sink, a place where speech goes, and the half of it that all sinks share."""

from __future__ import annotations

import asyncio
import contextlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import ClassVar, Protocol, Self, runtime_checkable

import numpy as np

from tts_engine.types import AudioChunk, AudioFormat, Samples
from voice_agent.audio import Resampler, map_channels
from voice_agent.errors import InputError, SinkError
from voice_agent.pacing import Clock, MonotonicClock, Playhead, PlayLine
from voice_agent.sinks.valve import Valve

__all__ = ["BaseSink", "Monitor", "Sink"]

Monitor = Callable[[Samples, float], None]
"""Gets what goes out of a sink, [frames, channels] float32 in the sink's own format, and when it begins to sound."""

_SLICE_S = 0.02  # what a write accepts at a time: between slices it may be cancelled, and nothing is lost
_POLL_S = 0.01  # how soon a waiting write or drain notices a clear() or a lost device


@runtime_checkable
class Sink(Protocol):
    """A place where speech goes. One task writes; ``clear`` may come from another at any time.

    ``voice_agent.testing.sink_conformance`` checks everything said here.
    """

    monitor: Monitor | None
    """Called with what really goes out (gain, fades and holds applied; silence may be left out), in the order in which
    it sounds, with the moment at which it begins, on the sink's clock (``time.monotonic``). The thread that plays calls
    it: it has to be quick and must not raise. What it was called with cannot be taken back any more."""

    @property
    def waited_for(self) -> bool:
        """Whether somebody waits for the audio; False: it is only stored, and the engine serves listeners first."""
        ...

    @property
    def format(self) -> AudioFormat:
        """The sink's own format, which ``monitor`` is given; final once it is started."""
        ...

    @property
    def playhead(self) -> Playhead:
        """How far the sink is: samples accepted and heard, the device's latency counted."""
        ...

    async def start(self, format: AudioFormat | None = None) -> None:
        """Open whatever is behind the sink, so that a bad path or a missing device shows before any synthesis.

        ``format`` is what the chunks will have, as far as is known. The first ``write`` starts a sink that nobody
        started; a second start does nothing. Raises SinkError (DeviceError for a sound device).
        """
        ...

    async def write(self, chunk: AudioChunk) -> None:
        """Accept a chunk, of any rate and number of channels; return when at most a bound is left to be heard.

        Cancelled, it has accepted what ``playhead`` says, and the next write goes on there. A ``clear`` while it
        waits makes it return without the rest. Raises InputError for samples that do not fit their format, SinkError
        when the sink failed.
        """
        ...

    async def drain(self) -> None:
        """Return when the last accepted sample was heard (a file: written), or as soon as it was cleared."""
        ...

    async def clear(self) -> Playhead:
        """Drop what is not yet heard; returns what was, which is final. A failed or closed sink answers too."""
        ...

    async def hold(self) -> Playhead:
        """Stop playing within a few hundredths of a second, with a short fade; nothing is dropped.

        Returns when the playhead stands still, with it. Held, ``write`` waits as if the sink were full, and ``drain``
        for what is left. ``resume``, ``clear`` and ``close`` end a hold. A failed or closed sink answers too.
        """
        ...

    async def resume(self) -> None:
        """Go on with the sample behind the last one that was heard before the hold, within a fade of 10 ms."""
        ...

    @property
    def gain_db(self) -> float:
        """How much louder than written the sink plays."""
        ...

    def set_gain(self, db: float) -> None:
        """Plays from now on at this gain, reached by a ramp of 20 ms: −12 ducks, 0 is as written."""
        ...

    async def close(self) -> None:
        """Drain what was not cleared and release everything; cancelled, clear first. A second close does nothing.

        What a hold keeps is played first.
        """
        ...

    async def __aenter__(self) -> Self:
        """Start."""
        ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close; after an exception or a cancellation clear first."""
        ...


class BaseSink(ABC):
    """State, format conversion, back-pressure and accounting for sinks made of a few small methods.

    A subclass says how to open (``_open``), take frames in its own format (``_put``) and release (``_release``). One
    in which frames wait to be played sets ``_playing`` and also says how many frames were heard (``_heard``), drops the
    others (``_cut``), stops and goes on (``_pause``, ``_go_on``); it lets the frames out through ``_valve`` and hands
    what goes out to ``_tell``. It raises SinkError, or leaves one in ``_failure`` when it happens elsewhere.
    """

    _playing = False

    waited_for: bool = True

    buffer_s: ClassVar[float] = 2.0
    """Seconds of audio that may wait to be heard before ``write`` blocks."""

    def __init__(self, format: AudioFormat | None = None, *, clock: Clock | None = None) -> None:
        """``format``: the sink's own; None takes that of the source."""
        self._wanted = format
        self._clock = clock or MonotonicClock()
        self._format = format or AudioFormat()
        self._line = PlayLine(self._format.sample_rate)
        self._source: AudioFormat | None = None  # of the chunk before, None at the start of a stream
        self._resampler: Resampler | None = None
        self._opened = False
        self._closed = False
        self._starting = asyncio.Lock()
        self._epoch = 0  # of clear(): a write or drain that sees it move stops
        self._clearing = 0
        self._failure: SinkError | None = None
        self._failure_shown = False
        self._held = False
        self._gain_db = 0.0
        self._valve = Valve(self._format.sample_rate)
        self.monitor: Monitor | None = None

    @abstractmethod
    async def _open(self, format: AudioFormat) -> AudioFormat:
        """Open for frames of this format; returns the one that it will be."""

    @abstractmethod
    async def _put(self, frames: Samples) -> None:
        """Take frames in the sink's own format; there is room for them.

        Where this waits and is cancelled, the part that was taken does not count: 20 ms at most, or what a resampler
        gave.
        """

    @abstractmethod
    async def _release(self) -> None:
        """Free everything; what still waits is not to be heard."""

    def _heard(self) -> int:
        """Frames heard since the start, less those that were cut."""
        return self._line.frames

    async def _cut(self) -> int:
        """Drop what waits; returns the frames that were heard or cannot be taken back."""
        return self._heard()

    async def _pause(self) -> None:  # noqa: B027 — nothing plays where frames do not wait
        """Let no more out; return when what is on its way has sounded."""

    def _go_on(self) -> None:  # noqa: B027
        """Let out what a pause has kept."""

    def _latency_s(self) -> float:
        return 0.0

    def _underruns(self) -> int:
        return 0

    @property
    def format(self) -> AudioFormat:
        """The sink's own format, final once it is started."""
        return self._format

    @property
    def playhead(self) -> Playhead:
        self._line.hear(self._heard())
        return self._line.playhead(latency_s=self._latency_s(), underruns=self._underruns())

    async def start(self, format: AudioFormat | None = None) -> None:
        async with self._starting:
            if self._closed:
                raise SinkError("this sink is closed; make a new one")
            if not self._opened:
                self._format = await self._open(self._wanted or format or AudioFormat())
                self._line = PlayLine(self._format.sample_rate)
                self._valve.rate = self._format.sample_rate
                self._opened = True

    async def write(self, chunk: AudioChunk) -> None:
        samples = _checked(chunk)
        await self.start(chunk.format)
        while self._clearing:  # a write that begins while a clear() is under way belongs after it
            await self._clock.sleep(_POLL_S)
        epoch = self._epoch
        step = max(1, round(chunk.format.sample_rate * _SLICE_S))
        for first in range(0, len(samples), step):
            if not await self._wait_until_pending_is(self.buffer_s, epoch):
                return
            await self._accept(samples[first : first + step], chunk.format)
        self._check()
        if chunk.last and epoch == self._epoch:
            await self._end_stream()

    async def drain(self) -> None:
        if not self._opened or self._closed:
            return
        self._check()
        epoch = self._epoch
        await self._end_stream()
        await self._wait_until_pending_is(0.0, epoch)

    async def clear(self) -> Playhead:
        if self._opened and not self._closed:
            self._epoch += 1
            self._resampler = None
            self._source = None
            # A cancelled clear must still account for what the device dropped.
            await asyncio.shield(self._cut_line())
        self._held = False
        self._valve.resume()
        return self.playhead

    async def hold(self) -> Playhead:
        self._held = True
        if self._opened and not self._closed and self._failure is None:
            await self._pause()
        return self.playhead

    async def resume(self) -> None:
        if self._held:
            self._held = False
            if self._opened and not self._closed:
                self._go_on()

    @property
    def gain_db(self) -> float:
        return self._gain_db

    def set_gain(self, db: float) -> None:
        if not math.isfinite(db):
            raise InputError(f"a gain has to be a number of decibels, not {db!r}")
        self._gain_db = db
        self._valve.set_gain(db)

    async def close(self) -> None:
        if self._closed:
            return
        try:
            await self.resume()
            if not self._failure_shown:
                await self.drain()
        except BaseException:
            await self.clear()
            raise
        finally:
            self._closed = True
            if self._opened:
                await self._release()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            await self.close()
            return
        await self.clear()
        with contextlib.suppress(SinkError):  # the error that is under way says more
            await self.close()

    async def _accept(self, samples: Samples, format: AudioFormat) -> None:
        if self._source is not None and self._source != format:
            await self._end_stream()
        self._source = format
        if self._resampler is None:
            self._resampler = Resampler(format.sample_rate, self._format.sample_rate, self._format.channels)
        frames = self._resampler.feed(map_channels(samples, self._format.channels))
        await self._put_checked(frames)
        self._line.accept(len(samples), format.sample_rate, len(frames))

    async def _end_stream(self) -> None:
        """Hand out what the resampler holds back; the next samples begin a new stream, perhaps of another format."""
        if self._resampler is None:
            return
        frames = self._resampler.flush()
        self._resampler = None
        self._source = None
        await self._put_checked(frames)
        self._line.end(len(frames))
        self._line.hear(self._heard())

    async def _put_checked(self, frames: Samples) -> None:
        if not len(frames):
            return
        try:
            if self._playing:
                await self._put(frames)
                return
            self._valve.admit(len(frames))
            heard = self._valve.apply(frames)
            await self._put(heard)
            self._tell(heard, self._clock.now_s())
        except SinkError as error:
            self._failure = error
            self._failure_shown = True
            raise

    async def _wait_until_pending_is(self, bound_s: float, epoch: int) -> bool:
        """Wait until at most ``bound_s`` is left to be heard, and none is held; False: a clear() came first."""
        rate = self._format.sample_rate
        while True:
            self._check()
            if epoch != self._epoch:
                return False
            excess_s = (self._line.frames - self._heard()) / rate - bound_s
            if excess_s <= 0 and not (self._held and bound_s):  # with nothing left to be heard a drain has nothing to wait for
                return True
            await self._clock.sleep(_POLL_S if self._held else min(_POLL_S, excess_s + 1 / rate))

    async def _cut_line(self) -> None:
        self._clearing += 1
        try:
            self._line.cut(await self._cut())
        finally:
            self._clearing -= 1

    def _tell(self, frames: Samples, begins_s: float) -> None:
        """``frames`` go out and begin to sound at ``begins_s``."""
        if self.monitor is not None and len(frames):
            self.monitor(frames.reshape(len(frames), -1).copy(), begins_s)

    def _check(self) -> None:
        if self._closed:
            raise SinkError("this sink is closed; make a new one")
        if self._failure is not None:
            self._failure_shown = True
            raise self._failure


def _checked(chunk: AudioChunk) -> Samples:
    """The chunk's samples as float32, finite; InputError where they do not fit the chunk's format."""
    format, samples = chunk.format, np.asarray(chunk.samples, dtype=np.float32)
    if format.sample_rate <= 0 or format.channels <= 0:
        raise InputError(f"a chunk cannot have {format.sample_rate} Hz and {format.channels} channels")
    if samples.ndim not in (1, 2) or (samples.shape[1] if samples.ndim == 2 else 1) != format.channels:
        raise InputError(
            f"samples of shape {samples.shape} do not fit a format of {format.channels} channels: "
            "give [samples] for one, [samples, channels] for several"
        )
    if np.isfinite(samples).all():
        return samples
    # One NaN inside a resampler would silence everything after it.
    return np.nan_to_num(samples, nan=0.0, posinf=1.0, neginf=-1.0)
