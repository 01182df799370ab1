"""What the prosody planner takes and gives: the user's wishes, a plan with its reasons, the hook that may change it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from tts_engine.types import Language
from voice_agent.errors import ConfigError, clipped
from voice_agent.prompts import Mode
from voice_agent.text.pieces import Kind, Sentence
from voice_agent.text.rules import BREAK_RANGE_MS, SPEED_RANGE
from voice_agent.text.sentiment import Sentiment

PITCH_RANGE = (-12.0, 12.0)
VOLUME_RANGE = (0.0, 2.0)
FINAL_SPEED_RANGE = (SPEED_RANGE[0] ** 2, SPEED_RANGE[1] ** 2)
FINAL_VOLUME_RANGE = (0.0, VOLUME_RANGE[1] ** 2)
"""What a tag and the user's own wish can reach together."""


@dataclass(frozen=True, slots=True)
class Step:
    """What one rule or limit made of the plan: the speed and break after it, and a word on why."""

    name: str
    speed: float
    break_ms: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """How one sentence will be spoken, and why: the values of its ``Utterance`` and the steps that led to them."""

    text: str
    kind: Kind
    sentiment: Sentiment
    speed: float
    pitch: float
    volume: float
    break_before_ms: int
    break_after_ms: int
    steps: tuple[Step, ...] = ()

    def __str__(self) -> str:
        """A table for people: a line a step, with the speed and break that it led to."""
        heard = ", ".join(f"{word} {weight:+.2f}" for word, weight in self.sentiment.evidence)
        mood = f"{self.sentiment.label} {self.sentiment.score:.2f}"
        lines = [repr(clipped(self.text)), f"  {mood} ({heard})" if heard else f"  {mood}"]
        lines += [
            f"  {step.name:<12} speed {step.speed:.2f}  break {step.break_ms:4d} ms  {step.note}".rstrip()
            for step in (*self.steps, Step("result", self.speed, self.break_after_ms))
        ]
        return "\n".join(lines)


Hook = Callable[[Sentence, Plan], Plan | None]
"""The user's last word on a plan: gives another one (``dataclasses.replace``), or None to leave it."""


@dataclass(frozen=True, slots=True)
class ProsodyConfig:
    """What the user asks of every sentence.

    ``speed`` (0.5 to 2) and ``volume`` (0 to 2) multiply what rules and tags say, ``pitch`` (semitones) is added.
    ``directory`` may hold own versions of the files in prompts/. ``hook`` sees each plan last; when it fails, the
    sentence is spoken as planned and the failure is logged.
    """

    mode: Mode = "both"
    voice: str = "auto"
    language: Language | None = None
    speed: float = 1.0
    pitch: float = 0.0
    volume: float = 1.0
    directory: Path | str | None = None
    hook: Hook | None = None

    def __post_init__(self) -> None:
        if self.mode not in get_args(Mode):
            raise ConfigError(f"prosody mode: use one of {', '.join(get_args(Mode))}, not {self.mode!r}")
        for name, value, (least, most) in (
            ("speed", self.speed, SPEED_RANGE),
            ("pitch", self.pitch, PITCH_RANGE),
            ("volume", self.volume, VOLUME_RANGE),
        ):
            if not least <= value <= most:
                raise ConfigError(f"prosody {name}: use a number from {least:g} to {most:g}, not {value!r}")


def check_plan(plan: object) -> Plan:
    """A plan from outside, if it can be spoken."""
    if not isinstance(plan, Plan):
        raise TypeError(f"a hook gives a Plan or None, not {type(plan).__name__}")
    for name, value, (least, most) in (
        ("speed", plan.speed, FINAL_SPEED_RANGE),
        ("pitch", plan.pitch, PITCH_RANGE),
        ("volume", plan.volume, FINAL_VOLUME_RANGE),
        ("break_before_ms", plan.break_before_ms, BREAK_RANGE_MS),
        ("break_after_ms", plan.break_after_ms, BREAK_RANGE_MS),
    ):
        if not (math.isfinite(value) and least <= value <= most):
            raise ValueError(f"{name} {value!r} is not between {least:g} and {most:g}")
    return plan
