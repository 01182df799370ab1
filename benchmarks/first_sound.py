"""First sound and real-time factor of the engine: warm, one core, from text (front end included).

    python -m benchmarks.first_sound [--rounds 5] [--plot FILE]

*First audible*: from the call with the text until the packet with the first sample above -50 dBFS is there.
"""

from __future__ import annotations

import argparse

from benchmarks.measure import Row, median, one_core, percentile, report
from benchmarks.plots import add_plot_option, bars

one_core()

from benchmarks.speech import speak  # noqa: E402
from tts_engine.engine import Engine  # noqa: E402

SETS = {
    "English, 10 words": [
        "Your package left the warehouse and arrives on Friday morning.",
        "Please speak after the tone and then press the key.",
        "We have moved your appointment to next Wednesday at nine.",
        "There are three bottles of orange juice in the fridge.",
        "I found four restaurants within walking distance of your hotel.",
        "The engineer will arrive between two and five this afternoon.",
        "Turn left at the church and go on for a mile.",
        "Thank you for waiting, a specialist will be with you.",
    ],
    "English, short": ["Yes, of course.", "One moment, please.", "Good morning!", "That is right."],
    "Chinese": [
        "您的包裹昨天晚上已经离开仓库，星期五之前就能送到。",
        "我们把您的预约改到了下星期三上午九点半。",
        "工程师会在下午两点到五点之间上门。",
        "感谢您的耐心等待，我已经为您转接专家。",
    ],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    add_plot_option(parser)
    options = parser.parse_args()
    engine = Engine.load()
    rows: list[Row] = []
    drawn: dict[str, dict[str, float]] = {}
    for name, texts in SETS.items():
        for text in texts:
            speak(engine, text)
        runs = [speak(engine, text) for _ in range(options.rounds) for text in texts]
        first_ms = [1000 * run.first_audible_s for run in runs]
        drawn[name] = {"median": median(first_ms), "P99": percentile(first_ms, 99)}
        rows.append(
            {
                "sentences": name,
                "first audible, median ms": round(median(first_ms), 2),
                "P99 ms": round(percentile(first_ms, 99), 2),
                "real-time factor": round(median([run.real_time_factor for run in runs]), 4),
            }
        )
    report("first_sound", rows, threads=1, model=engine.model.form)
    bars(options.plot, drawn, "first audible, ms")


if __name__ == "__main__":
    main()
