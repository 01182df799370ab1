"""What the machine gives this process: cores and memory, container limits counted. Only reads, never sets."""

from __future__ import annotations

import os
import sys
from pathlib import Path

WORKERS_AT_MOST = 4
"""Threads share one interpreter: beyond this many workers another process brings more."""
_ROOT = Path("/")


def physical_cores(root: Path = _ROOT) -> int:
    """Cores that this process may use, at least 1: hardware threads of a core count once, a container's quota holds."""
    allowed = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set(range(os.cpu_count() or 1))
    topology = root / "sys/devices/system/cpu"
    cores = set()
    for cpu in allowed:
        folder = topology / f"cpu{cpu}/topology"
        package, core = _number(folder / "physical_package_id"), _number(folder / "core_id")
        cores.add((package, core) if package is not None and core is not None else cpu)
    return max(1, min(len(cores), _quota_cores(root)))


def worker_count(reserve: int = 1) -> int:
    """Worker threads for this machine: its physical cores, less ``reserve`` for the event loop and everything else."""
    return max(1, min(physical_cores() - reserve, WORKERS_AT_MOST))


def memory_bytes(root: Path = _ROOT) -> int:
    """What this process can use: the machine's memory, or the container's limit if that is less. 0: not known."""
    limits = [_number(folder / name) for folder in _cgroups(root) for name in ("memory.max", "memory.limit_in_bytes")]
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return min((limit for limit in limits if limit), default=0)


def resident_bytes() -> int:
    """What this process has in memory now (its peak where the system tells no more; 0: not known)."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        pass
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _quota_cores(root: Path) -> int:
    """Whole cores that the container's CPU quota leaves, rounded up."""
    quotas = [os.cpu_count() or 1]
    for folder in _cgroups(root):
        try:
            quota, period = (folder / "cpu.max").read_text(encoding="ascii").split()
        except (OSError, ValueError):
            quota, period = str(_number(folder / "cpu.cfs_quota_us")), str(_number(folder / "cpu.cfs_period_us"))
        if quota.isdigit() and period.isdigit() and int(period):
            quotas.append(-(-int(quota) // int(period)))
    return min(quotas)


def _cgroups(root: Path) -> list[Path]:
    """Folders that may hold this process's limits: version 2, then the controllers of version 1."""
    base = root / "sys/fs/cgroup"
    return [base, base / "memory", base / "cpu"]


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
