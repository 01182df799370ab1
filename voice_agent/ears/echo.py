"""Keeps the agent's own voice out of the ears: four ways behind one contract."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from tts_engine.types import Samples
from voice_agent.ears.canceller import FALL, EchoCanceller
from voice_agent.ears.config import EchoMode
from voice_agent.ears.features import BANDS, Bands

__all__ = ["AUDIBLE", "EchoGuard", "EchoLeak", "HalfDuplex", "Headphones", "SelfEchoGuard", "echo_guard"]

AUDIBLE = 1e-3
"""A playout without a larger sample is heard by nobody."""

_TAIL_HOPS = 30  # a room and the devices' delay carry the echo so long behind the playout
_BEYOND = 0.02  # of the echo's power
_PERCENTILE = 0.98
_STEP_DB = 0.3
_UNKNOWN_DB, _LEAST_DB, _MOST_DB = 2.0, -6.0, 12.0


class EchoGuard(Protocol):
    """Takes 10 ms of microphone and playout after another."""

    def feed(self, microphone: Samples, played: Samples) -> tuple[Samples, Bands]:
        """[160] float32 each; gives the microphone as it is to be heard, and the echo left in it, by band."""
        ...

    def reset(self) -> None:
        """A new conversation; another room perhaps."""
        ...


class Headphones:
    """There is no echo."""

    def feed(self, microphone: Samples, played: Samples) -> tuple[Samples, Bands]:
        return microphone, np.zeros(BANDS)

    def reset(self) -> None:
        pass


class HalfDuplex:
    """Nothing is heard while the agent sounds, and 300 ms longer."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._since = _TAIL_HOPS

    def feed(self, microphone: Samples, played: Samples) -> tuple[Samples, Bands]:
        self._since = 0 if np.abs(played).max() > AUDIBLE else self._since + 1
        return (microphone if self._since >= _TAIL_HOPS else np.zeros_like(microphone)), np.zeros(BANDS)


class SelfEchoGuard:
    """Subtracts what the playout explains; what the canceller is not sure of may be left, and what it cannot know of.

    That is the end of the reverberation, which is longer than its filter, and what the loudspeaker distorts.
    """

    def __init__(self) -> None:
        self._canceller = EchoCanceller()
        self.reset()

    def reset(self) -> None:
        self._canceller.reset()
        self._left: Bands = np.zeros(BANDS)

    def feed(self, microphone: Samples, played: Samples) -> tuple[Samples, Bands]:
        rest, echo, missed = self._canceller.feed(microphone, played)
        self._left = np.maximum(missed + _BEYOND * echo, self._left * FALL)
        return rest, self._left


class EchoLeak:
    """Learns how far the echo that is left exceeds what a guard expects.

    ``gain`` follows the 98th percentile of that, over the hops in which nobody speaks and the echo is above the room.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self._offset_db = _UNKNOWN_DB

    @property
    def gain(self) -> float:
        """A factor of power."""
        return float(10 ** (self._offset_db / 10))

    def feed(self, leaks: bool) -> None:
        """One hop; whether the sound in it stood out of the echo expected."""
        step = _STEP_DB * (_PERCENTILE if leaks else _PERCENTILE - 1)
        self._offset_db = min(max(self._offset_db + step, _LEAST_DB), _MOST_DB)


def echo_guard(mode: EchoMode) -> EchoGuard:
    """The guard of this name. Raises MissingExtraError where it needs a package that is not installed."""
    if mode == "headphones":
        return Headphones()
    if mode == "half_duplex":
        return HalfDuplex()
    if mode == "aec":
        from voice_agent.ears.webrtc_aec import WebRtcCanceller

        return WebRtcCanceller()
    return SelfEchoGuard()
