"""Many sessions on one worker: order, fairness, back-pressure, cancelling, failures."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest

from tts_engine.engine import Engine
from tts_engine.errors import BusyError, EngineError, SaylineError, VoiceError, WeightsError
from tts_engine.scheduler import Scheduler, SchedulerConfig, Session
from tts_engine.types import Utterance


@pytest.fixture
def scheduler(engine: Engine):
    scheduler = Scheduler(lambda: engine)
    yield scheduler
    scheduler.close()


async def take(session: Session) -> tuple[np.ndarray, list[int]]:
    chunks = [chunk async for chunk in session]
    return np.concatenate([chunk.samples for chunk in chunks]), [c.utterance.index for c in chunks]


async def test_utterances_come_out_in_order_and_whole(scheduler: Scheduler, engine: Engine) -> None:
    texts = ["One.", "Two, please.", "三。", "", "Four."]
    session = scheduler.open()

    async def fill() -> None:
        for i, text in enumerate(texts):
            await session.put(Utterance(text, index=i, break_after_ms=50))
        session.end()

    (samples, indices), _ = await asyncio.gather(take(session), fill())
    assert indices == sorted(indices)
    expected = [c.samples for i, t in enumerate(texts) for c in engine.speak(Utterance(t, index=i, break_after_ms=50))]
    np.testing.assert_allclose(samples, np.concatenate(expected), atol=1e-4)


async def test_two_listeners_get_their_own_speech_side_by_side(scheduler: Scheduler, engine: Engine) -> None:
    texts = ["This is the first listener, with quite a long sentence to hear.", "第二位听众。"]
    sessions = [scheduler.open() for _ in texts]
    for session, text in zip(sessions, texts, strict=True):
        await session.put(Utterance(text))
        session.end()
    for (samples, _), text in zip(await asyncio.gather(*map(take, sessions)), texts, strict=True):
        alone = np.concatenate([chunk.samples for chunk in engine.speak(Utterance(text))])
        np.testing.assert_allclose(samples, alone, atol=1e-4)


async def test_a_newcomer_does_not_wait_for_a_long_job(scheduler: Scheduler) -> None:
    """The one with the least audio ahead is served first."""
    long, short = scheduler.open(), scheduler.open()
    await long.put(Utterance("word " * 300))
    first = await anext(long)
    assert not first.last
    await short.put(Utterance("Yes."))
    short.end()
    await take(short)
    assert long.has_more
    long.cancel()


async def test_the_engine_rests_when_it_is_far_enough_ahead(engine: Engine) -> None:
    scheduler = Scheduler(lambda: engine, SchedulerConfig(ahead_s=2.0))
    try:
        session = scheduler.open()
        await session.put(Utterance("word " * 200))
        await anext(session)
        for _ in range(3000):
            await asyncio.sleep(0.02)
            if session.buffered_s >= 2.0:
                break
        await asyncio.sleep(0.1)
        assert 2.0 <= session.buffered_s < 2.0 + 64 * 0.025 + 0.1
        session.cancel()
    finally:
        scheduler.close()


async def test_putting_waits_for_room(scheduler: Scheduler) -> None:
    session = scheduler.open()
    put = 0

    async def fill() -> None:
        nonlocal put
        for _ in range(20):
            await session.put(Utterance("word " * 100))
            put += 1

    filling = asyncio.create_task(fill())
    await asyncio.sleep(0.3)
    assert put < 10
    session.cancel()
    await asyncio.wait_for(filling, 30)


async def test_cancel_ends_the_iteration_at_once(scheduler: Scheduler) -> None:
    session = scheduler.open()
    await session.put(Utterance("word " * 200))
    await anext(session)
    session.cancel()
    assert [chunk async for chunk in session] == []
    other = scheduler.open()
    await other.put(Utterance("Still here."))
    other.end()
    assert (await take(other))[0].any()


async def test_a_failed_utterance_raises_in_its_place_and_the_rest_goes_on(scheduler: Scheduler) -> None:
    session = scheduler.open()
    for utterance in (Utterance("One."), Utterance("你好。", voice="heart"), Utterance("Three.", index=2)):
        await session.put(utterance)
    session.end()
    seen: list[str] = []
    while True:
        try:
            chunk = await anext(session)
        except StopAsyncIteration:
            break
        except VoiceError as error:
            seen.append(f"error: {error.unspoken}")
        else:
            if chunk.last:
                seen.append(chunk.utterance.text)
    assert seen == ["One.", "error: 你好。", "Three."]


async def test_an_engine_that_cannot_load_fails_for_everyone() -> None:
    def load() -> Engine:
        raise WeightsError("acoustic.safetensors is truncated")

    scheduler = Scheduler(load)
    session = scheduler.open()
    await session.put(Utterance("Hello."))
    with pytest.raises(WeightsError, match="truncated"):
        await scheduler.ready()
    with pytest.raises(WeightsError, match="truncated"):
        await anext(session)
    assert [chunk async for chunk in session] == []
    scheduler.close()


async def test_an_unexpected_error_is_an_engine_error() -> None:
    def load() -> Engine:
        raise ZeroDivisionError("strange")

    scheduler = Scheduler(load)
    with pytest.raises(EngineError, match="strange"):
        await scheduler.ready()
    scheduler.close()


async def test_closing_leaves_no_thread_and_ends_sessions(engine: Engine) -> None:
    scheduler = Scheduler(lambda: engine)
    session = scheduler.open()
    await scheduler.ready()
    scheduler.close()
    assert [chunk async for chunk in session] == []
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("sayline-")]
    assert isinstance(scheduler.failure, SaylineError | None)


def test_places_of_listeners_whose_loop_is_gone_are_free_again(engine: Engine) -> None:
    """Also of those that never asked for anything, whom no packet would find missing."""
    scheduler = Scheduler(lambda: engine, SchedulerConfig(sessions=2, queued_sessions=0))

    async def walk_away() -> None:
        for _ in range(2):
            scheduler.open()
        with pytest.raises(BusyError):
            scheduler.open()

    for _ in range(2):
        asyncio.run(walk_away())
    scheduler.close()


async def test_a_closed_engine_is_freed_at_once() -> None:
    """The collector would come late: it counts objects, and an engine is a few that hold much."""
    scheduler = Scheduler()
    await scheduler.ready()
    session = scheduler.open()
    await session.put(Utterance("One."))
    session.end()
    assert [chunk async for chunk in session]
    assert scheduler.engine is not None
    model = weakref.ref(scheduler.engine.model)
    gc.disable()
    try:
        scheduler.close()
        assert model() is None
    finally:
        gc.enable()


async def test_who_waits_gets_the_place_of_a_listener_whose_loop_is_gone(engine: Engine) -> None:
    scheduler = Scheduler(lambda: engine, SchedulerConfig(sessions=1, queued_sessions=1))
    opened, leave = threading.Event(), threading.Event()

    async def hold() -> None:
        scheduler.open()
        opened.set()
        await asyncio.to_thread(leave.wait)

    holder = threading.Thread(target=asyncio.run, args=(hold(),))
    holder.start()
    await asyncio.to_thread(opened.wait)
    waiting = scheduler.open()
    await waiting.put(Utterance("One."))
    waiting.end()
    leave.set()
    await asyncio.to_thread(holder.join)
    async with asyncio.timeout(30):
        assert [chunk async for chunk in waiting]
    scheduler.close()


async def test_who_waits_to_put_something_in_is_let_go_when_the_engine_cannot_be_loaded() -> None:
    may_fail = threading.Event()

    def load() -> Engine:
        may_fail.wait()
        raise WeightsError("truncated")

    scheduler = Scheduler(load, SchedulerConfig(queued_utterances=1))
    session = scheduler.open()
    await session.put(Utterance("One."))
    waiting = asyncio.create_task(session.put(Utterance("Two.")))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    may_fail.set()
    await asyncio.wait_for(waiting, 10)
    await session.put(Utterance("Three."))
    with pytest.raises(WeightsError, match="truncated"):
        await anext(session)
    scheduler.close()


async def test_a_closed_engine_lets_nobody_wait(engine: Engine) -> None:
    scheduler = Scheduler(lambda: engine)
    await scheduler.ready()
    scheduler.close()
    with pytest.raises(EngineError, match="closed"):
        scheduler.open()
    with pytest.raises(EngineError, match="closed"):
        await scheduler.ready()


FORKED = """
import os
from tts_engine.errors import EngineError
from tts_engine.scheduler import Scheduler
scheduler = Scheduler()
scheduler.start()
if os.fork() == 0:
    try:
        scheduler.start()
    except EngineError as error:
        print(error, flush=True)
    raise SystemExit(3)  # through everything that runs at the end of an interpreter
