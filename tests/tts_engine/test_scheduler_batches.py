"""Rows share steps: batches happen and change nothing, urgent rows first, failures hit only those to blame."""

from __future__ import annotations

import asyncio
import gc
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from tts_engine.batching import LEAST_ROW_FRAMES
from tts_engine.engine import Engine, Speech
from tts_engine.errors import BusyError, EngineError, InputError
from tts_engine.models.eager import EagerModel
from tts_engine.picking import BULK_SHARE
from tts_engine.resources import resident_bytes
from tts_engine.scheduler import Scheduler, SchedulerConfig
from tts_engine.sessions import Session
from tts_engine.text.frontend import FrontEnd
from tts_engine.types import Utterance
from tts_engine.weights import VoiceManifest

LONG = "The engineer will arrive between two and five this afternoon, and she will bring all the parts that she needs."


class Spy:
    """The model, with a look at every step: ``before`` sees the rows and may raise or wait."""

    def __init__(self, model: EagerModel) -> None:
        self._model = model
        self.steps: list[tuple[int, int]] = []  # rows, frames
        self.before: Callable[[Sequence[Any]], object] = lambda rows: None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def packet(self, rows: Sequence[Any], x: np.ndarray, *others: Any) -> np.ndarray:
        self.before(rows)
        self.steps.append((len(rows), x.shape[1]))
        return self._model.packet(rows, x, *others)


class SpyEngine(Engine):
    """Notes which texts begin, in order, and the row of each."""

    __slots__ = ("begun", "rows")

    begun: list[str]
    rows: dict[str, Any]

    def begin(self, utterance: Utterance) -> Speech:
        speech = super().begin(utterance)
        self.begun.append(utterance.text)
        self.rows[utterance.text] = speech.row
        return speech


@pytest.fixture
def spy(models: EagerModel) -> Spy:
    return Spy(models)


@pytest.fixture
def engine(spy: Spy) -> SpyEngine:
    voice = VoiceManifest.load()
    engine = SpyEngine(voice, spy, FrontEnd(voice.symbols))
    engine.begun, engine.rows = [], {}
    return engine


@contextmanager
def scheduling(engine: Engine, **options: Any) -> Iterator[Scheduler]:
    scheduler = Scheduler(lambda: engine, SchedulerConfig(**{"workers": 1, "step_ms": 500.0, **options}))
    try:
        yield scheduler
    finally:
        scheduler.close()


async def take(session: Session) -> np.ndarray:
    return np.concatenate([np.zeros(0, np.float32), *[chunk.samples async for chunk in session]])


async def say(scheduler: Scheduler, *texts: str, **options: Any) -> np.ndarray:
    session = scheduler.open(**options)
    for text in texts:
        await session.put(Utterance(text))
    session.end()
    return await take(session)


async def say_on(session: Session, text: str) -> None:
    """One utterance of a session that goes on."""
    await session.put(Utterance(text))
    async for chunk in session:
        if chunk.last:
            return


def alone(engine: Engine, *texts: str) -> np.ndarray:
    return np.concatenate([chunk.samples for text in texts for chunk in engine.speak(Utterance(text))])


async def until(done: Callable[[], bool]) -> None:
    for _ in range(1000):
        if done():
            return
        await asyncio.sleep(0.005)
    pytest.fail("it never came about")


def held(spy: Spy) -> threading.Event:
    """Lets the first step wait until the event is set, so that what comes meanwhile is known to wait."""
    gate = threading.Event()
    spy.before = lambda rows: gate.wait(5)
    return gate


def alive(*kinds: type) -> list[Any]:
    gc.collect()
    return [thing for thing in gc.get_objects() if type(thing) in kinds]


@pytest.mark.parametrize("workers", [1, 2])
async def test_batches_happen_and_change_nothing(engine: SpyEngine, spy: Spy, workers: int) -> None:
    texts = [f"Number {i}. {LONG}" for i in range(6)] + ["请您稍等一下，我马上就来。", "No."]
    expected = [alone(engine, text) for text in texts]
    with scheduling(engine, workers=workers) as scheduler:
        await scheduler.ready()
        spy.steps.clear()
        spoken = await asyncio.gather(*[say(scheduler, text) for text in texts])
    for got, wanted in zip(spoken, expected, strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-4)
    assert max(rows for rows, _ in spy.steps) > 1
    assert max(rows * frames for rows, frames in spy.steps) <= 256


async def test_a_newcomer_comes_before_bulk_work(engine: SpyEngine, spy: Spy) -> None:
    with scheduling(engine) as scheduler:
        gate = held(spy)
        jobs = [asyncio.create_task(say(scheduler, f"{LONG} {i}", priority="bulk")) for i in range(3)]
        await asyncio.sleep(0.2)
        listener = asyncio.create_task(say(scheduler, "Yes?"))
        await asyncio.sleep(0.1)
        order: list[Any] = []
        spy.before = lambda rows: order.extend(rows[:1])
        gate.set()
        await listener
        await asyncio.gather(*jobs)
    assert order[0] is engine.rows["Yes?"]


