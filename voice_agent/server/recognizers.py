"""Who writes down what users say, as the settings name it; shared by all peers, loaded when the first one needs it."""

from __future__ import annotations

from tts_engine.types import Samples
from voice_agent.ears.recognizer import Recognizer, SpokenLanguage, Transcript
from voice_agent.ears.remote import RemoteRecognizer
from voice_agent.ears.whisper import WhisperRecognizer
from voice_agent.errors import RecognizerError
from voice_agent.server.config import RecognizerSettings

__all__ = ["make_recognizer"]

_REMOTE_MODEL = "whisper-1"


class _Nobody:
    """Users type."""

    async def ready(self) -> None:
        raise RecognizerError("this server recognises no speech: its setting recognizer.kind is none")

    async def transcribe(self, samples: Samples, language: SpokenLanguage = "auto") -> Transcript:
        await self.ready()
        raise AssertionError

    async def aclose(self) -> None:
        """There is nothing to close."""


def make_recognizer(settings: RecognizerSettings) -> Recognizer:
    """Nothing is loaded yet: ``ready`` does it, and raises why it cannot."""
    if settings.kind == "none":
        return _Nobody()
    if settings.kind == "openai":
        return RemoteRecognizer(settings.model or _REMOTE_MODEL, base_url=settings.base_url, api_key=settings.api_key)
    return WhisperRecognizer(settings.model)
