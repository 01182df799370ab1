"""Long sentences go through the text encoder in pieces: nothing that is heard depends on when the later ones are read."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from tts_engine.engine import Engine, EngineConfig
from tts_engine.errors import EngineError, SaylineError
from tts_engine.models.base import Encoding, SpeechModel
from tts_engine.models.encoding import FIRST_PHONEMES, LONG_PHONEMES, PIECE_PHONEMES, piece_ends
from tts_engine.scheduler import Scheduler, SchedulerConfig
from tts_engine.types import AudioChunk, Mark, Tag, Utterance

LONG = (
    "Your package left the warehouse early this morning, and because the road along the coast is still closed after the "
    "storm, the driver has to take the longer way around the lake."
)
CHINESE = "您的包裹昨天晚上已经离开仓库，因为沿海的道路在暴风雨之后仍然关闭，所以司机必须绕湖走更远的路，星期五之前就能送到。"


@pytest.fixture(scope="module", params=["float32", "int8"])
def compiled(request: pytest.FixtureRequest) -> Engine:
    return Engine.load(config=EngineConfig(compile="onnx", precision=request.param))


def chunks_of(engine: Engine, utterance: Utterance, *, at_once: bool) -> list[AudioChunk]:
    speech = engine.begin(utterance)
    if at_once:
        engine.complete(speech)
    chunks = []
    while not speech.done:
        chunks.append(engine.step(speech))
    return chunks


@pytest.mark.parametrize(
    "utterance",
    [
        Utterance(LONG),
        Utterance(CHINESE),
        Utterance(LONG, speed=1.2),
        Utterance(LONG, break_before_ms=100, break_after_ms=50, pitch=2.0, marks=(Mark(0, Tag("volume", 0.5)),)),
        Utterance(LONG, marks=(Mark(5, Tag("break", 400)), Mark(13, Tag("volume", 2.0)), Mark(13, Tag("pitch", -3.0)))),
        Utterance("a" * 300),
        Utterance("Yes" + "!" * 200),
        Utterance("9" * 60),
    ],
    ids=["en", "zh", "speed", "fields", "marks", "one word", "short behind", "digits"],
)
def test_packets_do_not_depend_on_when_the_end_is_read(compiled: Engine, utterance: Utterance) -> None:
    """To the last bit: in int8 too, since the pieces follow from the text."""
    for late, early in zip(*(chunks_of(compiled, utterance, at_once=it) for it in (False, True)), strict=True):
        np.testing.assert_array_equal(late.samples, early.samples)
        assert (late.words, late.start_sample, late.last) == (early.words, early.start_sample, early.last)


def test_the_first_packet_of_a_long_sentence_needs_its_beginning_only(compiled: Engine) -> None:
    speech = compiled.begin(Utterance(LONG))
    assert speech.partial
    assert len(speech.encoding.log_durations) == FIRST_PHONEMES
    first = compiled.step(speech)
    assert speech.partial
    assert np.abs(first.samples).max() > 0.003
    compiled.step(speech)
    assert not speech.partial


@pytest.mark.parametrize("sizes", [(1,), (3, 7, 64), (64,)], ids=str)
def test_packets_of_any_size_say_the_same(compiled: Engine, sizes: tuple[int, ...]) -> None:
    other = Engine(compiled.voice, compiled.model, compiled.front_end, EngineConfig(chunk_frames=sizes))
    got, expected = (
        np.concatenate([chunk.samples for chunk in chunks_of(engine, Utterance(CHINESE), at_once=False)])
        for engine in (other, compiled)
    )
    assert len(got) == len(expected)
    power = np.mean((got - expected) ** 2) / np.mean(expected**2)
    assert power < (1e-3 if compiled.model.form == "onnx int8" else 1e-6)


class Failing:
    """A model that encodes only so many pieces."""

    def __init__(self, model: SpeechModel, pieces: int) -> None:
        self._model = model
        self.pieces = pieces

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def encode_more(self, encoding: Encoding) -> None:
        if not self.pieces:
            raise MemoryError("too long")
        self.pieces -= 1
        self._model.encode_more(encoding)


def test_a_piece_that_fails_can_be_tried_again(compiled: Engine) -> None:
    model = Failing(compiled.model, 1)
    engine = Engine(compiled.voice, model, compiled.front_end)
    speech = engine.begin(Utterance(LONG))
    parts = [engine.step(speech).samples]
    with pytest.raises(EngineError, match="too long"):
        engine.step(speech)
    model.pieces = 1
    while not speech.done:
        parts.append(engine.step(speech).samples)
    expected = [chunk.samples for chunk in chunks_of(compiled, Utterance(LONG), at_once=True)]
    np.testing.assert_array_equal(np.concatenate(parts), np.concatenate(expected))


def test_the_scheduler_reads_the_end_behind_the_first_packet(compiled: Engine) -> None:
    async def heard(engine: Engine) -> tuple[np.ndarray, list[SaylineError]]:
        scheduler = Scheduler(lambda: engine, SchedulerConfig(workers=1, reload=False))
        parts, errors = [np.zeros(0, np.float32)], []
        try:
            session = scheduler.open()
            for text in (LONG, CHINESE):
                await session.put(Utterance(text))
            session.end()
            while True:
                try:
                    parts.append((await anext(session)).samples)
                except SaylineError as error:
                    errors.append(error)
                except StopAsyncIteration:
                    return np.concatenate(parts), errors
        finally:
            scheduler.close()

    both = [chunk.samples for text in (LONG, CHINESE) for chunk in chunks_of(compiled, Utterance(text), at_once=False)]
    samples, errors = asyncio.run(heard(compiled))
    assert not errors
    assert len(samples) == sum(len(part) for part in both)

    failing = Engine(compiled.voice, Failing(compiled.model, 1), compiled.front_end)
    samples, errors = asyncio.run(heard(failing))
    assert [error.unspoken for error in errors] == [LONG, CHINESE]
    np.testing.assert_array_equal(samples, both[0])  # its first packet


def test_pieces_follow_from_the_length() -> None:
    assert list(piece_ends(1)) == [1]
    assert list(piece_ends(LONG_PHONEMES - 1)) == [LONG_PHONEMES - 1]
    assert list(piece_ends(LONG_PHONEMES)) == [FIRST_PHONEMES, LONG_PHONEMES]
    assert list(piece_ends(1000)) == [24, 24 + PIECE_PHONEMES, 24 + 2 * PIECE_PHONEMES, 1000]
