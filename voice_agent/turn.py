"""One turn: an LLM's stream goes in, packets of speech come out. The line of stages, and nothing else.

    speak(plan(group(clean(read_tags(deltas)))))

The grouper owns the splitter. Three tasks work: one reads the stream up to the planned utterances, one gives these to
the engine when the ear will need them, the third takes the packets. Everything between is bounded: in characters
before the engine, in seconds behind it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

from tts_engine.admission import Priority
from tts_engine.text.language import unspeakable
from tts_engine.types import AudioChunk, Utterance, raw_span
from voice_agent.errors import EngineError, InputError, SaylineError, SourceError
from voice_agent.heard import HeardText, RawText
from voice_agent.llm.any_stream import stream_deltas
from voice_agent.llm.deltas import Break, Delta, TextDelta, ToolCall
from voice_agent.metrics import Timeline
from voice_agent.patience import patient
from voice_agent.protocols import SpeechSession, Synthesizer
from voice_agent.read_ahead import ReadAhead
from voice_agent.report import Report
from voice_agent.rounds import Rounds
from voice_agent.text.grouping import Grouper, GroupingConfig
from voice_agent.text.pieces import Boundary, Item, Sentence
from voice_agent.text.prosody import ProsodyConfig, ProsodyPlanner
from voice_agent.text.speakable import Cleaner, Skipped, SpeakablePolicy
from voice_agent.text.tags import Dialect, TagReader

__all__ = ["Turn", "TurnConfig"]

_LEAST_WAIT_S = 0.001  # a deadline may be nearer than the clock can tell
_SLICE_CHARS = 1000  # what is read at a time of a long delta, so that other tasks of the loop run in between


@dataclass(frozen=True, slots=True)
class TurnConfig:
    """How a stream is read and spoken. ``format``: the wire format of the source, None detects it.

    ``ahead_s``: seconds of audio, the sink's included, from which the engine gets no further sentence.
    ``read_ahead_chars``: how much text may wait for the engine; beyond it the LLM's stream is not read.
    ``priority``: "bulk" where nobody waits for the audio, so that the engine serves listeners first.
    ``source_stall_s``, ``sink_stall_s``: how long a source may send nothing, a sink take and play nothing, before the
    turn fails; None waits for ever.
    """

    prosody: ProsodyConfig = field(default_factory=ProsodyConfig)
    grouping: GroupingConfig = field(default_factory=GroupingConfig)
    policy: SpeakablePolicy = field(default_factory=SpeakablePolicy)
    dialect: Dialect = "sayline"
    format: str | None = None
    ahead_s: float = 10.0
    read_ahead_chars: int = 4000
    priority: Priority = "interactive"
    source_stall_s: float | None = None
    sink_stall_s: float | None = None

    def __post_init__(self) -> None:
        for name in ("ahead_s", "read_ahead_chars", "source_stall_s", "sink_stall_s"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(f"{name} is {value!r}: use a number above 0")


class Turn:
    """Speaks one stream. Iterate over :meth:`chunks` once; :meth:`report` tells how far it came, at any time."""

    def __init__(
        self,
        synthesizer: Synthesizer,
        config: TurnConfig | None = None,
        *,
        pending_s: Callable[[], float] = lambda: 0.0,
        failed: Callable[[SaylineError], None] = lambda error: None,
    ) -> None:
        """Needs a running event loop, whose time counts. ``pending_s``: seconds of audio that the sink has not played.

        ``failed`` hears of each error when it happens; :meth:`chunks` raises the first one at the end.
        """
        self._synthesizer = synthesizer
        self.config = config or TurnConfig()
        self._pending_s = pending_s
        self._failed = failed
        self.timeline = Timeline(asyncio.get_running_loop().time)
        self.record = HeardText(RawText())
        self.interrupted = False
        self._flowing = asyncio.Event()
        self._flowing.set()
        self.heard_s = 0.0
        """Seconds that were heard, as the sink tells; written by whoever plays the turn."""
        self._line: ReadAhead = ReadAhead(self.config.read_ahead_chars, self.config.ahead_s, self.unplayed_s)
        self._session: SpeechSession | None = None
        self._made_s = 0.0  # audio that the engine has made, less what it still holds
        self._fresh_start = 0  # raw offset where the last sentence ended
        self._skipped: list[Skipped] = []
        self._unspoken: list[str] = []
        self._fillers: list[str] = []
        self._warnings: list[str] = []
        self._tool_calls: list[ToolCall] = []
        self._failure: SaylineError | None = None

    async def chunks(self, source: Any) -> AsyncGenerator[AudioChunk, None]:
        """The packets of everything in ``source`` (see ``voice_agent.llm.any_stream``), as they are made.

        An error of the source, or of one sentence, is raised at the end: what arrived and can be spoken comes first.
        Closing the generator stops the source and the engine.
        """
        session = self._session = self._synthesizer.open(self.config.priority)
        tasks = [
            asyncio.create_task(self._read(source), name="sayline-reading"),
            asyncio.create_task(self._feed(session), name="sayline-feeding"),
        ]
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
                except Exception as error:  # nothing is known of a line that breaks its contract: it is left
                    raise EngineError(f"the speech engine failed: {type(error).__name__}: {error}") from error
                if chunk.utterance.index >= 0:
                    self.timeline.made(chunk)
                self._made_s += chunk.duration_s
                yield chunk
            for task in tasks:
                await task
            if self._failure is not None:
                raise self._failure
        finally:
            self.cancel()
            for task in tasks:
                task.cancel()
            for task in tasks:
                with contextlib.suppress(asyncio.CancelledError):
                    await task

    def cancel(self) -> None:
        """Drops all that is made and not taken; the packets end here. Does nothing to a turn that is over."""
        session = self._session
        if session is not None:
            self._made_s += self._buffered_s()
            self._session = None
            session.cancel()

    def hold(self) -> None:
        """Pulls nothing more from the source; what it has sent is made speech of, within the bounds."""
        self._flowing.clear()

    def resume(self) -> None:
        self._flowing.set()

    @property
    def held(self) -> bool:
        return not self._flowing.is_set()

    async def fill(self, text: str) -> None:
        """Speaks a few words that are no part of the stream's text, behind what the engine has."""
        if self._session is not None:
            prosody = self.config.prosody
            self._fillers.append(text)
            index = -len(self._fillers)  # below 0: no sentence of the text
            await self._session.put(
                Utterance(text, prosody.voice, prosody.language, prosody.speed, volume=prosody.volume, index=index)
            )

    def unplayed_s(self) -> float:
        """Seconds of audio that are made and not heard."""
        return self._pending_s() + self._buffered_s()

    def warn(self, warning: str) -> None:
        """Puts a warning into the report."""
        self._warnings.append(warning)

    def report(self) -> Report:
        """What has become of the turn so far."""
        spoken = tuple(self.timeline.sentences)
        return Report(
            text=str(self.record.raw),
            heard=self.record.text,
            sentences=spoken,
            audio_s=sum(times.audio_s for times in spoken),
            heard_s=self.heard_s,
            unheard_s=max(0.0, self._made_s + self._buffered_s() - self.heard_s),
            skipped=tuple(self._skipped),
            unspoken=tuple(self._unspoken),
            fillers=tuple(self._fillers),
            warnings=tuple(self._warnings),
            tool_calls=tuple(self._tool_calls),
            interrupted=self.interrupted,
        )

    # ---- the stages -----------------------------------------------------------------------------------------------

    async def _read(self, source: Any) -> None:
        """Everything from the source to the planned utterances."""
        try:
            async with aclosing(self._utterances(source)) as utterances:
                async for utterance in utterances:
                    await self._line.put(utterance)
            self.record.finish()
        finally:
            self._line.end()

    async def _feed(self, session: SpeechSession) -> None:
        """The planned utterances to the engine, each when the ear will need it."""
        try:
            async with aclosing(self._line.utterances()) as utterances:
                async for utterance in utterances:
                    await session.put(utterance)
        finally:
            session.end()

    async def _utterances(self, source: Any) -> AsyncGenerator[Utterance, None]:
        planner = ProsodyPlanner(self.config.prosody)
        async with aclosing(self._sentences(source)) as sentences:
            async for sentence in sentences:
                closed_s = self.timeline.elapsed_s()
                utterance = planner.plan(sentence, raw=self._raw_of(sentence))
                self._warn_of_scripts(sentence.text)
                self.timeline.planned(utterance, closed_s)
                self.record.planned(utterance)
                yield utterance

    async def _sentences(self, source: Any) -> AsyncGenerator[Sentence, None]:
        """Groups what is read; lets time pass for the grouper while the stream stalls."""
        now_s = asyncio.get_running_loop().time
        grouper = Grouper(self.config.grouping)
        async with aclosing(self._items(source)) as items:
            waiting: asyncio.Task[Item] | None = None
            try:
                while True:
                    waiting = waiting or asyncio.ensure_future(anext(items))
                    deadline_s = grouper.deadline_s()
                    timeout_s = None if deadline_s is None else max(_LEAST_WAIT_S, deadline_s - now_s())
                    done, _ = await asyncio.wait({waiting}, timeout=timeout_s)
                    buffered_s = self.unplayed_s() + self._line.waiting_s
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
        reader, cleaner = TagReader(self.config.dialect), Cleaner(self.config.policy)
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
            await self._flowing.wait()
            async with aclosing(self._opened(source)) as deltas:
                async for delta in deltas:
                    if isinstance(delta, TextDelta):
                        self.timeline.received(len(delta.text))
                        self.record.raw.append(delta.text)
                        for first in range(0, len(delta.text), _SLICE_CHARS):
                            yield delta.text[first : first + _SLICE_CHARS]
                            await asyncio.sleep(0)
                    elif isinstance(delta, Break):
                        yield Boundary(reason=delta.reason)
                    elif isinstance(delta, ToolCall):
                        self._tool_calls.append(delta)
                    await self._flowing.wait()
        except SourceError as error:
            self._fail(error)

    def _opened(self, source: Any) -> AsyncGenerator[Delta, None]:
        if isinstance(source, Rounds):
            return source.deltas()
        return patient(stream_deltas(source, format=self.config.format), self.config.source_stall_s)

    # ---- bookkeeping ----------------------------------------------------------------------------------------------

    def _buffered_s(self) -> float:
        return self._session.buffered_s if self._session is not None else 0.0

    def _raw_of(self, sentence: Sentence) -> str:
        """What the LLM wrote for a sentence, from where the one before ended: emoji and all."""
        _, end = raw_span(sentence.runs, 0, len(sentence.text)) if sentence.runs else (0, self._fresh_start)
        start, self._fresh_start = self._fresh_start, max(end, self._fresh_start)
        return self.record.raw.between(start, end)

    def _warn_of_scripts(self, text: str) -> None:
        for stretch in unspeakable(text):
            excerpt = text[stretch.start : stretch.end][:40]
            self._warnings.append(f"left out {stretch.script} text {excerpt!r}: no voice speaks it")

    def _fail(self, error: SaylineError) -> None:
        """Keeps the first error; later ones become warnings."""
        self._failed(error)
        if error.unspoken:
            self._unspoken.append(error.unspoken)
        if self._failure is None:
            self._failure = error
        elif str(error) != str(self._failure):
            self._warnings.append(str(error))
