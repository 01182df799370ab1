"""Ears: when the user speaks, when they are done, and whether they mean to interrupt."""

from voice_agent.ears.config import BargeInConfig, EarsConfig, EndOfTurnConfig
from voice_agent.ears.ears import Ears
from voice_agent.ears.endpoint import EndOfTurn, EndOfTurnRules
from voice_agent.ears.turn_taking import BargeInClassifier
from voice_agent.ears.vad import SileroVad, Vad, WebRtcVad

__all__ = [
    "BargeInClassifier",
    "BargeInConfig",
    "Ears",
    "EarsConfig",
    "EndOfTurn",
    "EndOfTurnConfig",
    "EndOfTurnRules",
    "SileroVad",
    "Vad",
    "WebRtcVad",
]
