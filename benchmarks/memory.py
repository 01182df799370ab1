"""Memory of the warm engine with one stream, and whether it stays flat over many sentences.

    python -m benchmarks.memory [--sentences 600] [--only NAME] [--plot FILE]

``--sentences 10000`` is the long form (minutes an engine). Sentences of all lengths in both languages go through a scheduler's
session, one listener, as in a server; each engine has a process of its own. *Warm* and *grown*: see ``speech.growth``.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import closing

from benchmarks.cold_start import CONFIGURATIONS
from benchmarks.measure import Row, one_core, report
from benchmarks.plots import add_plot_option, lines

one_core()

from benchmarks.speech import growth, sentences_of_all_lengths  # noqa: E402
from tts_engine.engine import Engine, EngineConfig  # noqa: E402
from tts_engine.resources import resident_bytes  # noqa: E402
from tts_engine.scheduler import Scheduler, SchedulerConfig  # noqa: E402
from tts_engine.types import Utterance  # noqa: E402

SAMPLES = 40


async def speak(count: int, config: EngineConfig) -> AsyncIterator[float]:
    """Speaks ``count`` sentences and gives the memory ``SAMPLES`` times on the way."""
    texts = sentences_of_all_lengths()
    scheduler = Scheduler(lambda: Engine.load(config=config), SchedulerConfig(workers=1, reload=False))
    with closing(scheduler):
        session = scheduler.open()
        for number in range(count):
            await session.put(Utterance(texts[number % len(texts)], index=number))
            async for chunk in session:
                if chunk.last:
                    break
            if (number + 1) % max(1, count // SAMPLES) == 0:
                gc.collect()
                yield resident_bytes() / 2**20
        session.cancel()


async def one(name: str, count: int) -> list[float]:
    return [mib async for mib in speak(count, EngineConfig(**CONFIGURATIONS[name]))]  # type: ignore[arg-type]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sentences", type=int, default=600)
    parser.add_argument("--only", choices=CONFIGURATIONS, help="one engine")
    parser.add_argument("--one", choices=CONFIGURATIONS, help=argparse.SUPPRESS)
    add_plot_option(parser)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(asyncio.run(one(options.one, options.sentences))))
        return
    curves: dict[str, list[float]] = {}
    rows: list[Row] = []
    for name in CONFIGURATIONS:
        if options.only not in (None, name):
            continue
        command = [sys.executable, "-m", "benchmarks.memory", "--one", name, "--sentences", str(options.sentences)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        curve = curves[name] = json.loads(done.stdout.splitlines()[-1])
        rows.append({"engine": name, **growth(curve, options.sentences)})
    report("memory", rows, threads=1, sentences=options.sentences)
    step = options.sentences / len(next(iter(curves.values())))
    at = [step * (index + 1) for index in range(len(next(iter(curves.values()))))]
    lines(options.plot, {"RSS, MiB": curves}, at, "sentences")


if __name__ == "__main__":
    main()
