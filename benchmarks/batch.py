"""Time and memory of a step against the number of rows in it: what bounds the scheduler's batches.

    python benchmarks/batch.py [--frames 10 32] [--rows 1 2 4 8 16 32] [--precision auto] [--compile auto]

One core. Each size runs in a fresh process, so that *memory* is what that size adds to a warm engine at its peak: rows
and the working memory of a step.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time

from benchmarks.measure import median, one_core, report

one_core()

from tts_engine.engine import Engine, EngineConfig  # noqa: E402
from tts_engine.types import Utterance  # noqa: E402

TEXT = " ".join(["The engineer will arrive between two and five this afternoon, and she will bring the parts."] * 6)
STEPS = 6


def peak_kib() -> int:
    """The most memory that this process has held since :func:`forget_peak`."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))


def forget_peak() -> None:
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")


def measure(rows: int, frames: int, config: EngineConfig) -> tuple[float, float]:
    """Median milliseconds of a step of ``rows`` x ``frames``, and the MiB that it adds."""
    engine = Engine.load(config=config)
    warm = engine.begin(Utterance(TEXT))
    for _ in range(3):
        engine.step_together([warm], frames)
    forget_peak()
    before = peak_kib()
    speeches = [engine.begin(Utterance(TEXT)) for _ in range(rows)]
    took_ms = []
    for _ in range(STEPS):
        started = time.perf_counter()
        engine.step_together(speeches, frames)
        took_ms.append(1000 * (time.perf_counter() - started))
    return median(took_ms[1:]), (peak_kib() - before) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, nargs="+", default=[10, 32])
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32])
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--compile", default="auto")
    parser.add_argument("--one", nargs=2, type=int, metavar=("ROWS", "FRAMES"), help="measure one size, print JSON")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*options.one, EngineConfig(precision=options.precision, compile=options.compile))))
        return
    table = []
    for frames in options.frames:
        for rows in options.rows:
            sizes = ["--one", str(rows), str(frames), "--precision", options.precision, "--compile", options.compile]
            done = subprocess.run(
                [sys.executable, "-m", "benchmarks.batch", *sizes], check=True, capture_output=True, text=True
            )
            step_ms, added_mib = json.loads(done.stdout.splitlines()[-1])
            table.append(
                {
                    "frames": frames,
                    "rows": rows,
                    "step, ms": round(step_ms, 2),
                    "µs a row and frame": round(1000 * step_ms / rows / frames, 1),
                    "real-time factor": round(step_ms / rows / frames / 25, 5),
                    "memory, MiB": round(added_mib, 1),
                    "MiB a row": round(added_mib / rows, 2),
                }
            )
    report("batch", table, threads=1, precision=options.precision, compile=options.compile)


if __name__ == "__main__":
    main()
