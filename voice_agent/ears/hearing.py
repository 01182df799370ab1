"""What a dialogue needs of ears: those that decide by themselves, or a key that the user holds."""

from __future__ import annotations

from typing import Protocol

from tts_engine.types import AudioFormat, Samples
from voice_agent.ears.decisions import Decision

__all__ = ["Hearing"]


class Hearing(Protocol):
    """``voice_agent.ears.ears.Ears``, ``voice_agent.ears.push_to_talk.PushToTalk``."""

    level_db: float
    """How loud it was last, dB below full scale."""

    @property
    def heard_s(self) -> float:
        """Seconds of audio that decisions have been made about."""
        ...

    @property
    def speaking(self) -> bool:
        """Whether the user is in a turn, or at something that may become one."""
        ...

    @property
    def barging(self) -> bool:
        """Whether it is open if the user interrupts: the moment for partial words."""
        ...

    @property
    def silence_s(self) -> float:
        """Seconds since the user's last sound within the present speech."""
        ...

    def speech(self) -> Samples:
        """What the user has said so far, 16 kHz mono."""
        ...

    def hear(self, words: str, upto_s: float | None = None) -> None:
        """The words of :meth:`speech`, up to a moment of the audio."""
        ...

    def feed(self, samples: Samples, format: AudioFormat, played: Samples | None = None) -> list[Decision]:
        """A stretch of the microphone, and what the agent sounded meanwhile (16 kHz mono, as long)."""
        ...
