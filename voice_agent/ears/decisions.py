"""What the ears decide, each with the moment: seconds of received audio, never of the wall clock.

    SpeechBegan ─▶ [Duck ─▶ [Hold] ─▶ Resume | Interrupt] ─▶ TurnEnded | SpeechDropped

Every ``SpeechBegan`` is followed by exactly one ``TurnEnded`` or ``SpeechDropped``, every ``Duck`` by exactly one ``Resume``
or ``Interrupt``. Two times are in each: ``at_s``, when enough had been heard to decide, and where it matters ``began_s`` or
``ended_s``, what the decision is about.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tts_engine.types import Samples

__all__ = [
    "Decision",
    "DropReason",
    "Duck",
    "Hold",
    "Interrupt",
    "Resume",
    "ResumeReason",
    "SpeechBegan",
    "SpeechDropped",
    "TurnEnded",
]

DropReason = Literal["short", "noise", "backchannel"]
"""``short``: over before it was enough for an interruption; ``noise``: hardly voiced (a cough, keys), or without words."""

ResumeReason = Literal["short", "noise", "backchannel", "agent silent"]
"""As for DropReason; ``agent silent``: the agent came to its end while it was ducked, and the user goes on."""


@dataclass(frozen=True, slots=True)
class SpeechBegan:
    """Somebody speaks; ``began_s`` is where the first syllable starts."""

    at_s: float
    began_s: float


@dataclass(frozen=True, slots=True)
class Duck:
    """Speech over the agent's: play it more quietly."""

    at_s: float


@dataclass(frozen=True, slots=True)
class Hold:
    """It goes on: stop playing, drop nothing."""

    at_s: float


@dataclass(frozen=True, slots=True)
class Resume:
    """It was no interruption: play on at the next sample, at full level."""

    at_s: float
    reason: ResumeReason


@dataclass(frozen=True, slots=True)
class Interrupt:
    """The user takes the turn with what began at ``began_s``: cancel the agent's."""

    at_s: float
    began_s: float


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The user is done. ``samples``: 16 kHz mono float32 of the whole turn, some silence before and behind it included."""

    at_s: float
    began_s: float
    ended_s: float
    samples: Samples = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class SpeechDropped:
    """What began was no turn."""

    at_s: float
    reason: DropReason


Decision = SpeechBegan | Duck | Hold | Resume | Interrupt | TurnEnded | SpeechDropped
