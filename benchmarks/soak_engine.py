"""Memory, threads and rows over many sentences: nothing may grow with their number, whatever becomes of them.

    python -m benchmarks.soak_engine [--sentences 10000] [--listeners 4] [--plot FILE]

Listeners ask for sentences of all lengths in both languages side by side; one reply in eight is cut off after its first
packet, one utterance in sixteen cannot be spoken. *Warm* and *grown*: see ``speech.growth``. Speech that still exists at the
end, sessions that are open and threads that are left must be none.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import random
import threading
import time
from contextlib import closing
from dataclasses import dataclass, field

from benchmarks.measure import Row, cores, report
from benchmarks.plots import add_plot_option, lines

cores(2)

from benchmarks.speech import growth, sentences_of_all_lengths  # noqa: E402
from tts_engine.engine import Engine, EngineConfig, Speech  # noqa: E402
from tts_engine.errors import SaylineError  # noqa: E402
from tts_engine.resources import resident_bytes  # noqa: E402
from tts_engine.scheduler import Scheduler, SchedulerConfig  # noqa: E402
from tts_engine.types import Utterance  # noqa: E402

SAMPLES = 40
CUT, BAD = 8, 16


@dataclass
class Count:
    """What has become of the sentences so far, and the memory on the way."""

    wanted: int
    asked: int = 0
    whole: int = 0
    cut: int = 0
    failed: int = 0
    audio_s: float = 0.0
    mib: list[float] = field(default_factory=list)


async def listener(scheduler: Scheduler, dice: random.Random, count: Count) -> None:
    """Replies of one to three sentences, until there were enough."""
    said = [*sentences_of_all_lengths(), "..."]
    while count.asked < count.wanted:
        session = scheduler.open(dice.choice(("interactive", "bulk")))
        replies = dice.choices(said, k=dice.randint(1, 3))
        count.asked += len(replies)
        cut = dice.randrange(CUT) == 0
        for text in replies:
            await session.put(Utterance(text, voice="nobody" if dice.randrange(BAD) == 0 else "auto"))
        session.end()
        while True:
            try:
                chunk = await anext(session)
            except StopAsyncIteration:
                break
            except SaylineError:
                count.failed += 1
                continue
            count.audio_s += chunk.duration_s
            count.whole += chunk.last
            if cut:
                session.cancel()
                count.cut += 1
        if count.asked >= (len(count.mib) + 1) * count.wanted / SAMPLES:
            gc.collect()
            count.mib.append(resident_bytes() / 2**20)


async def soak(sentences: int, listeners: int, config: EngineConfig, workers: int = 2) -> tuple[Row, list[float]]:
    """The table's row, and the memory in MiB on the way."""
    count = Count(sentences)
    scheduler = Scheduler(lambda: Engine.load(config=config), SchedulerConfig(workers=workers, reload=False))
    threads = threading.active_count()
    began_s = time.monotonic()
    with closing(scheduler):
        await scheduler.ready()
        async with asyncio.TaskGroup() as tasks:
            for i in range(listeners):
                tasks.create_task(listener(scheduler, random.Random(i), count))
        await asyncio.sleep(0.5)  # steps of what was cut off end
        open_sessions = scheduler.sessions
    took_s = time.monotonic() - began_s
    gc.collect()
    row: Row = {
        "sentences": count.asked,
        "spoken": count.whole,
        "replies cut": count.cut,
        "failed": count.failed,
        "speech, h": round(count.audio_s / 3600, 2),
        "took, s": round(took_s),
        **growth(count.mib, sentences),
        "speeches left": sum(isinstance(thing, Speech) for thing in gc.get_objects()),
        "sessions left": open_sessions,
        "threads left": threading.active_count() - threads,
    }
    return row, count.mib


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--listeners", type=int, default=4)
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--compile", default="auto")
    add_plot_option(parser)
    options = parser.parse_args()
    config = EngineConfig(precision=options.precision, compile=options.compile)
    row, mib = asyncio.run(soak(options.sentences, options.listeners, config))
    report("soak_engine", [row], listeners=options.listeners, precision=options.precision, compile=options.compile)
    at = [options.sentences * (i + 1) / len(mib) for i in range(len(mib))]
    lines(options.plot, {"RSS, MiB": {"all": mib}}, at, "sentences")


if __name__ == "__main__":
    main()
