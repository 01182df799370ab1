"""Plain threshold policies with the defaults of other frameworks, over the same judged hops as our own turn taking.

Only the timing rules are theirs: detector, background and echo guard are ours, so that what differs is the policy.

* Pipecat: speech of 0.2 s without a gap begins a turn and interrupts for good (``VADParams.start_secs``); without its
  turn model a turn ends after ``stop_secs`` 0.2 s and ``user_speech_timeout`` 0.6 s of silence.
* LiveKit Agents: speech of 0.5 s interrupts (``interruption.min_duration``); where no words follow within 2 s it
  resumes (``false_interruption_timeout``). A turn ends after 0.55 s of silence (the detector's ``min_silence_duration``,
  which is above ``endpointing.min_delay`` 0.5 s).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from voice_agent.ears.decisions import Decision, Hold, Interrupt, Resume, SpeechBegan, SpeechDropped, TurnEnded
from voice_agent.ears.ears import Ears
from voice_agent.ears.turn_taking import HOP_S, Hop

NOTHING = np.zeros(0, dtype=np.float32)


@dataclass(frozen=True)
class Thresholds:
    """``resume_s``: None where an interruption is final."""

    start_s: float
    interrupt_s: float
    stop_s: float
    resume_s: float | None = None


PIPECAT = Thresholds(start_s=0.2, interrupt_s=0.2, stop_s=0.8)
LIVEKIT = Thresholds(start_s=0.05, interrupt_s=0.5, stop_s=0.55, resume_s=2.0)


class ThresholdTurns:
    """Stands where ``TurnTaking`` does."""

    def __init__(self, thresholds: Thresholds) -> None:
        self._thresholds = thresholds
        self.reset()

    def reset(self) -> None:
        self._now = 0
        self._run = 0
        self._agent = -100
        self._last = 0
        self.began: int | None = None
        self._stopped: int | None = None
        self._words = ""

    @property
    def quiet(self) -> bool:
        return self.began is None and not self._run

    @property
    def needed(self) -> int:
        return self._now if self.began is None else self.began

    @property
    def silence_s(self) -> float:
        return 0.0 if self.began is None else (self._now - self._last) * HOP_S

    @property
    def barging(self) -> bool:
        return self._stopped is not None

    def hear(self, words: str, upto_s: float | None) -> None:
        self._words = words

    def flush(self) -> list[Decision]:
        return []

    def step(self, hop: Hop) -> list[Decision]:
        self._now += 1
        at_s, rules = self._now * HOP_S, self._thresholds
        decisions: list[Decision] = []
        if hop.sounding:
            self._agent = self._now
        self._run = self._run + 1 if hop.speech else 0
        if hop.speech:
            self._last = self._now
        if self.began is None and self._run * HOP_S >= rules.start_s - 1e-9:
            self.began = self._now - self._run
            self._words = ""
            decisions.append(SpeechBegan(at_s, self.began * HOP_S))
        if self.began is None:
            return decisions
        speech_s = (self._last - self.began) * HOP_S
        if self._stopped is None and self._now - self._agent < 50 and hop.speech and speech_s >= rules.interrupt_s - 1e-9:
            self._stopped = self._now
            decisions.append(Hold(at_s) if rules.resume_s is not None else Interrupt(at_s, self.began * HOP_S))
        if self._stopped is not None and rules.resume_s is not None:
            if self._words:
                self._stopped = None
                self._agent = -100
                decisions.append(Interrupt(at_s, self.began * HOP_S))
            elif self.silence_s >= rules.resume_s:
                self._stopped = self.began = None
                return [*decisions, Resume(at_s, "short"), SpeechDropped(at_s, "short")]
            else:
                return decisions
        if self.silence_s >= rules.stop_s:
            ended = TurnEnded(at_s, self.began * HOP_S, self._last * HOP_S, NOTHING)
            self.began = self._stopped = None
            decisions.append(ended)
        return decisions


def ears_with(thresholds: Thresholds) -> Ears:
    """Our ears with these thresholds in the place of our turn taking."""
    ears = Ears()
    ears._turns = ThresholdTurns(thresholds)  # type: ignore[assignment]
    return ears
