"""Frames that wait to be sent, taken by their number."""

from __future__ import annotations

from collections import deque

import numpy as np

from tts_engine.types import Samples

__all__ = ["take_frames"]


def take_frames(queue: deque[Samples], count: int) -> Samples:
    """The first ``count`` samples of mono pieces [samples] float32, fewer if there are no more; they leave ``queue``."""
    parts: list[Samples] = [np.zeros(0, np.float32)]
    while count and queue:
        part = queue.popleft()
        if len(part) > count:
            queue.appendleft(part[count:])
        parts.append(part[:count])
        count -= len(parts[-1])
    return np.concatenate(parts)
