"""One turn: an LLM's stream goes in, packets of speech come out. The line of stages, and nothing else.

    speak(plan(group(clean(read_tags(deltas)))))

The grouper owns the splitter. Two tasks work: one reads the stream up to the planned utterances, the other takes the packets;
the session between them is bounded, so a slow listener slows the reading.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Protocol

from tts_engine.text.language import unspeakable
from tts_engine.types import AudioChunk, Utterance, raw_span
from voice_agent.errors import SaylineError, SourceError
from voice_agent.llm.any_stream import stream_deltas
from voice_agent.llm.deltas import Break, TextDelta, ToolCall
from voice_agent.metrics import SentenceTimes, Timeline
from voice_agent.text.grouping import Grouper, GroupingConfig
from voice_agent.text.pieces import Boundary, Item, Sentence
from voice_agent.text.prosody import ProsodyConfig, ProsodyPlanner
from voice_agent.text.speakable import Cleaner, Skipped, SpeakablePolicy
from voice_agent.text.tags import Dialect, TagReader


class SpeechSession(Protocol):
    """A line through a speech engine: utterances in, packets out, both in order (``tts_engine.scheduler.Session``)."""

    async def put(self, utterance: Utterance) -> None:
        """Hand in an utterance; wait while too many are waiting."""
        ...

    def end(self) -> None:
        """No more will come."""
        ...

    def cancel(self) -> None:
        """Drop everything; the iteration stops."""
        ...

    @property
    def buffered_s(self) -> float:
        """Seconds of audio that are made but not taken."""
        ...

    def __aiter__(self) -> AsyncIterator[AudioChunk]: ...


class Synthesizer(Protocol):
    """A speech engine that can serve several listeners (``tts_engine.scheduler.Scheduler``)."""

    async def ready(self) -> None:
        """Return when it can speak; raise why it cannot."""
        ...

    def open(self) -> SpeechSession:
        """A new line through the engine."""
        ...


@dataclass(frozen=True, slots=True)
class TurnConfig:
    """How a stream is read and spoken. ``format``: the wire format of the source, None detects it."""

    prosody: ProsodyConfig = field(default_factory=ProsodyConfig)
    grouping: GroupingConfig = field(default_factory=GroupingConfig)
    policy: SpeakablePolicy = field(default_factory=SpeakablePolicy)
    dialect: Dialect = "sayline"
    format: str | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """What became of a turn.

    ``text``: all that the LLM wrote; ``sentences``: what was spoken of it, with times; ``audio_s``: how long it sounds;
    ``skipped``: what was left out and why; ``unspoken``: sentences that failed; ``warnings``: for people.
    """

    text: str
    sentences: tuple[SentenceTimes, ...]
    audio_s: float
    skipped: tuple[Skipped, ...]
    unspoken: tuple[str, ...]
    warnings: tuple[str, ...]
    tool_calls: tuple[ToolCall, ...]

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return {
            "text": self.text,
            "audio_s": round(self.audio_s, 5),
            "sentences": [times.as_dict() for times in self.sentences],
            "skipped": [{"kind": s.kind, "start": s.start, "end": s.end, "reason": s.rule} for s in self.skipped],
            "unspoken": list(self.unspoken),
            "warnings": list(self.warnings),
            "tool_calls": [{"name": call.name, "arguments": call.arguments} for call in self.tool_calls],
        }


class Turn:
    """Speaks one stream. Iterate over :meth:`chunks` once; :meth:`report` tells how far it came, at any time."""

    def __init__(
        self,
        synthesizer: Synthesizer,
        config: TurnConfig | None = None,
        *,
        pending_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """``pending_s``: seconds of audio that the sink holds and has not played, which tell the grouper how long it may wait."""
        self._synthesizer = synthesizer
        self._config = config or TurnConfig()
        self._pending_s = pending_s
        self.timeline = Timeline()
        self._text: list[str] = []
        self._fresh = ""  # raw text from where the last sentence ended
        self._fresh_start = 0
        self._skipped: list[Skipped] = []
        self._unspoken: list[str] = []
        self._warnings: list[str] = []
        self._tool_calls: list[ToolCall] = []
        self._failure: SaylineError | None = None

    async def chunks(self, source: Any) -> AsyncGenerator[AudioChunk, None]:
        """The packets of everything in ``source`` (see ``voice_agent.llm.any_stream``), as they are made.

        An error of the source, or of one sentence, is raised at the end: what arrived and can be spoken comes first. Closing
        the generator stops the source and the engine.
        """
        session = self._synthesizer.open()
        reading = asyncio.create_task(self._read(source, session), name="sayline-reading")
        try:
            packets = aiter(session)
            while True:
                try:
                    chunk = await anext(packets)
                except StopAsyncIteration:
                    break
                except SaylineError as error:
                    self._fail(error)
                    continue
                self.timeline.made(chunk)
                yield chunk
            await reading
            if self._failure is not None:
                raise self._failure
        finally:
            session.cancel()
            reading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reading

    def report(self) -> Report:
        """What has become of the turn so far."""
        spoken = tuple(self.timeline.sentences)
        return Report(
            "".join(self._text),
            spoken,
            sum(times.audio_s for times in spoken),
            tuple(self._skipped),
            tuple(self._unspoken),
            tuple(self._warnings),
            tuple(self._tool_calls),
        )

    # ---- the stages -----------------------------------------------------------------------------------------------

    async def _read(self, source: Any, session: SpeechSession) -> None:
        """Everything from the source to the planned utterances."""
        try:
            async with aclosing(self._utterances(source, session)) as utterances:
                async for utterance in utterances:
                    await session.put(utterance)
        finally:
            session.end()

    async def _utterances(self, source: Any, session: SpeechSession) -> AsyncGenerator[Utterance, None]:
        planner = ProsodyPlanner(self._config.prosody)
        async with aclosing(self._sentences(source, session)) as sentences:
            async for sentence in sentences:
                closed_s = self.timeline.elapsed_s()
                utterance = planner.plan(sentence, raw=self._raw_of(sentence))
                self._warn_of_scripts(sentence.text)
                self.timeline.planned(utterance, closed_s)
                yield utterance

    async def _sentences(self, source: Any, session: SpeechSession) -> AsyncGenerator[Sentence, None]:
        """Groups what is read; lets time pass for the grouper while the stream stalls."""
        now_s = asyncio.get_running_loop().time
        grouper = Grouper(self._config.grouping)
        async with aclosing(self._items(source)) as items:
            waiting: asyncio.Task[Item] | None = None
            try:
                while True:
                    waiting = waiting or asyncio.ensure_future(anext(items))
                    deadline_s = grouper.deadline_s()
                    timeout_s = None if deadline_s is None else max(0.0, deadline_s - now_s())
                    done, _ = await asyncio.wait({waiting}, timeout=timeout_s)
                    buffered_s = session.buffered_s + self._pending_s()
                    if done:
                        try:
                            item = waiting.result()
                        except StopAsyncIteration:
                            break
                        waiting = None
                        given = grouper.feed(item, now_s(), buffered_s)
                    else:
                        given = grouper.tick(now_s(), buffered_s)
                    if given:
                        grouper.pause()
                        for sentence in given:
                            yield sentence
                        grouper.resume(now_s())
            finally:
                if waiting is not None:
                    waiting.cancel()
                    with contextlib.suppress(asyncio.CancelledError, StopAsyncIteration):
                        await waiting
        for sentence in grouper.flush():
            yield sentence

    async def _items(self, source: Any) -> AsyncGenerator[Item, None]:
        """Deltas to tags and speakable text."""
        reader, cleaner = TagReader(self._config.dialect), Cleaner(self._config.policy)
        async with aclosing(self._deltas(source)) as deltas:
            async for delta in deltas:
                for item in reader.feed(delta):
                    for cleaned in cleaner.feed(item):
                        yield cleaned
        for item in reader.flush():
            for cleaned in cleaner.feed(item):
                yield cleaned
        for cleaned in cleaner.flush():
            yield cleaned
        self._warnings += [f"tag {warning.excerpt!r}: {warning.reason}" for warning in reader.take_warnings()]
        self._skipped += cleaner.take_skipped()

    async def _deltas(self, source: Any) -> AsyncGenerator[str | Boundary, None]:
        """Text and boundaries. An error of the source ends the text; it is kept for when what arrived has been spoken."""
        try:
            async with aclosing(stream_deltas(source, format=self._config.format)) as deltas:
                async for delta in deltas:
                    if isinstance(delta, TextDelta):
                        self.timeline.received(len(delta.text))
                        self._text.append(delta.text)
                        self._fresh += delta.text
                        yield delta.text
                    elif isinstance(delta, Break):
                        yield Boundary(reason=delta.reason)
                    elif isinstance(delta, ToolCall):
                        self._tool_calls.append(delta)
        except SourceError as error:
            self._fail(error)

    # ---- bookkeeping ----------------------------------------------------------------------------------------------

    def _raw_of(self, sentence: Sentence) -> str:
        """What the LLM wrote for a sentence, from where the one before ended: emoji and all."""
        _, end = raw_span(sentence.runs, 0, len(sentence.text)) if sentence.runs else (0, self._fresh_start)
        raw = self._fresh[: end - self._fresh_start]
        self._fresh = self._fresh[len(raw) :]
        self._fresh_start += len(raw)
        return raw

    def _warn_of_scripts(self, text: str) -> None:
        for stretch in unspeakable(text):
            excerpt = text[stretch.start : stretch.end][:40]
            self._warnings.append(f"left out {stretch.script} text {excerpt!r}: no voice speaks it")

    def _fail(self, error: SaylineError) -> None:
        """Keeps the first error; later ones become warnings."""
        if error.unspoken:
            self._unspoken.append(error.unspoken)
        if self._failure is None:
            self._failure = error
        elif str(error) != str(self._failure):
            self._warnings.append(str(error))
