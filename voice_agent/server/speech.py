"""``POST /v1/audio/speech`` as OpenAI's, and the lists of models and voices."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, model_validator

from tts_engine.text.language import detect_language
from voice_agent.errors import InputError, clipped
from voice_agent.own_engine import ENGINE_FORMAT
from voice_agent.server.answers import StreamedAnswer
from voice_agent.server.encoders import RATE_RANGE, Container, check_rate, media_type
from voice_agent.server.instructions import read_instructions
from voice_agent.server.live_events import Audio, Done, Event, Failed
from voice_agent.server.one_turn import as_audio, one_turn
from voice_agent.server.refusals import ERRORS, RefusedError, refusal
from voice_agent.server.service import Service
from voice_agent.server.speaking import SPEED_RANGE, Speaking
from voice_agent.server.voices import VoiceChoice

__all__ = ["MODELS", "SpeechRequest", "SpokenRequest", "VoiceId", "check_text", "routes", "speaking_of"]

MODELS = (
    "sayline", "tts-1", "tts-1-hd", "tts-1-1106", "tts-1-hd-1106",
    "gpt-4o-mini-tts", "gpt-4o-mini-tts-2025-03-20", "gpt-4o-mini-tts-2025-12-15",
)  # fmt: skip
"""All of them are the one voice folder; OpenAI's names are there so that clients need not be changed."""
_CREATED = 1_790_000_000
_MEDIA: dict[str, Any] = {f"audio/{kind}": {} for kind in ("mpeg", "ogg", "aac", "flac", "wav", "pcm")}


class VoiceId(BaseModel):
    """A voice as an object."""

    model_config = ConfigDict(extra="forbid")
    id: str = Field(min_length=1, max_length=200)


class SpokenRequest(BaseModel):
    """How a request wants to be spoken, and in which form the speech is to come. Null is as good as left out."""

    model_config = ConfigDict(extra="forbid")
    voice: Annotated[str, Field(min_length=1, max_length=200)] | VoiceId | None = Field(
        None, description="Any of /v1/audio/voices, or an object with its id. The server's own choice when left out."
    )
    instructions: str | None = Field(
        None, max_length=4096, description="Words such as slowly, quiet or 快一点 change speed, volume and pitch."
    )
    response_format: Container = "mp3"
    speed: float = Field(1.0, ge=SPEED_RANGE[0], le=SPEED_RANGE[1], allow_inf_nan=False)
    sample_rate: int = Field(
        ENGINE_FORMAT.sample_rate, ge=RATE_RANGE[0], le=RATE_RANGE[1], description="Hz; an extension of Sayline's."
    )
    stream_format: Literal["audio", "sse"] = "audio"

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, given: Any) -> Any:
        return {name: value for name, value in given.items() if value is not None} if isinstance(given, dict) else given


class SpeechRequest(SpokenRequest):
    """What ``POST /v1/audio/speech`` takes."""

    input: str = Field(min_length=1, description="The text; markdown and tags are read as in docs/text.md.")
    model: str = Field(max_length=200, description="Any of /v1/models.")


def routes(service: Service) -> APIRouter:
    """``POST /v1/audio/speech``, ``GET /v1/models``, ``GET /v1/models/{id}``, ``GET /v1/audio/models`` and ``voices``."""
    router = APIRouter(tags=["speech"], responses=ERRORS)

    @router.post(
        "/v1/audio/speech",
        response_class=StreamedAnswer,
        responses={200: {"content": {**_MEDIA, "text/event-stream": {}}, "description": "The speech, while it is made."}},
    )
    async def create_speech(request: Request, body: SpeechRequest) -> StreamedAnswer:
        """Speaks a text. The first bytes are sent when the first packet is made."""
        check_text(service, body.input, "input")
        check_model(body.model)
        speaking = speaking_of(service, body, body.input)
        events = one_turn(service, "speech", request, speaking, lambda: body.input)
        if body.stream_format == "sse":
            return StreamedAnswer(_as_sse(events, len(body.input)), "text/event-stream", {"cache-control": "no-store"})
        return StreamedAnswer(as_audio(events), media_type(body.response_format, body.sample_rate))

    @router.get("/v1/models")
    async def list_models() -> dict[str, Any]:
        """The names that requests may give as model."""
        return {"object": "list", "data": [_model(name) for name in MODELS]}

    @router.get("/v1/audio/models")
    async def list_speech_models() -> dict[str, Any]:
        """The same, in the form in which Open WebUI asks for them."""
        return {"models": [{"id": name, "name": name} for name in MODELS]}

    @router.get("/v1/models/{model}")
    async def get_model(model: str) -> dict[str, Any]:
        """One of the models."""
        return _model(check_model(model))

    @router.get("/v1/audio/voices")
    async def list_voices() -> dict[str, Any]:
        """The names that requests may give as voice, Sayline's own first."""
        return {"object": "list", "voices": [_voice(choice) for choice in service.voices.choices.values()]}

    return router


