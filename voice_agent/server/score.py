"""How quick a server's recent answers were, as one number."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

__all__ = ["Score"]

_BEST = 100.0
_RECENT_S = 60.0
_RECENT = 200
_SLOW_S = 1.0
_SLOW_IN_A_ROW = 3


class Score:
    """How quick the recent answers were, 0 to 100.

    Each answer makes it 0.9 · score + max(0, 100 − latency in ms), 100 at most; the third in a row above a second, and
    each further one, halves it. Answers count for a minute, so a server that gets no requests recovers.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._answers: deque[tuple[float, float]] = deque(maxlen=_RECENT)

    def answered(self, latency_s: float) -> None:
        """An answer's first sound was there after so long."""
        self._answers.append((self._now_s(), latency_s))

    @property
    def value(self) -> float:
        since_s = self._now_s() - _RECENT_S
        while self._answers and self._answers[0][0] < since_s:
            self._answers.popleft()
        score, slow = _BEST, 0
        for _, latency_s in self._answers:
            score = min(_BEST, 0.9 * score + max(0.0, 100 - 1000 * latency_s))
            slow = slow + 1 if latency_s > _SLOW_S else 0
            if slow >= _SLOW_IN_A_ROW:
                score /= 2
        return score
