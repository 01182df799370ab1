"""How the ears decide: interruptions, false stops, and ends of turns, over recordings that are made here.

    python -m benchmarks.ears [--cast evaluation] [--count 36] [--turns 384] [--minutes 10] [--snr 20 10 5 0] [--plot ears.png]

Users are spoken by espeak-ng and flite, the agent by our engine; noise is pink, babble, typing or music at the given ratios
of the user's level to the noise's. The agent's voice comes back through a random room: 20 to 120 ms late, 6 to 30 dB
quieter. ``ours`` has an imitated recogniser that tells the words 0.3 s after they are asked for, ``ours, no words`` none.
Pipecat's and LiveKit's defaults are plain thresholds over the same detector and echo guard (benchmarks/ears_policies.py).
Each row is printed when it is measured, the tables at the end.

*Duck*, *silence* (held or interrupted) and *confirmed* are counted from the user's first sound. *False stop*: something
that is no interruption and was not resumed. *Missed*: an interruption that has not been confirmed 1 s after its end.
*Cut off*: a turn that ended before the user's last sound. Times and sound ends are those of the clean clip.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence

from benchmarks.ears_casts import EVALUATION, TUNING, Cast
from benchmarks.ears_policies import LIVEKIT, PIPECAT, ears_with
from benchmarks.ears_scenes import Outcome, Said, Scene, alone, overlaps, play, turns
from benchmarks.ears_sounds import NOISES, RATE
from benchmarks.measure import Row, median, report
from benchmarks.plots import add_plot_option, bars
from voice_agent.ears import BargeInConfig, Ears, EarsConfig, SileroVad, Vad
from voice_agent.ears.decisions import Duck, Hold, Interrupt, Resume, TurnEnded

SILERO = "ours, Silero"  # with the package silero-vad; only if asked for
CASTS = {"tuning": TUNING, "evaluation": EVALUATION}
LATE_S = 1.0
EARLY_S = 0.05  # a decision may fall so much before the start that the level of the clip shows


def ours(vad: Vad | None = None) -> Ears:
    return Ears(EarsConfig(barge_in=BargeInConfig(words_s=0.6)), vad=vad)


SYSTEMS: dict[str, tuple[Callable[[], Ears], bool]] = {
    "ours": (ours, True),
    "ours, no words": (Ears, False),
    "Pipecat defaults": (lambda: ears_with(PIPECAT), True),
    "LiveKit defaults": (lambda: ears_with(LIVEKIT), True),
    SILERO: (lambda: ours(SileroVad()), True),
}


def outcomes(scenes: Iterable[Scene], system: str) -> list[Outcome]:
    make, recogniser = SYSTEMS[system]
    return [play(scene, make(), recogniser) for scene in scenes]


def reaction(outcome: Outcome, *kinds: type) -> float | None:
    """Seconds from the user's first sound to the first of these decisions."""
    said = outcome.scene.said[0]
    times = [t for kind in kinds if (t := outcome.first(kind, said.start_s - EARLY_S)) is not None]
    return min(times) - said.start_s if times else None


def interruptions(played: Sequence[Outcome]) -> Row:
    """How fast, how surely, and how much of it was kept."""
    ducked = [t for o in played if (t := reaction(o, Duck, Hold, Interrupt)) is not None]
    silent = [t for o in played if (t := reaction(o, Hold, Interrupt)) is not None]
    confirmed = [t for o in played if (t := reaction(o, Interrupt)) is not None and t <= _length(o) + LATE_S]
    kept = [kept for o in played if (kept := _first_syllable(o)) is not None]
    return {
        "n": len(played),
        "duck ms": 1000 * median(ducked or [0.0]),
        "silence ms": 1000 * median(silent or [0.0]),
        "confirmed ms": 1000 * median(confirmed or [0.0]),
        "confirmed 90 % ms": 1000 * sorted(confirmed or [0.0])[int(0.9 * (len(confirmed) - 1))],
        "missed %": 100 * (1 - len(confirmed) / len(played)),
        "first syllable %": 100 * sum(kept) / len(kept) if kept else 0.0,
    }


def false_stops(played: Sequence[Outcome]) -> Row:
    """What became of sounds that are no interruption."""
    stopped = sum(bool(o.all(Interrupt)) for o in played)
    held = sum(bool(o.all(Hold)) for o in played)
    back = [o for o in played if o.all(Hold) and not o.all(Interrupt)]
    away = [r - h for o in back if (h := o.first(Hold)) is not None and (r := o.first(Resume, h)) is not None]
    return {
        "false stop %": 100 * stopped / len(played),
        "held %": 100 * held / len(played),
        "resumed after ms": 1000 * median(away or [0.0]),
    }


def per_minute(played: Sequence[Outcome]) -> Row:
    minutes = _minutes(played)
    return {
        "minutes": minutes,
        "ducks/min": sum(len(o.all(Duck)) for o in played) / minutes,
        "holds/min": sum(len(o.all(Hold)) for o in played) / minutes,
        "interruptions/min": sum(len(o.all(Interrupt)) for o in played) / minutes,
    }


