"""Speech for one request: any source of text to the bytes of one file, at any speed, while they are made."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tts_engine.types import AudioChunk
from voice_agent.api import ENGINE_FORMAT
from voice_agent.errors import SaylineError
from voice_agent.protocols import Synthesizer
from voice_agent.server.encoders import Container, Encoder
from voice_agent.server.streams import Stream
from voice_agent.stretch import Stretcher
from voice_agent.text.prosody import ProsodyConfig
from voice_agent.turn import Turn, TurnConfig

__all__ = ["SPEED_RANGE", "Manner", "packets", "split_speed", "spoken"]

SPEED_RANGE = (0.25, 4.0)
DURATION_RANGE = (0.8, 1.0)
"""Speeds at which the voice itself speaks slower; beyond them the sound is stretched.

Faster speech is understood better if it is stretched: the voice runs short phonemes together (docs/experiments.md).
"""
_SLICE_S = 0.2
_SILENCE_S = 0.05
"""What a text without anything to say sounds like: an empty file is an error to many players."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How to speak and how to write it. ``voice`` as the engine knows it; ``pitch`` in semitones, the others factors."""

    voice: str = "auto"
    speed: float = 1.0
    pitch: float = 0.0
    volume: float = 1.0
    container: Container = "mp3"
    sample_rate: int = ENGINE_FORMAT.sample_rate


def split_speed(speed: float) -> tuple[float, float]:
    """A speed as that of the voice and the tempo of the stretching behind it; their product is ``speed``."""
    low, high = DURATION_RANGE
    voice = min(max(speed, low), high)
    return voice, speed / voice


async def packets(engine: Synthesizer, source: Any, manner: Manner) -> AsyncGenerator[AudioChunk, None]:
    """The packets of everything in ``source``, at the speed that was asked for. Word times are those before stretching.

    An error of the source, or of one sentence, is raised at the end, when all that can be spoken was given.
    """
    speed, tempo = split_speed(manner.speed)
    prosody = ProsodyConfig(voice=manner.voice, speed=speed, pitch=manner.pitch, volume=manner.volume)
    turn = Turn(engine, TurnConfig(prosody=prosody))
    stretcher = None if tempo == 1.0 else Stretcher(tempo)
    chunk: AudioChunk | None = None
    failure: SaylineError | None = None
    async with aclosing(turn.chunks(source)) as chunks:
        try:
            async for chunk in chunks:
                for part in _slices(chunk):
                    given = part if stretcher is None else replace(part, samples=stretcher.feed(part.samples))
                    if len(given.samples):
                        yield given
        except SaylineError as error:
            failure = error
    if stretcher is not None and chunk is not None:
        yield replace(chunk, samples=stretcher.flush())
    if failure is not None:
        raise failure


def _slices(chunk: AudioChunk) -> list[AudioChunk]:
    """A packet in parts that the loop can stretch and encode without keeping others waiting."""
    count = max(1, round(chunk.duration_s / _SLICE_S))
    if count == 1:
        return [chunk]
    starts = [len(chunk.samples) * k // count for k in range(count)]
    parts = np.split(chunk.samples, starts[1:])
    return [
        replace(chunk, samples=part, start_sample=chunk.start_sample + start, last=chunk.last and start == starts[-1])
        for start, part in zip(starts, parts, strict=True)
    ]


async def spoken(engine: Synthesizer, stream: Stream, source: Any, manner: Manner) -> AsyncGenerator[bytes, None]:
    """The bytes of ``source``'s speech in ``manner``'s format. Raises InputError for a rate that the format does not have.

    What fails is raised when everything else was given; before the first bytes if that is nothing.
    """
    encoder = Encoder(manner.container, ENGINE_FORMAT.sample_rate, manner.sample_rate)
    held: list[AudioChunk] = []  # in the encoder
    silent = True
    failure: SaylineError | None = None
    try:
        async with aclosing(packets(engine, source, manner)) as chunks:
            asked_s = time.monotonic()
            try:
                async for chunk in chunks:
                    stream.waited(time.monotonic() - asked_s)
                    silent = False
                    held.append(chunk)
                    data = encoder.feed(chunk.samples)
                    asked_s = time.monotonic()
                    if data:
                        _send(stream, held)
                        yield data
                        stream.blocked(time.monotonic() - asked_s)
                        asked_s = time.monotonic()
                    await asyncio.sleep(0)
            except SaylineError as error:
                failure = error
        if failure is not None and silent:
            raise failure
        rest = encoder.feed(np.zeros(round(_SILENCE_S * ENGINE_FORMAT.sample_rate), np.float32)) if silent else b""
        rest += encoder.flush()
        _send(stream, held)
        yield rest
        if failure is not None:
            raise failure
    finally:
        encoder.close()


def _send(stream: Stream, held: list[AudioChunk]) -> None:
    for chunk in held:
        stream.sent(chunk)
    held.clear()
