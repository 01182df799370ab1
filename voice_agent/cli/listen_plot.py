"""Draws a replayed recording: levels over time, and the decisions as marks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from voice_agent.ears.decisions import Decision, Duck, Hold, Interrupt, Resume, SpeechDropped, TurnEnded
from voice_agent.errors import InputError, MissingExtraError

STEP_S = 0.02
"""Between two levels."""
_MARKS = {
    Duck: ("duck", "tab:olive"),
    Hold: ("hold", "tab:orange"),
    Resume: ("resume", "tab:green"),
    Interrupt: ("interrupt", "tab:red"),
    SpeechDropped: ("dropped", "tab:gray"),
    TurnEnded: ("turn ended", "black"),
}


@dataclass(frozen=True, slots=True)
class Curve:
    """What the picture shows: levels in dB, one every ``STEP_S``."""

    microphone_db: list[float]
    played_db: list[float]
    heard_db: list[float]


def draw(path: Path, curve: Curve, decisions: Sequence[Decision]) -> None:
    """Writes the picture; its format is that of the file's name. Raises MissingExtraError without matplotlib."""
    try:
        import matplotlib
    except ImportError as error:
        raise MissingExtraError('--plot needs the extra plot: pip install "sayline[plot]"') from error
    matplotlib.use("Agg")
    from matplotlib import pyplot

    times = [i * STEP_S for i in range(len(curve.microphone_db))]
    width = min(max(8.0, times[-1] / 4 if times else 0.0), 60.0)
    figure, axis = pyplot.subplots(figsize=(width, 4), layout="constrained")
    axis.plot(times, curve.played_db, color="tab:purple", linewidth=0.6, label="agent plays")
    axis.plot(times, curve.microphone_db, color="tab:cyan", linewidth=0.6, label="microphone")
    axis.plot(times, curve.heard_db, color="tab:blue", linewidth=0.9, label="without the echo")
    shown = set()
    for decision in decisions:
        if isinstance(decision, TurnEnded):
            axis.axvspan(decision.began_s, decision.ended_s, color="tab:blue", alpha=0.15, linewidth=0)
        if type(decision) in _MARKS:
            name, color = _MARKS[type(decision)]
            axis.axvline(decision.at_s, color=color, linewidth=1.2, label=None if name in shown else name)
            shown.add(name)
    axis.set(xlabel="seconds", ylabel="dB of full scale", ylim=(-90, 3))
    axis.legend(fontsize="small", loc="lower right", ncols=3)
    try:
        figure.savefig(path)
    except (OSError, ValueError) as error:
        raise InputError(f"the picture cannot be written to {path}: {error}") from error
    finally:
        pyplot.close(figure)
