"""Pictures of what a benchmark measured, where matplotlib is installed."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def add_plot_option(parser: argparse.ArgumentParser) -> None:
    """``--plot FILE``: also draw a picture."""
    parser.add_argument("--plot", type=Path, metavar="FILE", help="also draw a picture (.png or .svg)")


def bars(path: Path | None, groups: Mapping[str, Mapping[str, float]], label: str) -> None:
    """One panel a group, one bar a name, on a logarithmic scale. Without a path nothing is drawn."""
    if path is None:
        return
    figure, axes = _figure(len(groups))
    for axis, (group, values) in zip(axes, groups.items(), strict=True):
        drawn = axis.barh(list(values), list(values.values()))
        axis.bar_label(drawn, fmt="%.3g", padding=3)
        axis.set(title=group, xlabel=label, xscale="log")
        axis.margins(x=0.2)
        axis.invert_yaxis()
    figure.savefig(path)
    print(f"drawn: {path}")


def lines(
    path: Path | None,
    panels: Mapping[str, Mapping[str, Sequence[float]]],
    at: Sequence[float],
    label: str,
    *,
    from_zero: bool = False,
) -> None:
    """One panel a quantity, one line a name, over ``at``. Without a path nothing is drawn.

    Scales are logarithmic; ``from_zero``: those of the quantities are linear and begin at 0.
    """
    if path is None:
        return
    figure, axes = _figure(len(panels))
    for axis, (quantity, series) in zip(axes, panels.items(), strict=True):
        for name, values in series.items():
            axis.plot(at[: len(values)], values, marker="o", label=name)
        axis.set(title=quantity, xlabel=label, xscale="log", yscale="linear" if from_zero else "log")
        if from_zero:
            axis.set_ylim(0, 1.1 * max(max(values) for values in series.values()))
            axis.set_xticks(at, [f"{value:g}" for value in at], minor=False)
            axis.minorticks_off()
        axis.legend(fontsize="small")
    figure.savefig(path)
    print(f"drawn: {path}")


def _figure(panels: int) -> tuple[Any, Any]:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, panels, figsize=(6 * panels, 3.5), layout="constrained", squeeze=False)
    return figure, axes[0]
