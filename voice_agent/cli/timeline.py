"""Shows the timeline of a turn as a table on the standard error."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from voice_agent.metrics import STAGES
from voice_agent.report import Report


def show_timeline(report: Report, title: str = "Timeline, ms from the start") -> None:
    """A line a sentence: when it passed each stage, and its plan (speed + break in ms)."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in (*STAGES, "audio s", "plan"):
        table.add_column(name.removeprefix("first_"), justify="right")
    table.add_column("sentence", overflow="ellipsis", no_wrap=True)
    for times in report.sentences:
        row = times.as_dict()
        moments = [row[f"{name}_s"] for name in STAGES]
        table.add_row(
            *("–" if moment is None else f"{1000 * float(str(moment)):.0f}" for moment in moments),
            f"{times.audio_s:.2f}",
            f"{times.speed:.2f}+{times.break_after_ms}",
            times.text,
        )
    console = Console(stderr=True)
    if not console.is_terminal:
        console.width = 120
    console.print(table)
