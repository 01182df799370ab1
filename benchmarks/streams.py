"""How many live streams two cores carry: listeners who play in real time, rising in number until one hears a gap.

    python -m benchmarks.streams [--streams 8 16 32 48 64] [--seconds 20] [--thought 1] [--workers 2] [--plot streams.png]

Each listener is told replies of one to three sentences, one after another with short pauses for thought, and takes audio no
faster than it sounds. *First sound*: from the text until the first packet with a sample above -50 dBFS is in the
listener's hands. *Underrun*: a packet comes later than the one before it has sounded; playing starts with the first
packet, nothing is held back. *Sounding at once*, *cores busy*: in the ``--seconds`` behind the warm-up.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from benchmarks.measure import Row, cores, median, percentile, report

cores(2)

import numpy as np  # noqa: E402

from tts_engine.engine import Engine, EngineConfig  # noqa: E402
from tts_engine.resources import resident_bytes  # noqa: E402
from tts_engine.scheduler import Scheduler, SchedulerConfig  # noqa: E402
from tts_engine.types import Utterance  # noqa: E402

SENTENCES = [
    "Your package left the warehouse and arrives on Friday morning.",
    "We have moved your appointment to next Wednesday at nine.",
    "I found four restaurants within walking distance of your hotel.",
    "The engineer will arrive between two and five this afternoon, and she will call you before she leaves.",
    "Thank you for waiting, a specialist will be with you.",
    "您的包裹昨天晚上已经离开仓库，星期五之前就能送到。",
    "工程师会在下午两点到五点之间上门。",
    "That is right.",
]
AUDIBLE = 10 ** (-50 / 20)
IN_HAND_S = 0.5
"""A listener takes the next packet when less than this is left to play."""
THOUGHT_S = (0.1, 1.0)
WARM_UP_S = 3.0
"""Replies that begin earlier are not counted: all listeners come at once then."""


@dataclass
class Window:
    """The time of a run that counts, on ``time.monotonic``: ``seconds`` behind the warm-up."""

    seconds: float
    begins_s: float = field(default_factory=lambda: time.monotonic() + WARM_UP_S)
    sounded_s: float = 0.0
    busy_s: float = 0.0

    def sounds(self, start_s: float, seconds: float) -> None:
        """A packet sounds from ``start_s`` on for so long."""
        end_s = min(start_s + seconds, self.begins_s + self.seconds)
        self.sounded_s += max(0.0, end_s - max(start_s, self.begins_s))

    async def watch(self, used_s: Callable[[], float]) -> None:
        """Notes how much processor time is used meanwhile; ``used_s`` tells how much was used so far."""
        await asyncio.sleep(max(0.0, self.begins_s - time.monotonic()))
        before_s = used_s()
        await asyncio.sleep(self.seconds)
        self.busy_s = used_s() - before_s

    @property
    def sounding(self) -> float:
        """How many sounded at once, on average."""
        return self.sounded_s / self.seconds

    @property
    def cores(self) -> float:
        return self.busy_s / self.seconds


@dataclass
class Heard:
    """What all listeners of a run noticed."""

    window: Window

    first_ms: list[float] = field(default_factory=list)
    replies: int = 0
    underruns: int = 0
    gap_ms: float = 0.0


async def reply(scheduler: Scheduler, dice: random.Random, heard: Heard, counts: bool) -> None:
    """One reply, played in real time."""
    session = scheduler.open()
    asked_s = time.monotonic()
    for text in dice.choices(SENTENCES, k=dice.randint(1, 3)):
        await session.put(Utterance(text))
    session.end()
    played_s = 0.0  # when everything in hand has sounded
    audible = False
    async for chunk in session:
        now_s = time.monotonic()
        if not audible and len(chunk.samples) and np.abs(chunk.samples).max() > AUDIBLE:
            audible = True
            if counts:
                heard.first_ms.append(1000 * (now_s - asked_s))
        late_s = now_s - played_s
        if played_s and late_s > 0 and counts:
            heard.underruns += 1
            heard.gap_ms = max(heard.gap_ms, 1000 * late_s)
        heard.window.sounds(max(played_s, now_s), chunk.duration_s)
        played_s = max(played_s, now_s) + chunk.duration_s
        await asyncio.sleep(max(0.0, played_s - time.monotonic() - IN_HAND_S))
    heard.replies += 1
    await asyncio.sleep(max(0.0, played_s - time.monotonic()))


async def listener(scheduler: Scheduler, dice: random.Random, heard: Heard, seconds: float, thought: float) -> None:
    started_s = time.monotonic()
    await asyncio.sleep(dice.random() * WARM_UP_S)
    while (now_s := time.monotonic() - started_s) < seconds:
        await reply(scheduler, dice, heard, counts=now_s >= WARM_UP_S)
        await asyncio.sleep(thought * dice.uniform(*THOUGHT_S))


async def run(scheduler: Scheduler, streams: int, seconds: float, thought: float) -> Row:
    """``streams`` listeners for about ``seconds``."""
    heard = Heard(Window(seconds))
    async with asyncio.TaskGroup() as listeners:
        listeners.create_task(heard.window.watch(time.process_time))
        for i in range(streams):
            listeners.create_task(listener(scheduler, random.Random(i), heard, WARM_UP_S + seconds, thought))
    return {
        "streams": streams,
        "sounding at once": round(heard.window.sounding, 1),
        "replies": heard.replies,
        "first sound, median ms": round(median(heard.first_ms), 1),
        "P99 ms": round(percentile(heard.first_ms, 99), 1),
        "underruns": heard.underruns,
        "longest gap, ms": round(heard.gap_ms, 1),
        "cores busy": round(heard.window.cores, 2),
        "memory, MiB": round(resident_bytes() / 2**20),
    }


async def run_all(options: argparse.Namespace) -> list[Row]:
    engine = EngineConfig(precision=options.precision, compile=options.compile)
    scheduler = Scheduler(lambda: Engine.load(config=engine), SchedulerConfig(workers=options.workers, step_ms=options.step_ms))
    rows = []
    try:
        await scheduler.ready()
        await reply(scheduler, random.Random(0), Heard(Window(1.0)), counts=False)  # dictionaries and caches
        for streams in options.streams:
            rows.append(await run(scheduler, streams, options.seconds, options.thought))
            print(rows[-1], flush=True)
            if rows[-1]["underruns"] > options.stop_after:
                break
    finally:
        scheduler.close()
    return rows


def plot(rows: list[Row], path: str) -> None:
    """First sound and underruns over the number of streams."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, left = plt.subplots(figsize=(7, 4))
    streams = [row["streams"] for row in rows]
    for column in ("first sound, median ms", "P99 ms"):
        left.plot(streams, [row[column] for row in rows], marker="o", label=column)
    left.set(xlabel="live streams", ylabel="ms", ylim=(0, None))
    left.axhline(55, linestyle=":", color="grey")
    right = left.twinx()
    right.bar(streams, [row["underruns"] for row in rows], width=1.5, color="tab:red", alpha=0.4, label="underruns")
    right.set(ylabel="underruns", ylim=(0, max(10, *(row["underruns"] for row in rows))))
    figure.legend(loc="upper left", bbox_to_anchor=(0.12, 0.88))
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, nargs="+", default=[8, 16, 32, 48, 64, 80])
    parser.add_argument("--seconds", type=float, default=20.0, help="for each number of streams")
    parser.add_argument("--thought", type=float, default=1.0, help="factor of the pauses for thought; 0: all sound always")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--step-ms", type=float, default=SchedulerConfig().step_ms)
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--compile", default="auto")
    parser.add_argument("--stop-after", type=int, default=50, help="underruns that end the rise")
    parser.add_argument("--plot", help="a file for the plot")
    options = parser.parse_args()
    rows = asyncio.run(run_all(options))
    if options.plot:
        plot(rows, options.plot)
    report(
        "streams",
        rows,
        workers=options.workers,
        threads_a_worker=1,
        step_ms=options.step_ms,
        precision=options.precision,
        compile=options.compile,
    )


if __name__ == "__main__":
    main()
