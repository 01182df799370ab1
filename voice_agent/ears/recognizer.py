"""The contract of a speech recogniser: samples of a turn in, what was said out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from tts_engine.types import Language, Samples

__all__ = ["Recognizer", "SpokenLanguage", "Transcript"]

SpokenLanguage = Literal["auto", "en", "zh"]


@dataclass(frozen=True, slots=True)
class Transcript:
    """What was said, as far as the recogniser can tell.

    ``text`` is empty where nothing was said; ``doubt`` then says why words that the recogniser gave are not believed.
    ``language``: of the text, None where the recogniser does not tell. ``final``: the turn is over, no more comes.
    """

    text: str
    language: Language | None = None
    final: bool = True
    doubt: str = ""


class Recognizer(Protocol):
    """Writes down speech: ``voice_agent.ears.whisper.WhisperRecognizer``, ``voice_agent.ears.remote.RemoteRecognizer``."""

    async def ready(self) -> None:
        """Return when it can listen; raise why it cannot."""
        ...

    async def transcribe(self, samples: Samples, language: SpokenLanguage = "auto") -> Transcript:
        """What is said in ``samples``, [samples] float32 mono at 16 kHz: a turn, or the part of it that is there so far.

        Silence, noise and coughs give an empty text. Cancelled, it gives up as soon as it can. Raises RecognizerError.
        """
        ...

    async def aclose(self) -> None:
        """Free everything; a second close does nothing."""
        ...
