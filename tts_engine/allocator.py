"""Tells the C library to keep the memory that the engine frees, for its next step.

Each step takes and frees arrays of some hundred kilobytes. By default glibc gives such memory back to the system at once, and
taking it again costs a page fault for every 4 kB; an FFT of a long packet took four times as long (docs/experiments.md).
"""

from __future__ import annotations

import ctypes
import sys

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEPT_BYTES = 64 << 20
LARGEST_KEPT_BYTES = 32 << 20


def keep_freed_memory() -> bool:
    """Sets the thresholds for the whole process; False where the C library is not glibc. Calling it again is harmless."""
    if not sys.platform.startswith("linux"):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return bool(mallopt(M_MMAP_THRESHOLD, LARGEST_KEPT_BYTES) and mallopt(M_TRIM_THRESHOLD, KEPT_BYTES))
