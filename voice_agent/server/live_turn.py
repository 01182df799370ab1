"""One turn of a live session: its text becomes packets, words with times, and the answer to what was heard of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from tts_engine.types import AudioChunk, Language
from voice_agent.errors import InputError, SaylineError
from voice_agent.heard import HeardText, HeardWord
from voice_agent.pacing import Playout
from voice_agent.protocols import Synthesizer
from voice_agent.server.encoders import Container
from voice_agent.server.live_events import Audio, Done, Event, Failed, Flushed, Heard, Spoken, Started, Words
from voice_agent.server.live_text import LiveText
from voice_agent.server.raw_audio import Encoding, TurnEncoder
from voice_agent.server.refusals import refusal
from voice_agent.server.speaking import SPEED_RANGE, split_speed
from voice_agent.server.streams import Stream
from voice_agent.text.prosody import ProsodyConfig
from voice_agent.turn import Turn, TurnConfig

__all__ = ["LiveTurn", "Speaking"]

_ROUNDING = 1e-6  # a whole number of samples must not become less by the division


@dataclass(frozen=True, slots=True)
class Speaking:
    """How a turn sounds and is sent. ``voice``: a speaker of the engine's; ``pitch`` in semitones; the others are factors.

    ``ahead_s``: how much more than the client has played may be sent to it. Raises InputError for a speed out of range.
    """

    voice: str = "auto"
    language: Language | None = None
    speed: float = 1.0
    pitch: float = 0.0
    volume: float = 1.0
    encoding: Encoding | Container = "pcm_s16le"
    sample_rate: int = 24_000
    ahead_s: float = 10.0

    def __post_init__(self) -> None:
        least, most = SPEED_RANGE
        if not least <= self.speed <= most:
            raise InputError(f"speed is {self.speed:g}: use a factor from {least:g} to {most:g}")

    @property
    def tempo(self) -> float:
        """What stretching adds to the speed of the voice."""
        return split_speed(self.speed)[1]

    def turn_config(self) -> TurnConfig:
        """What the turn is told."""
        prosody = ProsodyConfig(
            voice=self.voice,
            language=self.language,
            speed=split_speed(self.speed)[0],
            pitch=self.pitch,
            volume=self.volume,
        )
        return TurnConfig(prosody=prosody, ahead_s=self.ahead_s)


class LiveTurn:
    """Speaks ``text`` as it comes. Positions are samples of the turn as the client gets them."""

    def __init__(
        self,
        epoch: int,
        speaking: Speaking,
        emit: Callable[[Event], None],
        stream: Stream,
        source: Any = None,
    ) -> None:
        """``emit`` takes what the client is to be told, ``stream`` counts what goes out.

        ``source``: an LLM's stream to speak instead of ``text``.
        """
        self.epoch = epoch
        self.speaking = speaking
        self.text = LiveText(self._flush_passed)
        self.sent = 0
        self._source = source if source is not None else self.text.deltas()
        self._tell = emit
        self._stream = stream
        self._turn: Turn | None = None
        self._encoder: TurnEncoder | None = None
        self._engine_rate = 24_000
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
            async with aclosing(turn.chunks(self._source)) as chunks:
                async for chunk in chunks:
                    await room()
                    self._take(chunk, turn)
        except SaylineError as error:
            if error is not self._failure:
                self._failed(error)  # the engine had no place for it
            self.text.close()
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

    def _take(self, chunk: AudioChunk, turn: Turn) -> None:
        speaking, record = self.speaking, turn.record
        if self._encoder is None:
            self._engine_rate = chunk.format.sample_rate
            self._encoder = TurnEncoder(speaking.encoding, self._engine_rate, speaking.sample_rate, speaking.tempo)
        record.add(chunk, self._engine_samples)
        self._engine_samples += len(chunk.samples)
        if chunk.start_sample == 0 and chunk.utterance.index == 0:
            self._stream.complete(turn.timeline.elapsed_s() - (turn.timeline.sentences[0].closed_s or 0.0))
        self._stream.sent(chunk)
        self._tell_words(record)
        self._send(self._encoder.feed(chunk.samples))
        if chunk.last:
            self._finish_utterance()

    def _send(self, data: bytes) -> None:
        if data:
            assert self._encoder is not None
            start, self.sent = self.sent, self._encoder.samples
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
