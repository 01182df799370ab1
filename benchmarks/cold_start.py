"""Cold start: from the start of a process to the first audible sample, loading the weights, and memory.

    python -m benchmarks.cold_start [--rounds 5] [--only NAME] [--plot FILE]

Each round starts a new process for each configuration in turn, on one core with one thread. The files are in the page cache
(the first round, which fills it, is not counted). *Start*: until the program's first line runs. *Import*: the engine's modules
and what computes below them. *Load*: checking and mapping the weights, making the model. *First audible*: from the start of the
process until the packet with the first sample above -50 dBFS is there. *Weights*: loading a second time, which leaves out what
the libraries do only once.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import defaultdict

from benchmarks.measure import Row, median, one_core, report
from benchmarks.plots import add_plot_option, bars

one_core()

CONFIGURATIONS = {
    "eager float32": {"compile": "none", "precision": "float32"},
    "ONNX Runtime float32": {"compile": "onnx", "precision": "float32"},
    "ONNX Runtime int8": {"compile": "onnx", "precision": "int8"},
}
TEXT = "Your package left the warehouse and arrives on Friday morning."
PROGRAM = """
import time
marks = {"start": time.time()}
import json, sys
options = json.loads(sys.argv[1])
from tts_engine.engine import Engine, EngineConfig
from tts_engine.types import Utterance
import importlib
importlib.import_module("tts_engine.models.eager" if options["compile"] == "none" else "onnxruntime")
marks["import"] = time.time()
engine = Engine.load(config=EngineConfig(**options))
marks["load"] = time.time()
for chunk in engine.speak(Utterance(sys.argv[2])):
    if len(chunk.samples) and abs(chunk.samples).max() > 10 ** (-50 / 20):
        break
marks["audible"] = time.time()
memory = dict(line.split(":") for line in open("/proc/self/status"))
memory = {name: int(memory[name].split()[0]) / 1024 for name in ("VmRSS", "RssFile")}
began = time.time()
Engine.load(config=EngineConfig(**options))
marks["again"] = time.time() - began
print(json.dumps({"marks": marks, "memory": memory, "torch": "torch" in sys.modules}))
"""
STAGES = ("start", "import", "load", "audible")


def start(options: dict[str, str]) -> dict[str, float]:
    """Milliseconds of each stage and MiB of one cold start."""
    started_s = time.time()
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(options), TEXT], check=True, capture_output=True, text=True
    )
    told = json.loads(done.stdout.splitlines()[-1])
    times_s = [started_s, *(told["marks"][stage] for stage in STAGES)]
    stages = {f"{stage} ms": 1000 * (b - a) for stage, a, b in zip(STAGES, times_s, times_s[1:], strict=False)}
    return {
        **stages,
        "first audible ms": 1000 * (times_s[-1] - started_s),
        "weights ms": 1000 * told["marks"]["again"],
        "RSS MiB": told["memory"]["VmRSS"],
        "of it files MiB": told["memory"]["RssFile"],
        "torch imported": told["torch"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", choices=CONFIGURATIONS, help="one configuration")
    add_plot_option(parser)
    options = parser.parse_args()
    chosen = {name: given for name, given in CONFIGURATIONS.items() if options.only in (None, name)}
    measured: dict[str, list[dict[str, float]]] = defaultdict(list)
    for turn in range(options.rounds + 1):
        for name, given in chosen.items():
            figures = start(given)
            if turn:
                measured[name].append(figures)
    rows: list[Row] = [
        {"engine": name, **{figure: round(median([run[figure] for run in runs]), 1) for figure in runs[0]}}
        for name, runs in measured.items()
    ]
    report("cold_start", rows, threads=1, rounds=options.rounds)
    figures = ("first audible ms", "weights ms", "RSS MiB")
    bars(options.plot, {figure: {str(row["engine"]): float(str(row[figure])) for row in rows} for figure in figures}, "")


if __name__ == "__main__":
    main()
