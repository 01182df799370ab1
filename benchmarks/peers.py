"""First audible sample and real-time factor against other speech engines, each in a process of its own, on one core.

    benchmarks/peers/setup.sh DIR                         once: an environment for each peer, outside of this repository
    python -m benchmarks.peers DIR [--rounds 7] [--plot FILE]

All engines stay loaded. They take turns, sentence by sentence and round by round, on the same core with one thread, so
that whatever else the machine does meets all of them alike. Of the figures of all rounds the medians count.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path

from benchmarks.measure import Row, median, report
from benchmarks.plots import add_plot_option, bars

RUNNERS = Path(__file__).parent / "peers"
SENTENCES = {
    "2 s": "Your package left the warehouse early this morning.",
    "10 s": "Your package left the warehouse early this morning, and because the road along the coast is still closed "
    "after the storm, the driver has to take the longer way around the lake, so it should be with you on Friday.",
}
OURS = "sayline"
PEERS = ("piper", "streaming_vits", "kokoro")


class Engine:
    """A runner: started, loaded, and asked for one sentence at a time (see ``benchmarks/peers/protocol.py``)."""

    def __init__(self, name: str, folder: Path) -> None:
        python = Path(sys.executable) if name == OURS else folder / name / "bin" / "python"
        root = str(RUNNERS.parent.parent)
        self.name = name
        self._process = subprocess.Popen(
            [python, RUNNERS / f"run_{name}.py", folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": root} if name == OURS else None,
        )
        self.about = str(self._read()["about"])

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.communicate()

    def measure(self, text: str) -> dict[str, float]:
        """``first_audible_s``, ``total_s`` and ``audio_s`` of one sentence."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"text": text}) + "\n")
        self._process.stdin.flush()
        return {name: float(str(value)) for name, value in self._read().items()}

    def _read(self) -> dict[str, object]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} has failed: run {RUNNERS / f'run_{self.name}.py'} by hand to see why")
        answer: dict[str, object] = json.loads(line)
        return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where setup.sh has made the environments")
    parser.add_argument("--rounds", type=int, default=7)
    add_plot_option(parser)
    options = parser.parse_args()
    there = [name for name in PEERS if (options.folder / name / "bin" / "python").exists()]
    for name in sorted(set(PEERS) - set(there)):
        print(f"left out, not set up: {name}", file=sys.stderr)
    measured: dict[tuple[str, str], list[dict[str, float]]] = defaultdict(list)
    with ExitStack() as stack:
        engines = [stack.enter_context(Engine(name, options.folder.absolute())) for name in (OURS, *there)]
        about = {engine.name: engine.about for engine in engines}
        for turn in range(options.rounds):
            for length, text in SENTENCES.items():
                for engine in engines if turn % 2 else engines[::-1]:
                    measured[engine.name, length].append(engine.measure(text))
    rows, firsts = _rows(about, measured)
    report("peers", rows, threads=1, engines=about, rounds=options.rounds)
    bars(options.plot, firsts, "first audible sample, ms")


def _rows(
    about: dict[str, str], measured: dict[tuple[str, str], list[dict[str, float]]]
) -> tuple[list[Row], dict[str, dict[str, float]]]:
    rows: list[Row] = []
    firsts: dict[str, dict[str, float]] = defaultdict(dict)
    for length in SENTENCES:
        ours = measured[OURS, length]
        for name in about:
            runs = measured[name, length]
            first_ms, factor = _first_ms(runs), _factor(runs)
            firsts[f"a sentence of {length}"][name] = first_ms
            rows.append(
                {
                    "sentence": length,
                    "engine": about[name].partition(",")[0],
                    "speech s": round(median([run["audio_s"] for run in runs]), 2),
                    "first audible ms": round(first_ms, 1),
                    "ratio": round(first_ms / _first_ms(ours), 1),
                    "real-time factor": round(factor, 4),
                    "ratio ": round(factor / _factor(ours), 1),
                }
            )
    return rows, firsts


def _first_ms(runs: list[dict[str, float]]) -> float:
    return 1000 * median([run["first_audible_s"] for run in runs])


def _factor(runs: list[dict[str, float]]) -> float:
    return median([run["total_s"] / run["audio_s"] for run in runs])


if __name__ == "__main__":
    main()
