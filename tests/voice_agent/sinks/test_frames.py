from __future__ import annotations

from collections import deque

import numpy as np
import pytest

from voice_agent.sinks.frames import take_frames


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 20])
def test_any_sizes_give_the_same_samples_in_order(size: int) -> None:
    whole = np.arange(17, dtype=np.float32)
    queue = deque(np.split(whole, [4, 5, 11]))
    taken = []
    while queue:
        taken.append(take_frames(queue, size))
        assert len(taken[-1]) == min(size, 17 - size * (len(taken) - 1))
    np.testing.assert_array_equal(np.concatenate(taken), whole)


def test_nothing_is_nothing() -> None:
    assert take_frames(deque(), 5).shape == (0,)
    queue = deque([np.ones(3, np.float32)])
    assert len(take_frames(queue, 0)) == 0
    assert len(queue) == 1
