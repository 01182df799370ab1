"""The engine's share of the exception tree (drawn whole in ``voice_agent.errors``)."""

from __future__ import annotations


class SaylineError(Exception):
    """The root of all errors that Sayline raises on purpose.

    ``retryable``: the same call may succeed later. ``unspoken``: text that was accepted and not spoken because of it.
    """

    retryable = False
    unspoken = ""


class InputError(SaylineError, ValueError):
    """What was handed in cannot be used."""


class VoiceError(InputError):
    """An unknown voice, or one that does not speak the language of the text."""


class WeightsError(SaylineError):
    """A weight file is missing, truncated, altered or of another format."""


class EngineError(SaylineError):
    """Synthesis failed inside the engine."""


class BusyError(SaylineError):
    """All places are taken. Nothing was begun or lost; the same call may succeed after ``retry_after_s`` seconds."""

    retryable = True

    def __init__(self, message: str, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