async def test_bulk_work_is_not_starved(engine: SpyEngine, spy: Spy) -> None:
    """However many listeners are dry, one step in so many is for it."""
    with scheduling(engine, step_ms=1.0, ahead_s=1e9) as scheduler:
        gate = held(spy)
        listeners = [asyncio.create_task(say(scheduler, f"{LONG} {i}")) for i in range(5)]
        job = asyncio.create_task(say(scheduler, "Bulk.", priority="bulk"))
        await asyncio.sleep(0.2)
        gate.set()
        await job
        assert "Bulk." in engine.begun[: 2 * BULK_SHARE]
        assert not any(listener.done() for listener in listeners)
        await asyncio.gather(*listeners)


async def test_the_row_that_runs_dry_first_is_served_first(engine: SpyEngine, spy: Spy) -> None:
    with scheduling(engine, step_ms=1.0) as scheduler:
        rich, poor = scheduler.open(), scheduler.open()
        await rich.put(Utterance(" ".join([LONG] * 4)))
        await until(lambda: rich.buffered_s > 3)
        await poor.put(Utterance(f"Poor. {LONG}"))
        served: list[Any] = []
        spy.before = lambda rows: served.extend(map(id, rows))
        await anext(poor)
        await until(lambda: poor.buffered_s > 1)
        mine = id(engine.rows[f"Poor. {LONG}"])
        after = served[served.index(mine) :]
        assert after.count(mine) >= 0.7 * len(after)
        rich.cancel()
        poor.cancel()


async def test_the_next_utterance_begins_while_this_one_sounds(engine: SpyEngine) -> None:
    with scheduling(engine) as scheduler:
        session = scheduler.open()
        for text in ("This is the first one.", "Second."):
            await session.put(Utterance(text))
        chunk = await anext(session)
        await until(lambda: "Second." in engine.begun)
        assert chunk.utterance.text == "This is the first one."
        assert session.buffered_s > 0
        session.cancel()


async def test_one_bad_row_does_not_harm_the_others(engine: SpyEngine, spy: Spy) -> None:
    good = [f"Good number {i}. {LONG}" for i in range(3)]
    bad = "This one breaks. And goes on for a while."
    expected = [alone(engine, text) for text in good]

    def fail(rows: Sequence[Any]) -> None:
        if any(row is engine.rows.get(bad) for row in rows) and len(spy.steps) > 6:
            raise MemoryError("this row")

    with scheduling(engine) as scheduler:
        spy.steps.clear()
        spy.before = fail
        speaking = [asyncio.create_task(say(scheduler, text)) for text in good]
        session = scheduler.open()
        for text in (bad, "Better."):
            await session.put(Utterance(text))
        session.end()
        with pytest.raises(EngineError, match="this row") as failed:
            await take(session)
        assert failed.value.unspoken == bad
        np.testing.assert_allclose(await take(session), alone(engine, "Better."), atol=1e-4)
        for got, wanted in zip(await asyncio.gather(*speaking), expected, strict=True):
            np.testing.assert_allclose(got, wanted, atol=1e-4)


async def test_cancel_frees_the_row_within_the_step(engine: SpyEngine, spy: Spy) -> None:
    with scheduling(engine) as scheduler:
        gate = held(spy)
        session = scheduler.open()
        await session.put(Utterance(LONG))
        await until(lambda: bool(engine.begun))
        await asyncio.sleep(0.05)
        session.cancel()
        assert [chunk async for chunk in session] == []
        gate.set()
        await asyncio.sleep(0.3)
        steps = len(spy.steps)
        await asyncio.sleep(0.1)
        assert len(spy.steps) == steps <= 1
        engine.rows.clear()
        assert not alive(Speech)


async def test_busy_says_when_to_try_again_and_nothing_is_lost(engine: SpyEngine) -> None:
    with scheduling(engine, sessions=2, queued_sessions=1) as scheduler:
        sessions = [scheduler.open() for _ in range(3)]
        with pytest.raises(BusyError) as busy:
            scheduler.open()
        assert busy.value.retryable
        assert busy.value.retry_after_s > 0
        texts = ["One.", "Two.", "Three, which had to wait."]
        for session, text in zip(sessions, texts, strict=True):
            await session.put(Utterance(text))
            session.end()
        spoken = await asyncio.gather(*map(take, sessions))
        for got, text in zip(spoken, texts, strict=True):
            np.testing.assert_allclose(got, alone(engine, text), atol=1e-4)
        scheduler.open().cancel()


