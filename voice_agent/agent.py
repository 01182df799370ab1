"""A spoken conversation: a model answers, its answer is spoken while it is written, what was heard is remembered."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self

from tts_engine.text.language import is_han
from tts_engine.types import Language
from voice_agent.captions import Ducked, Event, Events, Held, Interruption, Resumed, ToolUsed, TurnBegan, TurnEnded
from voice_agent.conversation import Conversation, Keep
from voice_agent.errors import ConfigError, SinkError
from voice_agent.fillers import Fillers, Filling
from voice_agent.llm.deltas import ChatModel, Message
from voice_agent.own_engine import ENGINE_FORMAT, own_engine
from voice_agent.playback import Playback
from voice_agent.protocols import Synthesizer
from voice_agent.queueing import Line, Place
from voice_agent.report import Report
from voice_agent.rounds import Rounds
from voice_agent.sinks.base import Sink
from voice_agent.sinks.opening import open_sink
from voice_agent.start_buffer import StartBuffer
from voice_agent.text.prosody import ProsodyConfig
from voice_agent.tools import Tool
from voice_agent.turn import Turn, TurnConfig

__all__ = ["Agent", "Manner"]

_SOURCE_STALL_S = 120.0  # models that reason send nothing for long
_SINK_STALL_S = 20.0


@dataclass(frozen=True, slots=True)
class Manner:
    """How one turn differs from the others; None leaves it as it is. ``keep``: what the conversation keeps of it."""

    voice: str | None = None
    speed: float | None = None
    language: Language | None = None
    keep: Keep | None = None


class Agent:
    """Answers with a model's words in Sayline's voice. Use it as ``async with Agent(model) as agent``.

    ``model``: anything with ``reply(messages)``: ``voice_agent.llm.openai_client.OpenAIChat``,
    ``voice_agent.llm.demo.DemoChat``, your own. ``sink`` as in :func:`voice_agent.speak`. ``tools``: functions that the
    model may call (``voice_agent.tools.tool``). ``conversation``: one that goes on (``Conversation.open(path)``); its
    file is closed with the agent. ``synthesizer``: an engine shared with others; None starts an own one.

    ``config`` may be replaced at any time and holds for the turns that begin from then on.

    Turns wait for one another: each begins when the one before was heard. ``epoch`` counts interruptions; every turn
    and event carries the one it belongs to.
    """

    def __init__(
        self,
        model: ChatModel,
        sink: Sink | str | os.PathLike[str] = "speaker",
        *,
        voice: str = "auto",
        speed: float = 1.0,
        config: TurnConfig | None = None,
        synthesizer: Synthesizer | None = None,
        tools: Sequence[Callable[..., Any]] = (),
        fillers: Fillers | None = None,
        conversation: Conversation | None = None,
    ) -> None:
        self.conversation = conversation or Conversation()
        self.turn: Turn | None = None
        self.epoch = 0
        self._model = model
        self._spec = sink if isinstance(sink, str | os.PathLike) else None
        self._sink: Sink = open_sink(sink) if isinstance(sink, str | os.PathLike) else sink
        self.config = config or TurnConfig(
            prosody=ProsodyConfig(voice=voice, speed=speed),
            source_stall_s=_SOURCE_STALL_S,
            sink_stall_s=_SINK_STALL_S,
        )
        self._tools = [Tool.of(function) for function in tools]
        self._fillers = fillers or Fillers()
        self._events = Events()
        self._line = Line()
        self._playback: Playback | None = None
        self._start = StartBuffer()
        self._queued: set[asyncio.Task[Report]] = set()
        self._held = False
        self._loudness_db: float | None = None  # of the sink before it was ducked
        self._own = own_engine(self.config) if synthesizer is None else None
        engine = synthesizer or self._own
        assert engine is not None
        self._engine: Synthesizer = engine

    async def __aenter__(self) -> Self:
        """Opens the sink and loads the voice, so that both fail before anything is asked."""
        if self._own is not None:
            self._own.start()
        await self._sink.start(ENGINE_FORMAT)
        await self._engine.ready()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Lets the turns that wait be heard, or silences everything after an error; then closes sink, engine and file."""
        try:
            if kind is not None:
                await self.interrupt()
            await self.resume()
            if self._queued:
                await asyncio.wait(self._queued)
            await self._sink.__aexit__(kind, error, trace)
        finally:
            self._events.close()
            if self._own is not None:
                self._own.close()
            self.conversation.close()

    @property
    def sink(self) -> Sink:
        """Where the agent speaks; a speaker that was lost is replaced by another."""
        return self._sink

    async def reply(self, text: str, manner: Manner = Manner()) -> Report:
        """Asks the model and speaks its answer; returns when the last sample was heard, or when it was interrupted.

        What the user said and what was heard of the answer go into the conversation. Raises SourceError when the model
        fails; what it had said by then is spoken and kept.
        """
        return await self._in_order(self._line.place(self.epoch), text, None, manner)

    async def say(self, source: Any, manner: Manner = Manner()) -> Report:
        """Speaks a text, or any stream, as the assistant's own words; returns when the last sample was heard."""
        return await self._in_order(self._line.place(self.epoch), None, source, manner)

    def append(self, source: Any, manner: Manner = Manner()) -> asyncio.Task[Report]:
        """:meth:`say` behind all turns that wait, without waiting for it; await what it gives to know how it ended."""
        place = self._line.place(self.epoch)
        task = asyncio.create_task(self._in_order(place, None, source, manner), name="sayline-queued")
        task.add_done_callback(lambda _: place.leave())  # one that is cancelled before it runs leaves too
        self._queued.add(task)
        task.add_done_callback(self._queued.discard)
        return task

    async def replace(self, source: Any, manner: Manner = Manner()) -> Report:
        """:meth:`say` in place of everything that is spoken or waits."""
        await self.interrupt()
        return await self.say(source, manner)

    def duck(self, db: float = -12.0) -> None:
        """Speaks on, but lower by ``db`` decibels, from now on: someone else may have begun to speak."""
        if self._loudness_db is None:
            self._loudness_db = self._sink.gain_db
        self._sink.set_gain(self._loudness_db + db)
        self._events.emit(Ducked(self.epoch, db))

    async def hold(self) -> None:
        """Stops in the middle, to go on at the same sample or to be interrupted; returns when the sink stands still.

        The model's stream is not read meanwhile. Turns that begin now wait as well.
        """
        began_s = asyncio.get_running_loop().time()
        self._held = True
        if self.turn is not None:
            self.turn.hold()
        await self._sink.hold()
        self._events.emit(Held(self.epoch, asyncio.get_running_loop().time() - began_s))

    async def resume(self) -> None:
        """Undoes :meth:`duck` and :meth:`hold`."""
        if self._held or self._loudness_db is not None:
            await self._let_go()
            self._events.emit(Resumed(self.epoch))

    async def interrupt(self) -> Interruption:
        """Silences the agent at once; turns that wait are dropped. Returns when nothing of them runs any more.

        Their :meth:`reply` and :meth:`say` return reports with ``interrupted`` set; the
        conversation keeps what was heard. A hold and a ducking end. Harmless when nothing is spoken.
        """
        self.epoch += 1
        place = self._line.place(self.epoch)
        playback, turn = self._playback, self.turn
        try:
            silence_s = await playback.stop() if playback is not None else 0.0
            await self._let_go()
            await place.arrive()  # the turns before are over when their conversation is written
        finally:
            place.leave()
        if playback is None or turn is None:
            return Interruption(self.epoch, "", 0.0, silence_s)
        report = turn.report()
        interruption = Interruption(self.epoch, report.heard, report.unheard_s, silence_s)
        self._events.emit(interruption)
        return interruption

    def emit(self, event: Event) -> None:
        """Puts an event between the agent's own, for all who listen."""
        self._events.emit(event)

    def events(self) -> AsyncGenerator[Event, None]:
        """What happens from this call on (``voice_agent.captions``): captions when they are heard, turns, tools …"""
        return self._events.listen()

    # ---- one turn -------------------------------------------------------------------------------------------------

    async def _in_order(self, place: Place, asked: str | None, source: Any, manner: Manner) -> Report:
        try:
            config = _with_manner(self.config, manner)
            await place.arrive()
            if place.epoch == self.epoch:
                await self._reopen_lost_speaker()
            if place.epoch == self.epoch:
                return await self._speak(asked, source, config, manner.keep or self.conversation.keep)
            if hasattr(source, "aclose"):
                await source.aclose()  # a request that nobody will read
            return _dropped(asked, source)
        finally:
            place.leave()

    async def _speak(self, asked: str | None, source: Any, config: TurnConfig, keep: Keep) -> Report:
        epoch = self.epoch
        turn = self.turn = Turn(self._engine, config, pending_s=lambda: self._sink.playhead.pending_s)
        if self._held:
            turn.hold()
        if asked is not None:
            self._keep([{"role": "user", "content": asked}])
        filling = Filling(self._fillers, _is_chinese(self.conversation.messages), turn.fill, turn.unplayed_s)
        spoken: Any = source
        rounds: Rounds | None = None
        if asked is not None:
            spoken = rounds = Rounds(
                self._model,
                self.conversation.messages,
                self._tools,
                waiting=filling,
                tell=lambda call, result: self._events.emit(ToolUsed(epoch, call.name, call.arguments, result)),
                stall_s=config.source_stall_s,
            )
        self._playback = Playback(
            turn,
            self._sink,
            epoch=epoch,
            emit=self._events.emit,
            start=self._start if self._sink.waited_for else None,
            gives_way=lambda: filling.given_way,
        )
        self._events.emit(TurnBegan(epoch))
        error: BaseException | None = None
        try:
            await self._playback.play(spoken)
        except BaseException as raised:
            error = raised
            raise
        finally:
            self._playback = None
            report = turn.report()
            heard = len(report.text) if keep == "whole" else len(report.heard)
            messages = rounds.history(heard) if rounds is not None else _said(report.text[:heard])
            self._keep(messages, report)
            self._events.emit(TurnEnded(epoch, turn.report(), str(error) if isinstance(error, Exception) else None))
        return turn.report()

    def _keep(self, messages: list[Message], report: Report | None = None) -> None:
        """Puts messages into the conversation. Speech does not depend on its file: where that fails, the report says so."""
        try:
            self.conversation.add(messages, report)
        except ConfigError as error:
            assert self.turn is not None
            self.turn.warn(str(error))

    async def _let_go(self) -> None:
        """Neither ducked nor held any more."""
        if self._loudness_db is not None:
            self._sink.set_gain(self._loudness_db)
            self._loudness_db = None
        if self._held:
            self._held = False
            await self._sink.resume()
            if self.turn is not None:
                self.turn.resume()

    async def _reopen_lost_speaker(self) -> None:
        """A sound device that went away may be back, or the system has another one by now."""
        if self._spec is None or not str(self._spec).startswith("speaker"):
            return
        try:
            await self._sink.drain()
        except SinkError:
            await self._sink.close()
            lost, self._sink = self._sink, open_sink(self._spec)
            self._sink.monitor = lost.monitor
            self._sink.set_gain(lost.gain_db)
            await self._sink.start(ENGINE_FORMAT)
            if self._held:
                await self._sink.hold()


def _with_manner(config: TurnConfig, manner: Manner) -> TurnConfig:
    changes = {name: value for name in ("voice", "speed", "language") if (value := getattr(manner, name)) is not None}
    return replace(config, prosody=replace(config.prosody, **changes)) if changes else config


def _dropped(asked: str | None, source: Any) -> Report:
    """The report of a turn that an interruption ended before it began."""
    unspoken = (source,) if isinstance(source, str) else ()
    warnings = () if asked is None else (f"interrupted before it was answered: {asked}",)
    return Report("".join(unspoken), "", (), 0.0, 0.0, 0.0, (), unspoken, (), warnings, (), interrupted=True)


def _said(text: str) -> list[Message]:
    return [{"role": "assistant", "content": text}] if text else []


def _is_chinese(messages: Iterable[Message]) -> bool:
    """Whether the user speaks Chinese, as far as the last message tells."""
    said = [str(message.get("content", "")) for message in messages if message.get("role") == "user"]
    return bool(said) and any(map(is_han, said[-1]))
