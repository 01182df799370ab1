"""Sentences in one batch against one after another, and what a step takes by the number of rows in it.

    python -m benchmarks.batch [--frames 10 32] [--rows 1 2 4 8 16 32] [--precision auto] [--compile auto] [--plot FILE]

One core. First ``SENTENCES`` sentences from text to their last sample, in steps as the scheduler makes them and one after
another, taking turns. Then steps: each size runs in a fresh process, so that *memory* is what that size adds to a warm engine
at its peak: rows and the working memory of a step.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence

from benchmarks.first_sound import SETS
from benchmarks.measure import Row, median, one_core, report
from benchmarks.plots import add_plot_option, lines

one_core()

from tts_engine.batching import MOST_ROW_FRAMES, Want, choose  # noqa: E402
from tts_engine.engine import FLUSH_FRAMES, Engine, EngineConfig  # noqa: E402
from tts_engine.types import Utterance  # noqa: E402

TEXT = " ".join(["The engineer will arrive between two and five this afternoon, and she will bring the parts."] * 6)
STEPS = 6
SENTENCES = [text for texts in SETS.values() for text in texts]
ROUNDS = 3


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


def speak_together(engine: Engine, texts: Sequence[str]) -> tuple[float, float]:
    """Seconds that it takes to speak all texts in one batch, and seconds of audio."""
    started = time.perf_counter()
    speeches = [engine.begin(Utterance(text)) for text in texts]
    audio_s = 0.0
    while going := [speech for speech in speeches if not speech.done]:
        wants = [Want(engine.wanted_frames(s), s.frames + FLUSH_FRAMES - s.frame, urgent=False) for s in going]
        chosen, count = choose(wants, MOST_ROW_FRAMES)
        audio_s += sum(chunk.duration_s for chunk in engine.step_together([going[i] for i in chosen], count))
    return time.perf_counter() - started, audio_s


def compare(config: EngineConfig) -> list[Row]:
    """The sentences in batches of all of them and of one."""
    engine = Engine.load(config=config)
    factors: dict[int, list[float]] = {1: [], len(SENTENCES): []}
    for turn in range(ROUNDS + 1):
        for rows, found in factors.items():
            batches = [speak_together(engine, SENTENCES[i : i + rows]) for i in range(0, len(SENTENCES), rows)]
            if turn:
                found.append(sum(took for took, _ in batches) / sum(audio for _, audio in batches))
    return [{"sentences in a batch": rows, "real-time factor": round(median(found), 5)} for rows, found in factors.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, nargs="+", default=[10, 32])
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32])
    parser.add_argument("--precision", default="auto")
    parser.add_argument("--compile", default="auto")
    add_plot_option(parser)
    parser.add_argument("--one", nargs=2, type=int, metavar=("ROWS", "FRAMES"), help="measure one size, print JSON")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*options.one, EngineConfig(precision=options.precision, compile=options.compile))))
        return
    report("batch_of_sentences", compare(EngineConfig(precision=options.precision, compile=options.compile)), threads=1)
    table: list[Row] = []
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
    panels = {
        figure: {
            f"{frames} frames": [float(str(row[figure])) for row in table if row["frames"] == frames]
            for frames in options.frames
        }
        for figure in ("µs a row and frame", "memory, MiB")
    }
    lines(options.plot, panels, options.rows, "rows")


if __name__ == "__main__":
    main()
