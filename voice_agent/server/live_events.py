"""What a live session tells its client, as plain values that each protocol puts into messages of its own."""

from __future__ import annotations

from dataclasses import dataclass

from voice_agent.report import Report
from voice_agent.server.refusals import RefusedError

__all__ = [
    "Audio", "Cancelled", "Configured", "Done", "Event", "Failed", "Flushed", "Heard", "Leaving", "Spoken", "Started", "Words",
    "Written",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Configured:
    """The settings are what they were asked to be; they hold for the turns that begin from now on."""


@dataclass(frozen=True, slots=True)
class Started:
    """All audio from here on belongs to turn ``epoch``, whose samples count from 0 at ``sample_rate`` Hz."""

    epoch: int
    encoding: str
    sample_rate: int


@dataclass(frozen=True, slots=True)
class Written:
    """The LLM wrote more of the turn's text."""

    epoch: int
    text: str


@dataclass(frozen=True, slots=True)
class Audio:
    """``samples`` samples in the turn's encoding; ``start`` were sent before them."""

    epoch: int
    data: bytes
    start: int
    samples: int


@dataclass(frozen=True, slots=True)
class Spoken:
    """A word: its number in the turn, raw offsets, and when it sounds, in ms from the start of the turn's audio."""

    index: int
    text: str
    start: int
    end: int
    start_ms: float
    end_ms: float
    sentence: int


@dataclass(frozen=True, slots=True)
class Words:
    """Words that begin in the audio that follows. One that grows (a number of several spoken words) comes again."""

    epoch: int
    words: tuple[Spoken, ...]


@dataclass(frozen=True, slots=True)
class Flushed:
    """All that came before a flush is spoken and sent: ``samples`` of the turn."""

    epoch: int
    samples: int


@dataclass(frozen=True, slots=True)
class Done:
    """The turn is spoken and sent whole: ``samples``, which sound for ``duration_s``."""

    epoch: int
    samples: int
    duration_s: float
    report: Report


@dataclass(frozen=True, slots=True)
class Heard:
    """The text of turn ``epoch`` that was heard with the first ``samples`` of its audio; ``complete``: all of it."""

    epoch: int
    samples: int
    text: str
    complete: bool


@dataclass(frozen=True, slots=True)
class Cancelled:
    """Nothing of the turns up to ``epoch`` comes any more. ``heard``: of the turn that was playing, as far as is known."""

    epoch: int
    heard: Heard | None


@dataclass(frozen=True, slots=True)
class Failed:
    """Something could not be done; ``epoch`` None: it belongs to no turn. ``text``: what is not spoken because of it."""

    error: RefusedError
    epoch: int | None = None
    text: str = ""


@dataclass(frozen=True, slots=True)
class Leaving:
    """The server shuts down: what is open is spoken, then the connection ends."""


Event = Configured | Started | Written | Audio | Words | Flushed | Done | Heard | Cancelled | Failed | Leaving
