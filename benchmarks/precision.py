"""Speed of each arithmetic on one core: eager float32 and bfloat16 in torch, float32 and int8 in ONNX Runtime.

    python -m benchmarks.precision [--rounds 5]

All are loaded in one process and take turns on the same sentences, so that a change in the machine's speed meets all alike.
Quality beside it: benchmarks/quality.py.
"""

from __future__ import annotations

import argparse
import time

from benchmarks.measure import Row, median, one_core, percentile, report

one_core()

import numpy as np  # noqa: E402

from tts_engine.engine import Engine, EngineConfig  # noqa: E402
from tts_engine.types import Utterance  # noqa: E402

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
AUDIBLE = 10 ** (-50 / 20)


def once(engine: Engine, text: str) -> tuple[float, float]:
    """Seconds until the first audible packet, and real-time factor."""
    started = time.perf_counter()
    audible = audio = 0.0
    for chunk in engine.speak(Utterance(text)):
        if not audible and len(chunk.samples) and np.abs(chunk.samples).max() > AUDIBLE:
            audible = time.perf_counter() - started
        audio += chunk.duration_s
    return audible, (time.perf_counter() - started) / audio


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    engines = {name: Engine.load(config=config) for name, config in FORMS.items()}
    runs: dict[str, list[tuple[float, float]]] = {name: [] for name in engines}
    for turn in range(rounds + 1):
        for text in TEXTS:
            for name, engine in engines.items():
                run = once(engine, text)
                if turn:
                    runs[name].append(run)
    reference = median([factor for _, factor in runs["eager float32"]])
    rows: list[Row] = [
        {
            "form": name,
            "first audible, median ms": round(1000 * median([first for first, _ in found]), 2),
            "P99 ms": round(1000 * percentile([first for first, _ in found], 99), 2),
            "real-time factor": round(median([factor for _, factor in found]), 4),
            "speed against eager float32": round(reference / median([factor for _, factor in found]), 2),
        }
        for name, found in runs.items()
    ]
    report("precision", rows, threads=1)


if __name__ == "__main__":
    main()
