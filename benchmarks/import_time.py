"""How long importing takes: the text path, the engine, the whole API; each in fresh processes, median.

python -m benchmarks.import_time [--runs 11]
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from benchmarks.measure import Row, median, one_core, report

one_core()

PARTS = {
    "text of an answer (tags to sentences)": "voice_agent.text.tags, voice_agent.text.speakable, voice_agent.text.grouping",
    "the whole text path (with plan and front end)": (
        "voice_agent.text.tagged_text, voice_agent.text.grouping, tts_engine.text.frontend"
    ),
    "the API": "voice_agent.api",
}
CODE = "import time; began = time.perf_counter(); import {modules}; print(time.perf_counter() - began)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=11)
    runs = parser.parse_args().runs
    found: dict[str, list[float]] = {name: [] for name in PARTS}
    for _ in range(runs):
        for name, modules in PARTS.items():
            done = subprocess.run(
                [sys.executable, "-c", CODE.format(modules=modules)], capture_output=True, text=True, check=True
            )
            found[name].append(float(done.stdout))
    rows: list[Row] = [
        {"import": name, "median s": round(median(times), 4), "least s": round(min(times), 4)} for name, times in found.items()
    ]
    report("import_time", rows, threads=1)


if __name__ == "__main__":
    main()