def ends(played: Sequence[Outcome]) -> Row:
    """Delays of the ends of turns, how many came too early or never, and how many turns were not the user's."""
    delays, cut, never, others = [], 0, 0, 0
    for outcome in played:
        said = outcome.scene.said[0]
        ended = [d.at_s for d in outcome.all(TurnEnded) if d.at_s > said.start_s]
        cut += any(t < said.end_s for t in ended)
        after = [t - said.end_s for t in ended if t >= said.end_s]
        never += not ended
        others += sum(isinstance(d, TurnEnded) and not _overlap(d, said) for d in outcome.decisions)
        delays += after[:1]
    return {
        "n": len(played),
        "end of turn ms": 1000 * float(sum(delays)) / max(len(delays), 1),
        "cut off %": 100 * cut / len(played),
        "never ended %": 100 * never / len(played),
        "turns of noise/min": others / _minutes(played),
    }


def _first_syllable(outcome: Outcome) -> bool | None:
    """Whether the samples of the user's turn hold its first syllable; None where there was no turn."""
    said = outcome.scene.said[0]
    turns = [d for d in outcome.decisions if isinstance(d, TurnEnded) and d.at_s > said.start_s]
    return turns[0].began_s - EarsConfig().pre_roll_s <= said.start_s if turns else None


def _overlap(turn: TurnEnded, said: Said) -> bool:
    return turn.began_s < said.end_s and turn.ended_s > said.start_s


def _minutes(played: Sequence[Outcome]) -> float:
    return sum(len(o.scene.user) for o in played) / RATE / 60


def _length(outcome: Outcome) -> float:
    said = outcome.scene.said[0]
    return said.end_s - said.start_s


def conditions(snrs: Sequence[float]) -> list[tuple[str | None, float]]:
    return [(None, 0.0), *((kind, snr) for kind in NOISES for snr in snrs)]


FALSE_STOPS_AT = ((None, 0.0), ("pink", 10.0))
"""The noises with which signs of listening and coughs are tried."""
Counts = dict[str, float]
"""``quiet`` and ``noise``: scenes of each kind, ``turns``: ends of turns without noise, ``minutes``: of the agent alone."""


def measure(cast: Cast, counts: Counts, snrs: Sequence[float], systems: Sequence[str]) -> Iterator[tuple[str, Row]]:
    """The rows of the tables, each with its table's name, as they are measured."""
    for noise, snr in conditions(snrs):
        count = round(counts["noise" if noise else "quiet"])
        seconds, scenes = (counts["minutes"] * 1.5, 2) if noise else (counts["minutes"] * 6, 10)
        for system in systems:
            label: Row = {"system": system, "noise": noise or "quiet", "SNR dB": snr if noise else "-"}
            spoken_over = outcomes(overlaps(cast, "interruption", noise, snr, count), system)
            yield "interruptions", label | interruptions(spoken_over)
            nobody = outcomes(alone(cast, noise, snr, seconds, scenes, echo=True), system)
            yield "nobody speaks", label | per_minute(nobody)
            for marks in ("even",) if noise else ("even", "whisper"):
                said = turns(cast, noise, snr, count if noise else round(counts["turns"]), marks)
                yield "turns", label | {"marks": marks} | ends(outcomes(said, system))
            for kind in ("backchannel", "cough") if (noise, snr) in FALSE_STOPS_AT else ():
                played = outcomes(overlaps(cast, kind, noise, snr, count), system)
                yield "false stops", label | {"sound": kind, "n": count} | false_stops(played)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cast", choices=CASTS, default="evaluation", help="whose recordings")
    parser.add_argument("--count", type=int, default=36, help="scenes of each kind without noise")
    parser.add_argument("--turns", type=int, default=384, help="ends of turns without noise")
    parser.add_argument("--noise-count", type=int, default=12, help="scenes of each kind with a noise")
    parser.add_argument("--minutes", type=float, default=10.0, help="of the agent alone, without noise; a twentieth with each")
    parser.add_argument("--snr", type=float, nargs="*", default=[20.0, 10.0, 5.0, 0.0])
    parser.add_argument("--systems", nargs="*", choices=SYSTEMS, default=[name for name in SYSTEMS if name != SILERO])
    add_plot_option(parser)
    options = parser.parse_args()
    started_s = time.process_time()
    counts = {"quiet": options.count, "noise": options.noise_count, "turns": options.turns, "minutes": options.minutes}
    tables: dict[str, list[Row]] = {}
    for table, row in measure(CASTS[options.cast], counts, options.snr, options.systems):
        print(table, json.dumps(row), flush=True)
        tables.setdefault(table, []).append(row)
    for name, rows in tables.items():
        print(f"\n{name}\n")
        report(f"ears: {name}", rows, cast=options.cast)
    quiet = {name: [row for row in rows if row["noise"] == "quiet"] for name, rows in tables.items()}
    groups = {"silence ms": "interruptions", "confirmed ms": "interruptions", "end of turn ms": "turns"}
    panels = {what: {str(row["system"]): float(str(row[what])) for row in quiet[table]} for what, table in groups.items()}
    bars(options.plot, panels, "ms, without noise")
    print(f"\n{time.process_time() - started_s:.0f} s of processor time")


if __name__ == "__main__":
    main()
