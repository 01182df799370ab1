"""What the benchmarks share: the machine, one core, percentiles, a table and the JSON line."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Sequence
from pathlib import Path

Row = dict[str, object]


def one_core() -> None:
    """Keeps this process on one core, and numerical libraries on one thread. Call it before they are imported."""
    cores(1)


def cores(count: int) -> None:
    """Keeps this process on so many cores, and numerical libraries on one thread a call."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-count:])


def machine() -> dict[str, object]:
    """What the numbers were measured on."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [line.split(":", 1)[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
        model = names[0] if names else model
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"cpu": model, "cores": cores, "python": platform.python_version(), "load": round(os.getloadavg()[0], 2)}


def percentile(values: Sequence[float], percent: float) -> float:
    """The value that ``percent`` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def median(values: Sequence[float]) -> float:
    return statistics.median(values)


def report(name: str, rows: Sequence[Row], **facts: object) -> None:
    """Prints the rows as a markdown table for people, then everything as one JSON line."""
    columns = list(rows[0])
    print(f"| {' | '.join(columns)} |")
    print(f"|{'---|' * len(columns)}")
    for row in rows:
        print(f"| {' | '.join(_shown(row[column]) for column in columns)} |")
    print(json.dumps({"benchmark": name, **machine(), **facts, "rows": list(rows)}, ensure_ascii=False))


def _shown(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
