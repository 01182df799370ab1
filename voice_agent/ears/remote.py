"""Writes speech down through any server with OpenAI's ``POST /v1/audio/transcriptions``, through the ``openai`` client."""

from __future__ import annotations

from typing import Any

import numpy as np

from tts_engine.types import AudioFormat, Language, Samples
from voice_agent.audio import samples_to_pcm, wav_header
from voice_agent.ears.config import RATE
from voice_agent.ears.no_speech import LEAST_VOICED_S, Evidence, doubt, voiced_s
from voice_agent.ears.recognizer import SpokenLanguage, Transcript
from voice_agent.errors import RecognizerError
from voice_agent.llm.chunks import field
from voice_agent.llm.failures import from_exception
from voice_agent.llm.openai_access import open_client

__all__ = ["RemoteRecognizer"]

_ADVICE = {
    400: "the server could not use the request: check the model's name",
    404: "the server does not know the model or the address: check the model's name and the base URL (it ends in /v1)",
    413: "the turn is too long for the server",
    422: "the server could not use the request: check the model's name",
}
_LANGUAGES: dict[str, Language] = {"en": "en", "english": "en", "zh": "zh", "chinese": "zh", "mandarin": "zh"}
_PLAIN_ONLY = (400, 404, 422)
"""What servers answer that do not know the verbose form (404: some have a route of their own for it)."""


class RemoteRecognizer:
    """Transcriptions of an OpenAI-compatible server. Close it (``async with`` does).

    ``base_url`` and ``api_key`` default to OPENAI_BASE_URL and OPENAI_API_KEY; only OpenAI's own address needs a key. The
    audio is sent as a WAV file of 16 bits and 16 kHz; audio without any voice is not sent at all. The verbose answer, which
    tells how sure the server is, is asked for first; a server that refuses it is asked for the plain one from then on,
    and then only made-up phrases are recognised as such. ``timeout_s`` bounds the wait for the answer; ``retries``: the
    attempts after a failure that may pass.

    Raises ConfigError where the address or the key cannot be used, RecognizerError where a request fails. A cancelled
    transcription closes its request.
    """

    def __init__(
        self,
        model: str = "whisper-1",
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_s: float = 20.0,
        retries: int = 1,
    ) -> None:
        self._model = model
        self._client, url = open_client(base_url, api_key, timeout_s=timeout_s, retries=retries)
        self._where = f"the speech recognition at {url} (model {model})"
        self._verbose = True

    async def ready(self) -> None:
        """It is: the server shows with the first request whether it answers."""

    async def transcribe(self, samples: Samples, language: SpokenLanguage = "auto") -> Transcript:
        samples = np.nan_to_num(np.asarray(samples, dtype=np.float32))
        if samples.ndim != 1:
            raise RecognizerError(f"a recogniser takes mono samples, not the shape {samples.shape}")
        if voiced_s(samples) < LEAST_VOICED_S:
            return Transcript("", doubt="silence")
        wav = wav_header(AudioFormat(RATE), len(samples)) + samples_to_pcm(samples)
        answer = await self._ask(wav, language)
        text = field(answer, "text")
        if not isinstance(text, str):
            raise RecognizerError(f"{self._where} sent no transcription: check that the base URL ends in /v1")
        text = text.strip()
        reason = doubt(text, _evidence(field(answer, "segments")))
        if reason:
            return Transcript("", doubt=reason)
        told = _LANGUAGES.get(str(field(answer, "language") or "").lower())
        return Transcript(text, told or (None if language == "auto" else language))

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._client.close()

    async def __aenter__(self) -> RemoteRecognizer:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    async def _ask(self, wav: bytes, language: SpokenLanguage) -> Any:
        try:
            return await self._request(wav, language)
        except Exception as error:
            if not (self._verbose and field(error, "status_code") in _PLAIN_ONLY):
                raise self._explained(error) from error
            self._verbose = False
        try:
            return await self._request(wav, language)
        except Exception as error:
            self._verbose = True  # it was not the form of the answer
            raise self._explained(error) from error

    async def _request(self, wav: bytes, language: SpokenLanguage) -> Any:
        options: dict[str, Any] = {} if language == "auto" else {"language": language}
        return await self._client.audio.transcriptions.create(
            model=self._model,
            file=("turn.wav", wav, "audio/wav"),
            response_format="verbose_json" if self._verbose else "json",
            temperature=0,
            **options,
        )

    def _explained(self, error: Exception) -> RecognizerError:
        explained = from_exception(error, self._where, _ADVICE)
        failed = RecognizerError(str(explained))
        failed.retryable = explained.retryable
        return failed


def _evidence(segments: Any) -> Evidence:
    """What the segments of a verbose answer say together: the least doubt about speech, the mean certainty."""
    no_speech = [value for segment in segments or () if isinstance(value := field(segment, "no_speech_prob"), int | float)]
    logprobs = [value for segment in segments or () if isinstance(value := field(segment, "avg_logprob"), int | float)]
    return Evidence(min(no_speech, default=None), sum(logprobs) / len(logprobs) if logprobs else None)
