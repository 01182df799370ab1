"""Cores and memory, with container limits, from a file tree like Linux's."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tts_engine import resources


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def eight(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Eight hardware threads on four cores of two packages."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    for cpu in range(8):
        folder = f"sys/devices/system/cpu/cpu{cpu}/topology"
        write(tmp_path, f"{folder}/physical_package_id", f"{cpu // 4}\n")
        write(tmp_path, f"{folder}/core_id", f"{cpu // 2 % 2}\n")
    return tmp_path


def test_hardware_threads_of_a_core_count_once(eight: Path) -> None:
    assert resources.physical_cores(eight) == 4


@pytest.mark.parametrize(("quota", "cores"), [("150000 100000", 2), ("50000 100000", 1), ("max 100000", 4)])
def test_a_quota_holds(eight: Path, quota: str, cores: int) -> None:
    write(eight, "sys/fs/cgroup/cpu.max", quota + "\n")
    assert resources.physical_cores(eight) == cores


def test_a_quota_of_the_older_kind_holds(eight: Path) -> None:
    write(eight, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n")
    write(eight, "sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n")
    assert resources.physical_cores(eight) == 2
    write(eight, "sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n")
    assert resources.physical_cores(eight) == 4


def test_an_unknown_machine_counts_its_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    assert resources.physical_cores(tmp_path) == 2


@pytest.mark.parametrize(("cores", "workers"), [(1, 1), (2, 1), (4, 3), (64, resources.WORKERS_AT_MOST)])
def test_workers_leave_a_core_free(monkeypatch: pytest.MonkeyPatch, cores: int, workers: int) -> None:
    monkeypatch.setattr(resources, "physical_cores", lambda: cores)
    assert resources.worker_count() == workers


def test_the_containers_memory_limit_holds(tmp_path: Path) -> None:
    whole = resources.memory_bytes(tmp_path)
    assert whole > 2**28
    write(tmp_path, "sys/fs/cgroup/memory.max", "max\n")
    assert resources.memory_bytes(tmp_path) == whole
    write(tmp_path, "sys/fs/cgroup/memory.max", f"{2**27}\n")
    assert resources.memory_bytes(tmp_path) == 2**27


def test_what_is_resident_follows_what_is_held() -> None:
    before = resources.resident_bytes()
    held = np.ones(2**23)
    assert resources.resident_bytes() - before > 0.8 * held.nbytes
