"""Keeps the agent's own voice out of the ears: four ways behind one contract."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from tts_engine.types import Samples
from voice_agent.ears.canceller import EchoCanceller
from voice_agent.ears.config import EchoMode
from voice_agent.ears.features import level_db

__all__ = ["EchoGuard", "HalfDuplex", "Headphones", "SelfEchoGuard", "echo_guard"]

_SILENT = 1e-3  # the largest sample of a playout that nobody hears
_TAIL_HOPS = 30  # a room and the devices' delay carry the echo so long behind the playout
_NOTHING_DB = -90.0


class EchoGuard(Protocol):
    """Takes 10 ms of microphone and playout after another."""

    def feed(self, microphone: Samples, played: Samples) -> tuple[Samples, float]:
        """[160] float32 each; gives the microphone's samples as they are to be heard, and a level in dB.

        What is not louder than this level may be the agent's own echo.
        """
        ...

    def reset(self) -> None:
        """A new conversation; another room perhaps."""
        ...


class Headphones:
    """There is no echo."""

    def feed(self, microphone: Samples, played: Samples) -> tuple[Samples, float]:
        return microphone, _NOTHING_DB

    def reset(self) -> None:
        pass


class HalfDuplex:
    """Nothing is heard while the agent sounds, and 300 ms longer."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._since = _TAIL_HOPS

    def feed(self, microphone: Samples, played: Samples) -> tuple[Samples, float]:
        self._since = 0 if np.abs(played).max() > _SILENT else self._since + 1
        return (microphone if self._since >= _TAIL_HOPS else np.zeros_like(microphone)), _NOTHING_DB


class SelfEchoGuard:
    """Subtracts what the playout explains; the level says what may be left."""

    _MARGIN_DB = 6.0

    def __init__(self) -> None:
        self._canceller = EchoCanceller()

    def reset(self) -> None:
        self._canceller.reset()

    def feed(self, microphone: Samples, played: Samples) -> tuple[Samples, float]:
        rest, missed = self._canceller.feed(microphone, played)
        return rest, level_db(missed) + self._MARGIN_DB if missed else _NOTHING_DB


def echo_guard(mode: EchoMode) -> EchoGuard:
    """The guard of this name. Raises MissingExtraError where it needs a package that is not installed."""
    if mode == "headphones":
        return Headphones()
    if mode == "half_duplex":
        return HalfDuplex()
    return SelfEchoGuard()
