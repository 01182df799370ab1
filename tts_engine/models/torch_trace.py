"""Records every operation of torch into a Chrome trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile, record_function


@contextmanager
def torch_trace(path: Path) -> Iterator[Callable[[str], AbstractContextManager[object]]]:
    """Writes the trace of the block; gives a function that puts a span of a name into it."""
    activities = [ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(ProfilerActivity.CUDA)
    with profile(activities=activities) as recorded:
        yield record_function
    recorded.export_chrome_trace(str(path))
