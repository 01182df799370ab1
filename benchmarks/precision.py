"""Speed of each arithmetic on one core: eager float32 and bfloat16 in torch, float32 and int8 in ONNX Runtime.

    python -m benchmarks.precision [--rounds 5] [--plot FILE]

All are loaded in one process and take turns on the same sentences, so that a change in the machine's speed meets all alike.
Quality beside it: benchmarks/quality.py.
"""

from __future__ import annotations

import argparse

from benchmarks.measure import Row, median, one_core, percentile, report
from benchmarks.plots import add_plot_option, bars

one_core()

from benchmarks.speech import Timing, speak  # noqa: E402
from tts_engine.engine import Engine, EngineConfig  # noqa: E402

FORMS = {
    "eager float32": EngineConfig(compile="none", precision="float32"),
    "eager bfloat16": EngineConfig(compile="none", precision="bfloat16"),
    "onnx float32": EngineConfig(compile="onnx", precision="float32"),
    "onnx int8": EngineConfig(compile="onnx", precision="int8"),
}
TEXTS = [
    "Your package left the warehouse and arrives on Friday morning.",
    "The engineer will arrive between two and five this afternoon.",
    "您的包裹昨天晚上已经离开仓库，星期五之前就能送到。",
    "We have moved your appointment to next Wednesday at nine, and you will get a message that confirms it within the hour.",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    add_plot_option(parser)
    options = parser.parse_args()
    engines = {name: Engine.load(config=config) for name, config in FORMS.items()}
    runs: dict[str, list[Timing]] = {name: [] for name in engines}
    for turn in range(options.rounds + 1):
        for text in TEXTS:
            for name, engine in engines.items():
                run = speak(engine, text)
                if turn:
                    runs[name].append(run)
    first_ms = {name: [1000 * run.first_audible_s for run in found] for name, found in runs.items()}
    factors = {name: median([run.real_time_factor for run in found]) for name, found in runs.items()}
    rows: list[Row] = [
        {
            "form": name,
            "first audible, median ms": round(median(first_ms[name]), 2),
            "P99 ms": round(percentile(first_ms[name], 99), 2),
            "real-time factor": round(factors[name], 4),
            "speed against eager float32": round(factors["eager float32"] / factors[name], 2),
        }
        for name in FORMS
    ]
    report("precision", rows, threads=1)
    drawn = {"first audible, ms": {name: median(times) for name, times in first_ms.items()}, "real-time factor": factors}
    bars(options.plot, drawn, "")


if __name__ == "__main__":
    main()
