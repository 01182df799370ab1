"""How the ears decide: every threshold, in seconds of audio or decibels."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Literal, get_args

from voice_agent.errors import InputError

__all__ = ["RATE", "BargeInConfig", "EarsConfig", "EchoMode", "EndOfTurnConfig"]

RATE = 16_000
"""The sample rate, in Hz, at which the ears work."""

EchoMode = Literal["guard", "aec", "half_duplex", "headphones"]
"""What keeps the agent's own voice out.

``guard`` subtracts what the playout explains and raises the threshold by what may be left; ``aec`` does it with WebRTC's
audio processing (extra ``aec``); ``half_duplex`` hears nothing while the agent sounds; ``headphones`` takes the microphone as
it is: there is no echo, or the browser has cancelled it.
"""


@dataclass(frozen=True, slots=True)
class BargeInConfig:
    """When speech over the agent's speech ducks it, holds it, and takes its turn.

    ``duck_s``, ``hold_s``, ``confirm_s`` count speech, ``confirm_s`` twice as much where words are awaited;
    ``hold_voiced_s`` and ``confirm_voiced_s`` say how much of it must be voiced. ``resume_s``: silence after which it was no
    interruption. ``words_s``: how long a short utterance waits, held, for the words that say whether it was one; 0 without a
    recogniser.
    """

    duck_s: float = 0.1
    hold_s: float = 0.3
    hold_voiced_s: float = 0.08
    confirm_s: float = 0.75
    confirm_voiced_s: float = 0.3
    resume_s: float = 0.3
    words_s: float = 0.0

    def __post_init__(self) -> None:
        _check_positive(self, zero=("hold_voiced_s", "confirm_voiced_s", "words_s"))
        if not self.duck_s <= self.hold_s <= self.confirm_s:
            raise InputError(
                f"duck_s {self.duck_s}, hold_s {self.hold_s} and confirm_s {self.confirm_s} must rise in this order"
            )


@dataclass(frozen=True, slots=True)
class EndOfTurnConfig:
    """How much silence ends a turn, by what was said last (``voice_agent.ears.endpoint``).

    ``complete_s``: after a question or a full stop; ``plain_s``: where the words are not known; ``unfinished_s``: after a
    comma or a word that wants another; ``dictation_s``: after digits; ``doubtful_s``: after what looks like half a
    sentence, whatever mark is behind it; ``unmarked_s``: after words without a mark, since a recogniser that punctuates
    has left the sentence open (for one that never does, give it ``plain_s``). All are kept between ``min_s`` and ``max_s``.
    """

    min_s: float = 0.2
    max_s: float = 2.0
    complete_s: float = 0.45
    plain_s: float = 0.5
    unfinished_s: float = 1.2
    dictation_s: float = 0.9
    doubtful_s: float = 0.9
    unmarked_s: float = 0.9

    def __post_init__(self) -> None:
        _check_positive(self)
        if self.min_s > self.max_s:
            raise InputError(f"min_s {self.min_s} is above max_s {self.max_s}")


@dataclass(frozen=True, slots=True)
class EarsConfig:
    """Everything the ears can be told.

    ``vad_mode``: 0 to 3, how strict webrtcvad is; ``vad_frame_s``: 0.01, 0.02 or 0.03. ``start_s``: speech that makes a
    ``SpeechBegan``. ``min_voiced_s``: voiced speech that a turn needs. ``pre_roll_s`` and ``hang_over_s``: audio kept
    before and behind a turn's speech. ``max_turn_s``: a turn ends then at the latest.
    """

    vad_mode: int = 2
    vad_frame_s: float = 0.01
    echo: EchoMode = "guard"
    start_s: float = 0.08
    min_voiced_s: float = 0.06
    pre_roll_s: float = 0.5
    hang_over_s: float = 0.2
    max_turn_s: float = 60.0
    barge_in: BargeInConfig = field(default_factory=BargeInConfig)
    end_of_turn: EndOfTurnConfig = field(default_factory=EndOfTurnConfig)

    def __post_init__(self) -> None:
        _check_positive(self, zero=("vad_mode", "min_voiced_s", "pre_roll_s", "hang_over_s"))
        if self.vad_mode not in (0, 1, 2, 3):
            raise InputError(f"vad_mode is {self.vad_mode!r}: use 0 (lets most through) to 3 (strictest)")
        if self.vad_frame_s not in (0.01, 0.02, 0.03):
            raise InputError(f"vad_frame_s is {self.vad_frame_s!r}: use 0.01, 0.02 or 0.03")
        if self.echo not in get_args(EchoMode):
            raise InputError(f"echo is {self.echo!r}: use one of {', '.join(get_args(EchoMode))}")


def _check_positive(config: object, zero: tuple[str, ...] = ()) -> None:
    """Refuses numbers below 0, and 0 itself except where it has a meaning."""
    for name in (f.name for f in fields(config)):  # type: ignore[arg-type]
        value = getattr(config, name)
        if isinstance(value, int | float) and not (value > 0 or (value == 0 and name in zero)):
            raise InputError(f"{name} is {value!r}: use a number {'of at least' if name in zero else 'above'} 0")
