"""Speaks through any server with OpenAI's ``POST /v1/audio/speech``, through the ``openai`` client."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from tts_engine.types import AudioFormat, Utterance
from voice_agent.errors import EngineError
from voice_agent.llm.failures import from_exception
from voice_agent.llm.openai_access import open_client
from voice_agent.synthesizers.session import QueueSynthesizer, Sound
from voice_agent.synthesizers.sound_reader import SoundReader

_SPEEDS = (0.25, 4.0)
_ADVICE = {
    400: "the server could not use the request: check the names of the model and the voice",
    404: "the server does not know the model or the address: check the model's name and the base URL (it ends in /v1)",
    413: "the sentence is too long for the server",
    422: "the server could not use the request: check the names of the model and the voice",
}


class OpenAISpeech(QueueSynthesizer):
    """Speech of an OpenAI-compatible server, played while it is received. Close it (``async with`` does).

    ``base_url`` and ``api_key`` default to OPENAI_BASE_URL and OPENAI_API_KEY; only OpenAI's own address needs a key.
    ``voice`` speaks utterances whose voice is "auto"; others name their own. Asks for PCM, which is 24 kHz mono of 16
    bits; ``format`` is for servers whose PCM is another, and WAV is taken as well. ``timeout_s`` bounds each wait for
    the next bytes, ``retries`` the attempts before the first of them. Word times are estimated: the API has none.

    Raises ConfigError where the address or the key cannot be used; a request that fails gives an EngineError with what
    to do about it. A cancel closes the request.
    """

    def __init__(
        self,
        model: str = "gpt-4o-mini-tts",
        voice: str = "alloy",
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        format: AudioFormat | None = None,
        timeout_s: float = 30.0,
        retries: int = 1,
    ) -> None:
        self._model, self._voice, self._format = model, voice, format or AudioFormat()
        self._client, url = open_client(base_url, api_key, timeout_s=timeout_s, retries=retries)
        self._where = f"the speech server at {url} (model {model})"

    async def sounds(self, utterance: Utterance) -> AsyncGenerator[Sound, None]:
        request = self._client.audio.speech.with_streaming_response.create(
            model=self._model,
            voice=self._voice if utterance.voice == "auto" else utterance.voice,
            input=utterance.text,
            response_format="pcm",
            speed=min(max(utterance.speed, _SPEEDS[0]), _SPEEDS[1]),
        )
        try:
            async with request as response:
                kind = response.headers.get("content-type", "").partition(";")[0].strip()
                if kind in ("audio/mpeg", "audio/aac", "audio/ogg", "audio/flac") or kind.startswith(
                    ("text/", "application/json")
                ):
                    raise EngineError(f"{self._where} sent {kind} where PCM was asked for: use a server that can give it")
                reader = SoundReader(self._format)
                async for data in response.iter_bytes():
                    for sound in reader.feed(data):
                        yield sound
                for sound in reader.flush():
                    yield sound
        except EngineError:
            raise
        except Exception as error:
            explained = from_exception(error, self._where, _ADVICE)
            failed = EngineError(str(explained))
            failed.retryable = explained.retryable
            raise failed from error

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._client.close()

    async def __aenter__(self) -> OpenAISpeech:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()
