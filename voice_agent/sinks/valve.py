"""Lets frames out at a gain, and stops and goes on at any frame without a click."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tts_engine.types import Samples

__all__ = ["FADE_S", "GAIN_RAMP_S", "Valve"]

FADE_S = 0.01
"""How long a hold fades out, and a resume in."""
GAIN_RAMP_S = 0.02


@dataclass(slots=True)
class _Ramp:
    """A factor on its way to ``target``, ``left`` frames from there."""

    level: float = 1.0
    target: float = 1.0
    left: int = 0

    def aim(self, target: float, frames: int) -> None:
        if target != self.target:
            self.target, self.left = target, frames

    def take(self, count: int) -> NDArray[np.float32]:
        """The factors of the next ``count`` frames."""
        factors = np.full(count, self.target, dtype=np.float32)
        moving = min(count, self.left)
        if moving:
            steps = np.arange(1, moving + 1, dtype=np.float32) / np.float32(self.left)
            factors[:moving] = self.level + (self.target - self.level) * steps
            self.level = float(factors[moving - 1])
            self.left -= moving
        if not self.left:
            self.level = self.target
        return factors

    def settle(self) -> None:
        self.level, self.left = self.target, 0


class Valve:
    """One thread says what is wanted (``hold``, ``resume``, ``set_gain``), one plays (``admit``, ``apply``, ``rest``).

    Every attribute is written by one of the two only, so no lock is taken. The frame behind the last one that was let
    out before a hold is the first one after it.
    """

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self._wants_open = True
        self._wanted_gain = 1.0
        self._opening = _Ramp()
        self._gain = _Ramp()

    def hold(self) -> None:
        self._wants_open = False

    def resume(self) -> None:
        self._wants_open = True

    def set_gain(self, db: float) -> None:
        self._wanted_gain = float(10 ** (db / 20))

    @property
    def held(self) -> bool:
        """It has faded out, and lets nothing through."""
        return not self._opening.target and not self._opening.left

    @property
    def fade_frames(self) -> int:
        return round(FADE_S * self.rate)

    def admit(self, count: int) -> int:
        """How many of the next ``count`` frames may go out; hand those to :meth:`apply`."""
        self._opening.aim(float(self._wants_open), self.fade_frames)
        self._gain.aim(self._wanted_gain, round(GAIN_RAMP_S * self.rate))
        return count if self._opening.target else min(count, self._opening.left)

    def apply(self, frames: Samples) -> Samples:
        """``frames`` ([frames] or [frames, channels] float32) as they go out."""
        opening, gain = self._opening, self._gain
        if opening.level == opening.target == gain.level == gain.target == 1.0:
            return frames
        factors = opening.take(len(frames)) * gain.take(len(frames))
        return frames * (factors if frames.ndim == 1 else factors[:, None])

    def rest(self) -> None:
        """Nothing is there to go out: what is wanted is reached at once."""
        self.admit(0)
        self._opening.settle()
        self._gain.settle()
