"""Several event loops at once, sessions that come, go and vanish, a model that fails everywhere: no deadlock, nothing left."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import random
import threading
import time
from collections import Counter
from typing import Any

from tts_engine.engine import Engine, Speech
from tts_engine.errors import BusyError, EngineError
from tts_engine.scheduler import Scheduler, SchedulerConfig
from tts_engine.sessions import Session
from tts_engine.text.frontend import FrontEnd
from tts_engine.types import Utterance
from tts_engine.weights import VoiceManifest

TEXTS = ["Yes.", "好的。", "", "...", "One moment, please.", "Number 42 is next in line."]
LOOPS, LISTENERS = 3, 8


class Unreliable:
    """A model that now and then fails in each of its parts."""

    def __init__(self, model: Any, seed: int) -> None:
        self._model = model
        self._dice = random.Random(seed)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._model, name)
        if name not in ("encode_more", "prosody", "packet"):
            return found

        def call(*arguments: Any) -> Any:
            if self._dice.random() < 0.03:
                raise self._dice.choice((RuntimeError, MemoryError, ValueError))("bad luck")
            return found(*arguments)

        return call


async def listener(scheduler: Scheduler, dice: random.Random, fates: Counter[str]) -> None:
    """Some replies, each heard to its end, cut at some moment, or left without a word."""
    for _ in range(3):
        await asyncio.sleep(dice.random() * 0.1)
        try:
            session = scheduler.open(dice.choice(("interactive", "bulk")))
        except BusyError:
            fates["busy"] += 1
            continue
        said = [dice.choice(TEXTS) for _ in range(dice.randint(0, 5))]
        fate = dice.choice(("heard", "heard", "cut", "left"))

        async def fill(session: Session = session, said: list[str] = said) -> None:
            for i, text in enumerate(said):
                await session.put(Utterance(text, index=i))
            session.end()

        filling = asyncio.create_task(fill())
        ended: list[int] = []
        taken = 0
        while fate == "heard" or (fate == "cut" and taken < 2):
            taken += 1
            try:
                chunk = await anext(session)
            except StopAsyncIteration:
                break
            except EngineError as error:
                ended.append(-1 if error.unspoken in said else -2)
                continue
            if chunk.last:
                ended.append(chunk.utterance.index)
            assert session.buffered_s < scheduler.ahead_s + 2.0
        if fate == "heard":
            assert len(ended) == len(said)
            assert -2 not in ended
            assert [i for i in ended if i >= 0] == sorted(i for i in ended if i >= 0)
        else:
            session.cancel()
        await filling
        fates[fate] += 1


async def vanish(scheduler: Scheduler) -> None:
    """Asks and goes, with its event loop, without a word."""
    with contextlib.suppress(BusyError):
        await scheduler.open().put(Utterance("Number 42 is next in line, and will be for quite a while."))
        await asyncio.sleep(0.05)


def test_loops_sessions_and_failures_in_any_order(models: Any) -> None:
    voice = VoiceManifest.load()
    engine = Engine(voice, Unreliable(models, 7), FrontEnd(voice.symbols))  # type: ignore[arg-type]
    scheduler = Scheduler(lambda: engine, SchedulerConfig(workers=3, sessions=6, queued_sessions=8, ahead_s=2.0))
    fates: Counter[str] = Counter()
    errors: list[BaseException] = []

    async def several(seed: int) -> None:
        async with asyncio.timeout(120), asyncio.TaskGroup() as listeners:
            for i in range(LISTENERS):
                listeners.create_task(listener(scheduler, random.Random(100 * seed + i), fates))

    def run(seed: int) -> None:
        try:
            asyncio.run(several(seed))
            asyncio.run(vanish(scheduler))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(LOOPS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert fates["heard"] > 5
    assert fates["cut"] + fates["left"] > 5
    until = time.monotonic() + 20
    while scheduler.sessions and time.monotonic() < until:  # those of loops that are gone leave when a worker looks
        time.sleep(0.02)
    assert scheduler.sessions == 0
    scheduler.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("sayline-")]
    gc.collect()
    assert not [thing for thing in gc.get_objects() if type(thing) in (Speech, Session)]