async def test_a_process_short_of_memory_serves_whom_it_has_in_small_steps(engine: SpyEngine, spy: Spy) -> None:
    texts = [f"Number {i}. {LONG}" for i in range(4)]
    with scheduling(engine) as scheduler:
        await scheduler.ready()
        sessions = [scheduler.open() for _ in texts]
        scheduler._admission._limit = 1 << 20
        with pytest.raises(BusyError, match="memory_limit_mb"):
            scheduler.open()
        await say_on(sessions[0], "One step tells.")
        spy.steps.clear()
        for session, text in zip(sessions[1:], texts, strict=False):
            await session.put(Utterance(text))
            session.end()
        spoken = await asyncio.gather(*map(take, sessions[1:]))
        assert max(rows * frames for rows, frames in spy.steps) <= LEAST_ROW_FRAMES
        for got, text in zip(spoken, texts, strict=False):
            np.testing.assert_allclose(got, alone(engine, text), atol=1e-4)


@pytest.mark.parametrize(
    "options", [{"workers": 0}, {"sessions": 0}, {"step_ms": -1.0}, {"queued_sessions": -1}, {"workers": "x"}]
)
def test_numbers_that_make_no_sense(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        SchedulerConfig(**options)


async def test_a_broken_scheduler_fails_instead_of_hanging(engine: SpyEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> int:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(Engine, "wanted_frames", broken)
    with scheduling(engine) as scheduler:
        session = scheduler.open()
        await session.put(Utterance("Hello."))
        with pytest.raises(EngineError, match="a bug"):
            await asyncio.wait_for(take(session), 5)


def test_a_listener_whose_loop_is_gone_harms_nobody(engine: SpyEngine, spy: Spy) -> None:
    """Its place is free again, and the next loop is served."""
    with scheduling(engine) as scheduler:
        gate = held(spy)

        async def walk_away() -> None:
            await scheduler.open().put(Utterance(LONG))
            await until(lambda: bool(engine.begun))

        asyncio.run(walk_away())
        gate.set()
        spoken = asyncio.run(say(scheduler, "Still here."))
        np.testing.assert_allclose(spoken, alone(engine, "Still here."), atol=1e-4)
        assert scheduler.sessions == 0


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("seed", [1, 2])
async def test_a_soak_leaves_nothing_behind(engine: SpyEngine, spy: Spy, workers: int, seed: int) -> None:
    """Sessions that come, go, stall and fail at random: each gets all of its own speech, in order, or an end."""
    dice = random.Random(seed)
    texts = ["Yes.", "好的。", "", "One moment, please.", "Number 42 is next in line.", LONG]
    expected = {text: alone(engine, text) for text in texts}

    def fail(rows: Sequence[Any]) -> None:
        if dice.random() < 0.02:
            raise RuntimeError("bad luck")

    async def listener(scheduler: Scheduler) -> str:
        await asyncio.sleep(dice.random() * 0.5)
        try:
            session = scheduler.open(dice.choice(["interactive", "bulk"]))
        except BusyError:
            return "busy"
        said = [dice.choice(texts) for _ in range(dice.randrange(4))]
        cancel_after = dice.choice([None, None, 0, 2])

        async def fill() -> None:
            for i, text in enumerate(said):
                await session.put(Utterance(text, index=i))
            session.end()

        filling = asyncio.create_task(fill())
        got: dict[int, list[np.ndarray]] = {}
        last = failed = taken = 0
        try:
            while taken != cancel_after:
                try:
                    chunk = await anext(session)
                except StopAsyncIteration:
                    break
                except EngineError:
                    failed += 1
                    continue
                taken += 1
                assert chunk.utterance.index >= last
                last = chunk.utterance.index
                got.setdefault(last, []).append(chunk.samples)
                if dice.random() < 0.1:
                    await asyncio.sleep(0.05)
        finally:
            session.cancel()
            await filling
        if taken == cancel_after:
            return "cancelled"
        whole = 0
        for index, parts in got.items():
            samples, wanted = np.concatenate(parts), expected[said[index]]
            np.testing.assert_allclose(samples, wanted[: len(samples)], atol=1e-4)
            whole += len(samples) == len(wanted)
        assert whole + failed >= len(said)
        return "failed" if failed else "done"

    with scheduling(engine, workers=workers, sessions=6, queued_sessions=4, step_ms=20.0) as scheduler:
        await scheduler.ready()
        spy.before = fail
        async with asyncio.timeout(60):
            fates = await asyncio.gather(*[listener(scheduler) for _ in range(24)])
        assert scheduler.sessions == 0
    assert "done" in fates
    engine.rows.clear()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("sayline-")]
    assert not alive(Speech, Session)


@pytest.mark.slow
async def test_memory_does_not_grow_with_the_number_of_sentences(engine: SpyEngine) -> None:
    with scheduling(engine) as scheduler:

        async def many(count: int) -> int:
            for _ in range(count):
                await say(scheduler, "Yes.", "好的。")
                engine.rows.clear()
                engine.begun.clear()
            gc.collect()
            return resident_bytes()

        warm = await many(50)
        assert await many(50) - warm < 2 << 20
