"""Memory of the text path on a long stream: tags, cleaner, splitter, grouper and planner, fed like an LLM writes.

    python -m benchmarks.soak_text [--megabytes 100] [--seed 1]

The stream is made of markup-rich fragments in both languages and of ordinary sentences, cut at random; the default length takes
minutes, `--megabytes 5` some seconds. Memory is what the process holds (RSS) after each tenth; flat means constant memory.
"""

from __future__ import annotations

import argparse
import random
import time

from benchmarks.measure import Row, one_core, report

one_core()

from tts_engine.resources import resident_bytes  # noqa: E402
from voice_agent.text.grouping import Grouper  # noqa: E402
from voice_agent.text.prosody import ProsodyPlanner  # noqa: E402
from voice_agent.text.speakable import Cleaner  # noqa: E402
from voice_agent.text.tags import TagReader  # noqa: E402

FRAGMENTS = [
    "The order **4711** has shipped, and it should arrive on Friday. ",
    "It costs $3.50, i.e. less than before! ",
    "您的订单已经发货，预计3天后送到。",
    "一共是1,000.00元，可以吗？",
    "- one thing\n- and another\n\n",
    "```python\nprint('never spoken')\n```\n",
    "See [the page](https://example.com/a_b?c=1.5) for more. ",
    "[speed_0.9]Take your time.[break_300] ",
    "<think>nobody hears this</think>",
    "Dr. Smith met Mrs. Lee at 9:30 a.m. They talked. ",
    "| a | b |\n|---|---|\n| 1 | 2 |\n\n",
    "Great job 🎉! ",
    "# Heading\n\n",
    "word " * 40 + "\n\n",
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    reader, cleaner, grouper, planner = TagReader(), Cleaner(), Grouper(), ProsodyPlanner()
    total = int(options.megabytes * 1e6)
    characters = sentences = 0
    rows: list[Row] = []
    started = time.perf_counter()
    while characters < total:
        text = rng.choice(FRAGMENTS)
        cut = rng.choice((3, 4, 5, 8, 200))
        for at in range(0, len(text), cut):
            for item in reader.feed(text[at : at + cut]):
                for cleaned in cleaner.feed(item):
                    for sentence in grouper.feed(cleaned, characters / 100, 0.0):
                        planner.plan(sentence)
                        sentences += 1
        reader.take_warnings()
        cleaner.take_skipped()
        characters += len(text)
        if characters >= (len(rows) + 1) * total / 10:
            rows.append(
                {
                    "million characters": round(characters / 1e6, 2),
                    "sentences": sentences,
                    "RSS, MB": round(resident_bytes() / 1e6, 2),
                    "seconds": round(time.perf_counter() - started, 1),
                }
            )
    report("soak_text", rows, threads=1, seed=options.seed)


if __name__ == "__main__":
    main()
