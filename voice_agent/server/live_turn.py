"""One turn of a live session: its text becomes packets, words with times, and the answer to what was heard of it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

import numpy as np

from tts_engine.types import AudioChunk
from voice_agent.errors import SaylineError
from voice_agent.heard import HeardText, HeardWord
from voice_agent.own_engine import ENGINE_FORMAT
from voice_agent.pacing import Playout
from voice_agent.protocols import Synthesizer
from voice_agent.server.live_events import Audio, Done, Event, Failed, Flushed, Heard, Spoken, Started, Words
from voice_agent.server.live_text import LiveText
from voice_agent.server.raw_audio import TurnEncoder
from voice_agent.server.refusals import refusal
from voice_agent.server.speaking import Speaking
from voice_agent.server.streams import Stream
from voice_agent.start_buffer import StartBuffer, hold_start
from voice_agent.turn import Turn

__all__ = ["LiveTurn"]

_SLICE_S = 0.2
"""How much the loop stretches and encodes without letting others run."""
_SILENCE_S = 0.05
"""What a whole answer without anything to say sounds like: an empty file is an error to many players."""
_ROUNDING = 1e-6  # a whole number of samples must not become less by the division


class LiveTurn:
    """Speaks ``text`` as it comes. Positions are samples of the turn as the client gets them."""

    def __init__(
        self,
        epoch: int,
        speaking: Speaking,
        emit: Callable[[Event], None],
        stream: Stream,
        source: Any = None,
        *,
        start: StartBuffer | None = None,
    ) -> None:
        """``emit`` takes what the client is to be told, ``stream`` counts what goes out.

        ``source``: an LLM's stream to speak instead of ``text``. ``start``: what is known of late packets, by which the start
        of an utterance is held back; an answer that goes at the pace at which it is taken needs none.
        """
        self.epoch = epoch
        self.speaking = speaking
        self.text = LiveText(self._flush_passed)
        self.sent = 0
        self._source = source if source is not None else self.text.deltas()
        self._tell = emit
        self._stream = stream
        self._start = None if speaking.whole else start
        self._turn: Turn | None = None
        self._encoder: TurnEncoder | None = None
        self._engine_rate = ENGINE_FORMAT.sample_rate
        self._held: list[AudioChunk] = []  # in the encoder
        self._engine_samples = 0
        self._playout = Playout(speaking.sample_rate)
        self._reported: int | None = None  # samples that the client says it has played
        self._final: int | None = None  # … or that it will ever have played
        self._flushes: deque[int] = deque()  # how many utterances were planned before each
        self._finished = 0  # utterances
        self._told = 0  # words
        self._told_end = 0  # sample behind the last of them
        self._over = False
        self._failure: SaylineError | None = None  # the first

    async def run(self, engine: Synthesizer, room: Callable[[], Awaitable[None]], pending_s: Callable[[], float]) -> None:
        """Speaks to the end; ``room`` returns when more may be sent, ``pending_s`` is what the client has not played.

        What fails is emitted, and the rest is spoken. Cancelled, nothing of it runs any more.
        """
        turn = self._turn = Turn(engine, self.speaking.turn_config(), pending_s=pending_s, failed=self._failed)
        self._emit(Started(self.epoch, self.speaking.encoding, self.speaking.sample_rate))
        try:
            await self._speak(turn, room)
        finally:
            if self._encoder is not None:
                self._encoder.close()

    async def _speak(self, turn: Turn, room: Callable[[], Awaitable[None]]) -> None:
        try:
            made = turn.chunks(self._source)
            held = made if self._start is None else hold_start(made, self._start, self.speaking.tempo)
            async with aclosing(made), aclosing(held) as chunks:
                asked_s = turn.timeline.elapsed_s()
                async for chunk in chunks:
                    self._stream.waited(turn.timeline, chunk, turn.timeline.elapsed_s() - asked_s)
                    await room()
                    await self._take(chunk, turn)
                    asked_s = turn.timeline.elapsed_s()
        except SaylineError as error:
            if error is not self._failure:
                self._failed(error)  # the engine had no place for it
            self.text.close()
        if self.speaking.whole and not self._engine_samples and self._failure is None:
            silence_s = _SILENCE_S * self.speaking.tempo
            self._send(self._encoding().feed(np.zeros(round(silence_s * self._engine_rate), np.float32)))
        if self._encoder is not None:
            self._send(self._encoder.flush())
        self._over = True
        while self._flushes:
            self._flushes.popleft()
            self._emit(Flushed(self.epoch, self.sent))
        self._emit(Done(self.epoch, self.sent, self.sent / self.speaking.sample_rate, turn.report()))

    # ---- what was heard -------------------------------------------------------------------------------------------

    def sounds(self, due_s: float, samples: int) -> float:
        """``samples`` more go out and begin to sound at ``due_s``; gives the time when they have sounded."""
        self._playout.offer(due_s, samples)
        return due_s + samples / self.speaking.sample_rate

    def played(self, samples: int) -> float:
        """The client says that it has played so many; gives the seconds by which that is more than it said before."""
        before = self._reported or 0
        self._reported = max(before, min(samples, self.sent))
        return (self._reported - before) / self.speaking.sample_rate

    def stop(self, samples: int) -> None:
        """No more than ``samples`` will ever be heard; nothing more is emitted."""
        self.text.close()
        if self._final is None:
            self._final = min(samples, self.sent)

    def position(self, now_s: float) -> int:
        """How many samples have been heard: by what the client says, or else by the clock."""
        if self._final is not None:
            return self._final
        return self._playout.heard(now_s) if self._reported is None else self._reported

    def unplayed_s(self) -> float:
        """Seconds that were sent and that the client does not say to have played."""
        return 0.0 if self._final is not None else (self.sent - (self._reported or 0)) / self.speaking.sample_rate

    def heard(self, samples: int) -> Heard:
        """The text that was heard with the first ``samples``."""
        samples = max(0, min(samples, self.sent))
        if self._turn is None:
            return Heard(self.epoch, 0, "", False)
        record = self._turn.record
        whole = self._over and samples == self.sent
        scale = self._engine_rate * self.speaking.tempo / self.speaking.sample_rate
        at = self._engine_samples if whole else int(samples * scale + _ROUNDING)
        text = record.heard(at)
        return Heard(self.epoch, samples, text, whole and len(text) == len(record.raw))

    def _emit(self, event: Event) -> None:
        if self._final is None:  # a turn that was cut says nothing more, whatever still runs of it
            self._tell(event)

    # ---- packets --------------------------------------------------------------------------------------------------

    async def _take(self, chunk: AudioChunk, turn: Turn) -> None:
        record, self._engine_rate = turn.record, chunk.format.sample_rate
        encoder = self._encoding()
        record.add(chunk, self._engine_samples)
        self._engine_samples += len(chunk.samples)
        if chunk.start_sample == 0 and chunk.utterance.index == 0:
            self._stream.complete(turn.timeline.elapsed_s() - (turn.timeline.sentences[0].closed_s or 0.0))
        self._held.append(chunk)
        self._tell_words(record)
        data = b""
        for part in np.array_split(chunk.samples, max(1, round(chunk.duration_s / _SLICE_S))):
            data += encoder.feed(part)
            await asyncio.sleep(0)
        self._send(data)
        if chunk.last:
            self._finish_utterance()

    def _encoding(self) -> TurnEncoder:
        if self._encoder is None:
            speaking = self.speaking
            self._encoder = TurnEncoder(speaking.encoding, self._engine_rate, speaking.sample_rate, speaking.tempo)
        return self._encoder

    def _send(self, data: bytes) -> None:
        if data:
            for chunk in self._held:
                self._stream.sent(chunk, self.speaking.tempo)
            self._held.clear()
            start, self.sent = self.sent, self._encoding().samples
            self._emit(Audio(self.epoch, data, start, self.sent - start))

    def _tell_words(self, record: HeardText) -> None:
        first = self._told
        if first and record.words[first - 1].end_sample != self._told_end:
            first -= 1  # the word that was told last has grown
        words = tuple(self._spoken(i, word) for i, word in enumerate(record.words[first:], start=first))
        if words:
            self._told = len(record.words)
            self._told_end = record.words[-1].end_sample
            self._emit(Words(self.epoch, words))

    def _spoken(self, index: int, word: HeardWord) -> Spoken:
        a_ms = 1000 / (self._engine_rate * self.speaking.tempo)
        start_ms, end_ms = round(word.start_sample * a_ms, 2), round(word.end_sample * a_ms, 2)
        return Spoken(index, word.shown, word.start, word.end, start_ms, end_ms, word.utterance.index)

    def _failed(self, error: SaylineError) -> None:
        self._failure = self._failure or error
        self._emit(Failed(refusal(error), self.epoch, error.unspoken))
        if error.unspoken:
            self._finish_utterance()

    def _finish_utterance(self) -> None:
        self._finished += 1
        self._settle_flushes()

    def _flush_passed(self) -> None:
        assert self._turn is not None
        self._flushes.append(len(self._turn.timeline.sentences))
        self._settle_flushes()

    def _settle_flushes(self) -> None:
        """Answers the flushes before which everything is spoken."""
        while self._flushes and self._flushes[0] <= self._finished:
            if self._encoder is not None:
                self._send(self._encoder.flush())
            self._flushes.popleft()
            self._emit(Flushed(self.epoch, self.sent))
