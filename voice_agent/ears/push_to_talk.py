"""Ears that hear as long as a key is held: no voice activity, no guessing when a turn ends."""

from __future__ import annotations

import numpy as np

from tts_engine.types import AudioFormat, Samples
from voice_agent.audio import map_channels
from voice_agent.ears.config import RATE
from voice_agent.ears.decisions import Decision, Interrupt, SpeechBegan, TurnEnded
from voice_agent.ears.features import SILENT_DB
from voice_agent.ears.resampling import QuickResampler

__all__ = ["PushToTalk"]


class PushToTalk:
    """``press`` and ``release`` take effect with the next ``feed``; pressing interrupts the agent.

    A turn is at most ``max_turn_s`` long, and then ends by itself.
    """

    barging = False
    silence_s = 0.0

    def __init__(self, max_turn_s: float = 60.0) -> None:
        self._most = round(max_turn_s * RATE)
        self._resampler: QuickResampler | None = None
        self._heard = 0
        self._pressed = False
        self._began: int | None = None
        self._turn: list[Samples] = []
        self.level_db = SILENT_DB

    @property
    def heard_s(self) -> float:
        return self._heard / RATE

    @property
    def speaking(self) -> bool:
        return self._began is not None

    @property
    def pressed(self) -> bool:
        return self._pressed

    def press(self) -> None:
        """The user begins to talk."""
        self._pressed = True

    def release(self) -> None:
        """The user is done."""
        self._pressed = False

    def speech(self) -> Samples:
        return np.concatenate(self._turn) if self._turn else np.zeros(0, dtype=np.float32)

    def hear(self, words: str, upto_s: float | None = None) -> None:
        """Words change nothing here."""

    def feed(self, samples: Samples, format: AudioFormat, played: Samples | None = None) -> list[Decision]:
        """See ``voice_agent.ears.ears.Ears.feed``; what the agent sounds is not looked at."""
        if self._resampler is None:
            self._resampler = QuickResampler(format.sample_rate)
        mono = self._resampler.feed(map_channels(np.asarray(samples, dtype=np.float32), 1))
        if len(mono):
            self.level_db = max(SILENT_DB, 10 * float(np.log10(np.mean(np.square(mono)) + 1e-12)))
        decisions: list[Decision] = []
        if self._pressed and self._began is None:
            self._began = self._heard
            decisions += [SpeechBegan(self.heard_s, self.heard_s), Interrupt(self.heard_s, self.heard_s)]
        self._heard += len(mono)
        if self._began is not None:
            self._turn.append(mono)
            if not self._pressed or self._heard - self._began >= self._most:
                decisions.append(TurnEnded(self.heard_s, self._began / RATE, self.heard_s, self.speech()))
                self._began, self._pressed, self._turn = None, False, []
        return decisions
