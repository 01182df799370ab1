"""How a turn sounds and in which form it is sent."""

from __future__ import annotations

from dataclasses import dataclass

from tts_engine.types import Language
from voice_agent.errors import InputError
from voice_agent.server.encoders import Container
from voice_agent.server.raw_audio import Encoding
from voice_agent.text.prosody import ProsodyConfig
from voice_agent.turn import TurnConfig

__all__ = ["SPEED_RANGE", "Speaking", "split_speed"]

SPEED_RANGE = (0.25, 4.0)
DURATION_RANGE = (0.8, 1.0)
"""Speeds at which the voice itself speaks slower; beyond them the sound is stretched.

Faster speech is understood better if it is stretched: the voice runs short phonemes together (docs/experiments.md).
"""


def split_speed(speed: float) -> tuple[float, float]:
    """A speed as that of the voice and the tempo of the stretching behind it; their product is ``speed``."""
    low, high = DURATION_RANGE
    voice = min(max(speed, low), high)
    return voice, speed / voice


@dataclass(frozen=True, slots=True)
class Speaking:
    """How a turn sounds and is sent. ``voice``: a speaker of the engine's; ``pitch`` in semitones; the others are factors.

    ``ahead_s``: how much more than the client has played may be sent to it. ``whole``: the turn is an answer of its own,
    which goes at the pace at which it is taken and is never empty. Raises InputError for a speed out of range.
    """

    voice: str = "auto"
    language: Language | None = None
    speed: float = 1.0
    pitch: float = 0.0
    volume: float = 1.0
    encoding: Encoding | Container = "pcm_s16le"
    sample_rate: int = 24_000
    ahead_s: float = 10.0
    whole: bool = False

    def __post_init__(self) -> None:
        least, most = SPEED_RANGE
        if not least <= self.speed <= most:
            raise InputError(f"speed is {self.speed:g}: use a factor from {least:g} to {most:g}")

    @property
    def tempo(self) -> float:
        """What stretching adds to the speed of the voice."""
        return split_speed(self.speed)[1]

    def turn_config(self) -> TurnConfig:
        """What the turn is told."""
        prosody = ProsodyConfig(
            voice=self.voice,
            language=self.language,
            speed=split_speed(self.speed)[0],
            pitch=self.pitch,
            volume=self.volume,
        )
        return TurnConfig(prosody=prosody, ahead_s=self.ahead_s)
