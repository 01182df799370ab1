"""Sayline in a few calls: ``speak`` and ``say`` play a stream, ``stream`` gives its packets."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import Any

from tts_engine.types import AudioChunk
from voice_agent.captions import Event, TurnBegan, TurnEnded
from voice_agent.own_engine import ENGINE_FORMAT, own_engine
from voice_agent.playback import Playback
from voice_agent.protocols import Synthesizer
from voice_agent.report import Report
from voice_agent.sinks.base import Sink
from voice_agent.sinks.opening import open_sink
from voice_agent.text.prosody import ProsodyConfig
from voice_agent.turn import Turn, TurnConfig


async def speak(
    source: Any,
    sink: Sink | str | os.PathLike[str] = "speaker",
    *,
    voice: str = "auto",
    speed: float = 1.0,
    config: TurnConfig | None = None,
    synthesizer: Synthesizer | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> Report:
    """Speaks a text or any LLM stream while it comes in, and returns when the last sample was heard.

    ``source``: a string, an ``openai`` stream, an iterator, a queue, a file … (see ``voice_agent.llm.any_stream``).
    ``sink``: a sink, or a word for one: ``"speaker"``, ``"out.wav"``, ``"-"``. A sink that is handed in is not closed.
    ``voice``: "auto" (heart for English, xiaobei for Chinese) or a voice's name; ``speed``: a factor from 0.5 to 2.
    ``config`` says everything else and then holds voice and speed too. ``synthesizer``: an engine that is kept warm;
    None loads the embedded voice for this call. ``on_event`` is called with captions as they are heard and the other
    events of ``voice_agent.captions``; it has to be quick. If it raises it is called no more, and the report has a warning.

    Raises InputError for what cannot be used, SinkError before anything is read if the sink cannot be opened, and
    SourceError when the stream broke; whole sentences that came before are spoken first.
    """
    config = config or TurnConfig(prosody=ProsodyConfig(voice=voice, speed=speed))
    async with _engine(synthesizer, config) as engine:
        if isinstance(sink, str | os.PathLike):
            async with open_sink(sink) as opened:
                return await _play(source, opened, config, engine, on_event)
        await sink.start(ENGINE_FORMAT)
        return await _play(source, sink, config, engine, on_event)


def say(
    source: Any,
    sink: Sink | str | os.PathLike[str] = "speaker",
    *,
    voice: str = "auto",
    speed: float = 1.0,
    config: TurnConfig | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> Report:
    """:func:`speak` for programs without an event loop."""
    return asyncio.run(speak(source, sink, voice=voice, speed=speed, config=config, on_event=on_event))


async def stream(
    source: Any,
    *,
    voice: str = "auto",
    speed: float = 1.0,
    config: TurnConfig | None = None,
    synthesizer: Synthesizer | None = None,
) -> AsyncIterator[AudioChunk]:
    """The packets of a text or LLM stream (24 kHz mono float32), as they are made: for a sink of your own."""
    config = config or TurnConfig(prosody=ProsodyConfig(voice=voice, speed=speed))
    async with _engine(synthesizer, config) as engine, aclosing(Turn(engine, config).chunks(source)) as chunks:
        async for chunk in chunks:
            yield chunk


async def _play(
    source: Any, sink: Sink, config: TurnConfig, engine: Synthesizer, on_event: Callable[[Event], None] | None
) -> Report:
    await engine.ready()
    if not sink.waited_for:
        config = replace(config, priority="bulk")
    turn = Turn(engine, config, pending_s=lambda: sink.playhead.pending_s)
    tell = _guarded(on_event or (lambda event: None), turn)
    tell(TurnBegan(0))
    try:
        report = await Playback(turn, sink, emit=tell).play(source)
    except BaseException as error:
        tell(TurnEnded(0, turn.report(), str(error) if isinstance(error, Exception) else None))
        raise
    tell(TurnEnded(0, report))
    return turn.report()


def _guarded(on_event: Callable[[Event], None], turn: Turn) -> Callable[[Event], None]:
    """Speech goes on when whoever listens to the events fails."""
    works = True

    def tell(event: Event) -> None:
        nonlocal works
        if works:
            try:
                on_event(event)
            except Exception as error:
                works = False
                turn.warn(f"on_event failed and was not called again: {type(error).__name__}: {error}")

    return tell


@asynccontextmanager
async def _engine(synthesizer: Synthesizer | None, config: TurnConfig) -> AsyncGenerator[Synthesizer, None]:
    """The synthesizer that was handed in, or an own one for as long as the block lasts."""
    if synthesizer is not None:
        yield synthesizer
        return
    scheduler = own_engine(config)
    scheduler.start()
    try:
        yield scheduler
    finally:
        scheduler.close()
