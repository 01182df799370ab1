"""What the parts of a graph take: ONNX Runtime's own times of its nodes, whose names begin with the part that they are of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def part_times(trace: Path) -> list[dict[str, float]]:
    """Seconds in each part, in their order, for each run in a trace that a session wrote.

    A part takes from its first node to the first of the next one: the runtime adds nodes without its name in between.
    """
    events = sorted(json.loads(trace.read_text(encoding="utf-8")), key=lambda event: int(event["ts"]))
    nodes = [event for event in events if event["cat"] == "Node" and event["name"].endswith("_kernel_time")]
    runs = [event for event in events if event["name"] == "model_run"]
    return [_parts([node for node in nodes if run["ts"] <= node["ts"] <= run["ts"] + run["dur"]]) for run in runs]


def _parts(nodes: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    starts: dict[str, int] = {}
    for node in nodes:
        part, slash, _ = node["name"].partition("/")
        if slash:
            starts.setdefault(part, node["ts"])
    end = max((node["ts"] + node["dur"] for node in nodes), default=0)
    edges = [*starts.values(), end]
    return {part: 1e-6 * (edges[i + 1] - edges[i]) for i, part in enumerate(starts)}
