"""A turn from an LLM's stream to packets: pieces, order, errors, cancelling, timeline."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from tts_engine.engine import Engine
from tts_engine.scheduler import Scheduler
from voice_agent import Agent, speak, stream
from voice_agent.errors import InputError, SinkError, SourceError, VoiceError
from voice_agent.llm.demo import DemoChat
from voice_agent.metrics import STAGES
from voice_agent.sinks.memory import MemorySink
from voice_agent.testing.fake_engine import FakeSynthesizer
from voice_agent.text.grouping import GroupingConfig
from voice_agent.turn import Turn, TurnConfig

STREAMS = Path(__file__).parent.parent / "cases" / "llm_streams"
NAMES = sorted(path.stem for path in STREAMS.glob("*.yaml"))


@pytest.fixture(scope="module")
def synthesizer(engine: Engine) -> Iterator[Scheduler]:
    scheduler = Scheduler(lambda: engine)
    yield scheduler
    scheduler.close()


async def spoken_pieces(synthesizer: Scheduler, source: Any, format: str | None) -> tuple[list[str], Exception | None]:
    """What a turn speaks, sentence by sentence (short ones are not joined, so that pieces can be compared)."""
    turn = Turn(synthesizer, TurnConfig(grouping=GroupingConfig(early_clause=False), format=format))
    error = None
    try:
        async with aclosing(turn.chunks(source)) as chunks:
            async for _ in chunks:
                pass
    except SourceError as caught:
        error = caught
    return [times.text for times in turn.report().sentences], error


def unblank(text: str) -> str:
    return "".join(text.split())


@pytest.mark.parametrize("name", NAMES)
async def test_recorded_streams_are_spoken_as_expected(synthesizer: Scheduler, name: str) -> None:
    case = yaml.safe_load((STREAMS / f"{name}.yaml").read_text(encoding="utf-8"))
    lines = [json.loads(line) for line in (STREAMS / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]

    async def replay() -> AsyncIterator[Any]:
        for line in lines:
            yield line
            await asyncio.sleep(0)

    form = "text" if case["format"] == "text" else None
    got, error = await spoken_pieces(synthesizer, replay(), form)
    assert (error is not None) == case.get("expected_error", False)
    # the grouper may join short sentences that are there: compare what is said, not where it is cut
    expected = unblank("".join(case["expected_spoken_pieces"]))
    allowed = {expected, expected + unblank(case.get("optional_tail", ""))}
    assert unblank("".join(got)) in allowed


async def test_speaking_begins_before_the_stream_ends(synthesizer: Scheduler) -> None:
    heard = asyncio.Event()

    async def tokens() -> AsyncIterator[str]:
        yield "The first sentence is here. And "
        await asyncio.wait_for(heard.wait(), 10)
        yield "here is the second."

    async for chunk in stream(tokens(), synthesizer=synthesizer):
        if chunk.samples.any():
            heard.set()


async def test_a_stream_that_stalls_gives_what_is_complete(synthesizer: Scheduler) -> None:
    """The full stop at the end may go on (3.14), so only the pause shows that the sentence has ended."""
    heard = asyncio.Event()

    async def tokens() -> AsyncIterator[str]:
        yield "I will look that up for you."
        await asyncio.wait_for(heard.wait(), 10)
        yield " Found it."

    async for chunk in stream(tokens(), synthesizer=synthesizer):
        if chunk.samples.any():
            heard.set()


async def test_an_error_in_mid_sentence_comes_after_what_arrived(synthesizer: Scheduler) -> None:
    async def tokens() -> AsyncIterator[str]:
        yield "Your order has shipped. It should arr"
        raise ConnectionResetError("the server went away")

    sink = MemorySink()
    with pytest.raises(SourceError, match="went away"):
        await speak(tokens(), sink, synthesizer=synthesizer)
    assert len(sink.samples) > 24_000


async def test_a_sentence_that_no_voice_speaks_is_reported_and_the_others_are_spoken(synthesizer: Scheduler) -> None:
    sink = MemorySink()
    with pytest.raises(VoiceError, match="xiaobei") as caught:
        await speak("First one.\n\n你好。\n\nThe last one.", sink, voice="heart", synthesizer=synthesizer)
    assert caught.value.unspoken == "你好。"
    english = MemorySink()
    await speak("First one.\n\nThe last one.", english, voice="heart", synthesizer=synthesizer)
    assert len(sink.samples) == pytest.approx(len(english.samples), rel=0.1)


async def test_scripts_without_a_voice_are_named(synthesizer: Scheduler) -> None:
    report = await speak("Hello สวัสดี there. Привет!", MemorySink(), synthesizer=synthesizer)
    assert any("Thai" in warning for warning in report.warnings)
    assert any("Cyrillic" in warning for warning in report.warnings)


async def test_the_timeline_is_in_order(synthesizer: Scheduler) -> None:
    report = await speak("One sentence. Another sentence, a bit longer. 第三句。", MemorySink(), synthesizer=synthesizer)
    assert report.sentences
    for times in report.sentences:
        row = times.as_dict()
        moments = [row[f"{name}_s"] for name in STAGES]
        assert all(moment is not None for moment in moments)
        assert moments == sorted(moments)
    assert report.audio_s == pytest.approx(sum(times.audio_s for times in report.sentences))
    json.dumps(report.as_dict())


async def test_raw_offsets_lead_back_to_the_stream(synthesizer: Scheduler) -> None:
    raw = "**Great** news! 🎉 The `total` is &pound;5.\n\n- [speed_1.2]one\n- two"
    report = await speak(raw, MemorySink(), synthesizer=synthesizer)
    for times in report.sentences:
        for word in times.text.replace("£5.", "").replace(".", " ").replace("!", " ").split():
            assert word in raw[times.start : times.end]


async def test_cancelling_stops_source_engine_and_sink(synthesizer: Scheduler) -> None:
    closed = asyncio.Event()

    async def tokens() -> AsyncIterator[str]:
        try:
            while True:
                yield "On and on it goes. "
                await asyncio.sleep(0.001)
        finally:
            closed.set()

    task = asyncio.create_task(speak(tokens(), MemorySink(), synthesizer=synthesizer))
    await asyncio.sleep(0.5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 30)
    await asyncio.wait_for(closed.wait(), 30)
    assert len(asyncio.all_tasks()) == 1


async def test_a_failing_sink_stops_the_reading(synthesizer: Scheduler) -> None:
    class Full(MemorySink):
        async def _put(self, frames: np.ndarray) -> None:
            raise SinkError("the disk is full")

    read = 0

    async def tokens() -> AsyncIterator[str]:
        nonlocal read
        while True:
            read += 1
            yield "More and more text comes in. "
            await asyncio.sleep(0)

    with pytest.raises(SinkError, match="disk is full"):
        await asyncio.wait_for(speak(tokens(), Full(), synthesizer=synthesizer), 20)
    assert read < 1000
    assert len(asyncio.all_tasks()) == 1


async def test_a_slow_listener_slows_the_reading(synthesizer: Scheduler) -> None:
    """Back-pressure from the packets to the source: little more than is spoken is read."""
    read = 0

    async def tokens() -> AsyncIterator[str]:
        nonlocal read
        while True:
            read += 1
            yield f"This is sentence number {read} of very many. "
            await asyncio.sleep(0)

    async with aclosing(Turn(synthesizer).chunks(tokens())) as chunks:
        async for _ in chunks:
            await asyncio.sleep(0.5)
            break
    assert read < 200  # four thousand characters may wait


@pytest.mark.parametrize("text", ["", "...", "😊", "\n\n", "<think>only thoughts</think>", "```\ncode\n```"])
async def test_nothing_to_say_is_no_error(synthesizer: Scheduler, text: str) -> None:
    sink = MemorySink()
    report = await speak(text, sink, synthesizer=synthesizer)
    assert len(sink.samples) == 0
    assert report.sentences == ()


async def test_bad_options_are_refused(synthesizer: Scheduler) -> None:
    with pytest.raises(InputError, match="speed"):
        await speak("Hello.", MemorySink(), speed=9, synthesizer=synthesizer)
    with pytest.raises(InputError, match="allowed are"):
        await speak("Hello.", "tape.mp3", synthesizer=synthesizer)


async def test_an_agent_answers_and_keeps_the_history(synthesizer: Scheduler) -> None:
    sink = MemorySink()
    async with Agent(DemoChat(pace=0), sink, synthesizer=synthesizer) as agent:
        report = await agent.reply("Where is my order?")
        await agent.reply("谢谢")
    roles = [message["role"] for message in agent.conversation.messages]
    assert roles == ["user", "assistant", "user", "assistant"]
    assert agent.conversation.messages[1]["content"] == report.text
    assert len(sink.samples) > 24_000


@pytest.mark.parametrize("char", ["9", "word ", "‹", "，"])
async def test_other_tasks_run_while_a_long_text_is_read(char: str) -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    text = char * (20_000 // len(char))
    pieces = [piece async for piece in Turn(FakeSynthesizer())._deltas(text)]
    counting.cancel()
    assert "".join(str(piece) for piece in pieces) == text
    assert turns >= 20
