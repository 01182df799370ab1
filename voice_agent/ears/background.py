"""How loud the room is without the user: the level that speech must exceed."""

from __future__ import annotations

from collections import deque

import numpy as np

__all__ = ["Background"]

_REMEMBERED = 300  # hops of 10 ms
_EVERY = 10  # hops between two looks at them
_QUIETEST_DB = -65.0  # below this a room counts as silent


class Background:
    """Follows the level of what is not speech, hop by hop.

    The mean of the last three seconds outside of speech, and at least the level that a tenth of the last three
    seconds of everything stays below: a noise that sets in and is taken for speech is the background after that time.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._quiet: deque[float] = deque(maxlen=_REMEMBERED)
        self._all: deque[float] = deque(maxlen=_REMEMBERED)
        self._hops = 0
        self.level_db = _QUIETEST_DB

    def feed(self, level_db: float, speech: bool) -> None:
        """``level_db`` of a hop, and whether it belongs to somebody who speaks."""
        self._all.append(level_db)
        if not speech:
            self._quiet.append(level_db)
        self._hops += 1
        if self._hops % _EVERY:
            return
        quiet = float(np.mean(self._quiet)) if self._quiet else _QUIETEST_DB
        lasting = float(np.percentile(self._all, 10)) if len(self._all) == _REMEMBERED else _QUIETEST_DB
        self.level_db = max(quiet, lasting, _QUIETEST_DB)
