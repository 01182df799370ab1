"""Hot swap: how long after a voice's file was replaced it is seen, and how long until the next sentence is spoken with it.

    python -m benchmarks.hot_swap [--rounds 5] [--plot FILE]

A copy of the embedded voice is loaded by a scheduler that has nothing else to do. Each round puts another copy of its compiled
file in the place of the old one, by renaming. *Seen*: until the engine is being loaded anew. *In use*: until the scheduler has
the new engine, which was then checked and made to speak. Two cores.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.measure import Row, cores, median, report
from benchmarks.plots import add_plot_option, bars

cores(2)

from tts_engine.engine import Engine  # noqa: E402 (the cores come first)
from tts_engine.scheduler import Scheduler  # noqa: E402
from tts_engine.weights import EMBEDDED_VOICE  # noqa: E402

FILE = "compiled.int8.safetensors"
LIMIT_S = 60.0


class Voice:
    """A voice folder whose loads are noted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seen_s = 0.0
        self.seen = threading.Event()

    def load(self) -> Engine:
        self.seen_s = time.monotonic()
        self.seen.set()
        return Engine.load(self.folder)


def swap(voice: Voice, scheduler: Scheduler) -> tuple[float, float]:
    """Replaces the file; milliseconds until that is seen, and until it is in use."""
    old, new = scheduler.engine, voice.folder / "new"
    shutil.copy(voice.folder / FILE, new)
    voice.seen.clear()
    replaced_s = time.monotonic()
    new.rename(voice.folder / FILE)
    if not voice.seen.wait(LIMIT_S):
        raise TimeoutError(f"the new file was not seen within {LIMIT_S:g} s")
    while scheduler.engine is old:
        if time.monotonic() - replaced_s > LIMIT_S:
            raise TimeoutError(f"the new file was not in use within {LIMIT_S:g} s")
        time.sleep(0.001)
    return 1000 * (voice.seen_s - replaced_s), 1000 * (time.monotonic() - replaced_s)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    add_plot_option(parser)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(EMBEDDED_VOICE, folder, dirs_exist_ok=True)
        voice = Voice(Path(folder))
        scheduler = Scheduler(voice.load)
        try:
            asyncio.run(scheduler.ready())
            took = [swap(voice, scheduler) for _ in range(options.rounds)]
        finally:
            scheduler.close()
    times_ms = dict(zip(("seen", "in use"), zip(*took, strict=True), strict=True))
    rows: list[Row] = [
        {"until it is": name, "median ms": round(median(found), 1), "most ms": round(max(found), 1)}
        for name, found in times_ms.items()
    ]
    report("hot_swap", rows, rounds=options.rounds, threads=1)
    bars(options.plot, {"hot swap": {name: median(found) for name, found in times_ms.items()}}, "ms")


if __name__ == "__main__":
    main()