_, status = os.wait()
print("child", os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_process_that_was_forked_is_told_and_ends_and_so_does_one_whose_engine_still_loads() -> None:
    """The parent ends while a thread loads: unjoined, that would abort the process now and then."""
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    told, child = done.stdout.splitlines()
    assert "make one in each process" in told
    assert child == "child 3"


UNCLOSED = """
import asyncio, threading
from tts_engine.scheduler import Scheduler
from tts_engine.types import Utterance

async def speak():
    session = Scheduler().open()
    await session.put(Utterance("word " * 300))
    await anext(session)
    return session, asyncio.get_running_loop()

loop = asyncio.new_event_loop()
kept = loop.run_until_complete(speak())
"""


def test_threads_that_nobody_closed_end_with_the_interpreter() -> None:
    """One that it ended inside ONNX Runtime would abort the process, so this fails now and then without it."""
    done = subprocess.run([sys.executable, "-c", UNCLOSED], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


async def test_how_many_it_could_serve_is_learned_from_what_it_makes(scheduler: Scheduler) -> None:
    guess = scheduler.capacity
    session = scheduler.open()
    await session.put(Utterance("How many could listen to this at once?"))
    session.end()
    await take(session)
    assert scheduler.capacity != guess
    assert 0 < scheduler.capacity < 1000 * guess
