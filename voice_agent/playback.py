"""Plays one turn on a sink and follows the ear: what was heard, when, and how to stop at once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import numpy as np

from tts_engine.types import AudioChunk, Samples
from voice_agent.captions import Caption, Event, SentenceHeard
from voice_agent.errors import SaylineError, SinkError
from voice_agent.pacing import Playhead
from voice_agent.report import Report
from voice_agent.sinks.base import Sink
from voice_agent.start_buffer import StartBuffer, hold_start
from voice_agent.turn import Turn

__all__ = ["Playback"]

_POLL_S = (0.01, 0.25)
_CLEAR_S = 2.0
"""How long a sink may take to fall silent before it counts as failed."""
_FILLER_LEAD_S = 0.25
_FADE_SAMPLES = 120


class Playback:
    """``turn`` on a started ``sink``. ``emit`` gets captions and sentences as they are heard.

    ``start`` holds utterances back while the engine is too slow, and learns from turn to turn; None: nothing is held back.
    ``gives_way``: whether what is left of a filler is not to be heard.
    """

    def __init__(
        self,
        turn: Turn,
        sink: Sink,
        *,
        epoch: int = 0,
        emit: Callable[[Event], None] = lambda event: None,
        start: StartBuffer | None = None,
        gives_way: Callable[[], bool] = lambda: False,
    ) -> None:
        self._turn = turn
        self._sink = sink
        self._epoch = epoch
        self._emit = emit
        self._start = start
        self._gives_way = gives_way
        self._task: asyncio.Task[None] | None = None
        self._stopping: asyncio.Task[float] | None = None
        self._written = asyncio.Event()
        self._patience: asyncio.Timeout | None = None
        self._began = sink.playhead
        self._seen = self._began
        self._seen_s = turn.timeline.elapsed_s()
        self._captioned = 0  # words
        self._begins_s = 0.0  # of the last word that was heard
        self._ended = 0  # sentences
        self._rate = 24_000
        self._filler_cut = 0  # index of the filler that gave way

    async def play(self, source: Any) -> Report:
        """Plays up to the last sample. An error of the turn is raised when what it has made was heard.

        Cancelled, or after :meth:`stop`, the sink is silent and nothing of the turn runs any more.
        """
        self._task = asyncio.create_task(self._run(source), name="sayline-turn")
        try:
            await asyncio.wait({self._task})
        except asyncio.CancelledError:
            await self.stop()
            raise
        if self._stopping is not None:
            await asyncio.shield(self._stopping)
        if not self._task.cancelled():
            self._task.result()
        return self._turn.report()

    async def stop(self) -> float:
        """Silences the turn; gives the seconds until the sink was silent, and returns when nothing of it runs any more."""
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._stop(), name="sayline-stopping")
        return await asyncio.shield(self._stopping)

    async def _stop(self) -> float:
        clock = asyncio.get_running_loop().time
        began_s = clock()
        task = self._task
        if task is not None and not task.done():
            self._turn.interrupted = True
            self._turn.cancel()
            task.cancel()
        await self._clear()
        silence_s = clock() - began_s
        if task is not None:
            await asyncio.wait({task})
        return silence_s

    async def _clear(self) -> None:
        """Silences the sink, whatever state it is in."""
        try:
            async with asyncio.timeout(_CLEAR_S):
                self._observe(await self._sink.clear())
        except TimeoutError:
            self._turn.warn(f"the sink did not fall silent within {_CLEAR_S:g} s")
        except Exception as error:
            self._turn.warn(f"the sink failed when it was silenced: {error}")

    async def _run(self, source: Any) -> None:
        following = asyncio.create_task(self._follow(), name="sayline-ear")
        try:
            made = self._turn.chunks(source)
            async with aclosing(made), aclosing(hold_start(made, self._start) if self._start else made) as chunks:
                try:
                    await self._write_all(chunks)
                except SinkError:
                    self._turn.interrupted = True
                    await self._clear()  # what it still holds will not be heard
                    raise
                except Exception:
                    await self._until_heard()
                    raise
                await self._until_heard()
        finally:
            if self._stopping is None:
                with contextlib.suppress(Exception):  # a sink that fails has told so already
                    self._observe(self._sink.playhead)
            following.cancel()
            await asyncio.wait({following})

    async def _write_all(self, chunks: AsyncGenerator[AudioChunk, None]) -> None:
        async for chunk in chunks:
            if chunk.utterance.index < 0:
                await self._write_filler(chunk)
            else:
                await self._write(chunk)
            if self._turn.interrupted:
                return

    async def _until_heard(self) -> None:
        if not self._turn.interrupted:
            await self._patiently(self._sink.drain())

    async def _write(self, chunk: AudioChunk) -> None:
        self._rate = chunk.format.sample_rate
        self._turn.record.add(chunk, self._sink.playhead.accepted_samples)
        self._written.set()
        await self._patiently(self._sink.write(chunk))
        self._observe(self._sink.playhead)

    async def _write_filler(self, chunk: AudioChunk) -> None:
        """Writes a filler word by word, just ahead of the ear, and ends it when it has to give way."""
        if self._filler_cut == chunk.utterance.index:
            return
        for piece in _parts(chunk):
            while self._sink.playhead.pending_s > _FILLER_LEAD_S and not self._gives_way():  # noqa: ASYNC110
                await asyncio.sleep(_POLL_S[0])
            if self._gives_way():
                self._filler_cut = chunk.utterance.index
                fading = piece[:_FADE_SAMPLES]
                ramp = np.linspace(1.0, 0.0, len(fading), dtype=np.float32)
                await self._write(replace(chunk, samples=(fading.T * ramp).T, words=(), last=True))
                return
            await self._write(replace(chunk, samples=piece, words=(), last=False))

    async def _patiently(self, work: Awaitable[None]) -> None:
        """Awaits a write or drain, as long as the sink makes progress; whatever it raises becomes a SinkError."""
        stall_s = self._turn.config.sink_stall_s
        try:
            async with asyncio.timeout(stall_s) as self._patience:
                await work
        except SaylineError:
            raise
        except Exception as error:
            if self._patience is not None and self._patience.expired():
                message = f"the sink has taken and played nothing for {stall_s} s; use another one"
                raise SinkError(message) from None
            raise SinkError(f"the sink failed: {type(error).__name__}: {error}") from error
        finally:
            self._patience = None

    async def _follow(self) -> None:
        """Looks at the playhead whenever a word or sentence should have been heard."""
        while True:
            self._observe(self._sink.playhead)
            due = self._next_due()
            if due is None and self._patience is None:
                self._written.clear()
                await self._written.wait()
                continue
            left_s = _POLL_S[1] if due is None else (due - self._seen.heard_samples) / self._rate
            await asyncio.sleep(min(max(left_s, _POLL_S[0]), _POLL_S[1]))

    def _next_due(self) -> int | None:
        record = self._turn.record
        dues = []
        if self._captioned < len(record.words):
            dues.append(record.words[self._captioned].heard_sample)
        if self._ended < len(record.ends):
            dues.append(record.ends[self._ended][0])
        return min(dues, default=None)

    def _observe(self, now: Playhead) -> None:
        """Takes the playhead in: the record, the timeline and the captions follow it."""
        turn, record, at_s = self._turn, self._turn.record, self._turn.timeline.elapsed_s()
        moved = turn.held or self._moved(now)  # a sink that is held need not get anywhere
        if self._patience is not None and not self._patience.expired() and moved:
            stall_s = turn.config.sink_stall_s
            self._patience.reschedule(None if stall_s is None else asyncio.get_running_loop().time() + stall_s)

        def when(sample: int) -> float:
            return max(self._seen_s, at_s - (now.heard_samples - sample) / self._rate)

        record.sample = now.heard_samples
        turn.heard_s = now.heard_s - self._began.heard_s
        if now.dropped_samples > self._began.dropped_samples:
            turn.interrupted = True  # by whoever cleared the sink
        for word in record.words[self._captioned : record.heard_words(record.sample)]:
            begins_s = max(self._begins_s, at_s - (record.sample - word.start_sample) / self._rate)
            ends_s = begins_s + (word.end_sample - word.start_sample) / self._rate
            sentence = word.utterance.index
            self._emit(Caption(self._epoch, word.shown, word.start, word.end, begins_s, ends_s, sentence))
            self._begins_s = begins_s
            self._captioned += 1
        while self._ended < len(record.ends) and record.ends[self._ended][0] <= record.sample:
            sample, index = record.ends[self._ended]
            turn.timeline.heard(index, when(sample))
            self._emit(SentenceHeard(self._epoch, index, turn.timeline.sentences[index].text, when(sample)))
            self._ended += 1
        self._seen, self._seen_s = now, at_s

    def _moved(self, now: Playhead) -> bool:
        before = self._seen
        return (now.heard_samples, now.accepted_samples) != (before.heard_samples, before.accepted_samples)


def _parts(chunk: AudioChunk) -> list[Samples]:
    """The samples of a packet, cut where words begin."""
    cuts = [word.start_sample - chunk.start_sample for word in chunk.words]
    parts = np.split(chunk.samples, [cut for cut in cuts if 0 < cut < len(chunk.samples)])
    return [part for part in parts if len(part)]