def check_text(service: Service, text: str, param: str) -> None:
    """Raises RefusedError (400) for more text than a request may have."""
    most = service.config.limits.text_chars
    if len(text) > most:
        raise RefusedError(
            400,
            f"{param} has {len(text)} characters, the limit is {most}: send it in parts",
            code="text_too_long",
            param=param,
        )


def speaking_of(service: Service, body: SpokenRequest, text: str = "") -> Speaking:
    """How the request wants to be spoken; everything in it is checked. Raises RefusedError that names the parameter.

    ``text``: what is to be spoken, as far as that is known.
    """
    try:
        given = body.voice.id if isinstance(body.voice, VoiceId) else body.voice
        choice = service.voices.find(given if given is not None else service.config.voice)
    except InputError as error:
        raise RefusedError(400, str(error), code="voice_not_found", param="voice") from None
    if text and (language := detect_language(text)) not in choice.languages:
        message = f"voice {choice.name} speaks {', '.join(choice.languages)}, and the input is {language}: use auto"
        raise RefusedError(400, message, code="voice_language", param="voice")
    try:
        check_rate(body.response_format, body.sample_rate)
    except InputError as error:
        raise refusal(error, "sample_rate") from None
    asked = read_instructions(body.instructions or "")
    low, high = SPEED_RANGE
    return Speaking(
        voice=choice.speaker,
        speed=min(max(body.speed * asked.speed, low), high),
        pitch=choice.pitch + asked.pitch,
        volume=asked.volume,
        encoding=body.response_format,
        sample_rate=body.sample_rate,
    )


def check_model(name: str) -> str:
    """Raises RefusedError (404) for a model that is not there."""
    if name not in MODELS:
        message = f"there is no model {clipped(name)!r}; there are {', '.join(MODELS)}"
        raise RefusedError(404, message, code="model_not_found", param="model")
    return name


async def _as_sse(events: AsyncGenerator[Event, None], characters: int) -> AsyncGenerator[bytes, None]:
    """Server-sent events: audio in base64, then what was used; an error in the middle is the last event."""
    began, duration_s, failure = False, 0.0, None
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Audio):
                began = True
                yield _event("speech.audio.delta", audio=base64.b64encode(event.data).decode("ascii"))
            elif isinstance(event, Failed):
                failure = failure or event.error
            elif isinstance(event, Done):
                duration_s = event.duration_s
    if failure is None:
        yield _event("speech.audio.done", usage=_usage(characters, duration_s))
    elif began:
        yield _event("error", **failure.body())
    else:
        raise failure


def _event(kind: str, **values: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **values})}\n\n".encode()


def _usage(characters: int, audio_s: float) -> dict[str, Any]:
    """OpenAI counts tokens; ours are characters of the text and frames of 25 ms of the audio, and both are said as such."""
    frames = round(audio_s * 40)
    return {
        "input_tokens": characters,
        "output_tokens": frames,
        "total_tokens": characters + frames,
        "characters": characters,
        "audio_seconds": round(audio_s, 3),
    }


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": _CREATED, "owned_by": "sayline"}


def _voice(choice: VoiceChoice) -> dict[str, Any]:
    return {
        "id": choice.name,
        "name": choice.name,
        "object": "voice",
        "languages": list(choice.languages),
        "description": choice.description,
    }
