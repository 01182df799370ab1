"""``/v1/speak`` as Deepgram's, by WebSocket and by POST, so that its clients stream to us by base URL.

Over the socket Speak, Flush, Clear and Close come in; audio, Metadata, Flushed, Cleared, Warning and Error go out. Source:
https://developers.deepgram.com/reference/text-to-speech/speak-streaming and the clients of Pipecat and LiveKit.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import get_args

from fastapi import APIRouter, Request, WebSocket
from pydantic import BaseModel, ConfigDict, Field

from tts_engine.types import Language
from voice_agent.server.answers import StreamedAnswer
from voice_agent.server.encoders import FORMATS, Container, check_rate, media_type
from voice_agent.server.live_events import Audio, Cancelled, Done, Event, Failed, Leaving
from voice_agent.server.live_messages import invalid, json_message, json_object, names
from voice_agent.server.live_session import Session
from voice_agent.server.one_turn import as_audio, one_turn
from voice_agent.server.raw_audio import Encoding
from voice_agent.server.refusals import ERRORS, RefusedError
from voice_agent.server.service import Service
from voice_agent.server.sockets import serve
from voice_agent.server.speaking import Speaking
from voice_agent.server.speech import check_text
from voice_agent.server.streams import Stream
from voice_agent.server.voices import Voices

__all__ = ["DeepgramDialect", "routes", "speaking_of"]

_STREAMED: dict[str, tuple[Encoding, int]] = {
    "linear16": ("pcm_s16le", 24_000),
    "mulaw": ("mulaw", 8_000),
    "alaw": ("alaw", 8_000),
}
"""Deepgram's names, and the rate where none is asked for."""
_FILES: dict[str, tuple[Container, int]] = {
    "mp3": ("mp3", 24_000),
    "opus": ("opus", 48_000),
    "flac": ("flac", 24_000),
    "aac": ("aac", 24_000),
}
_RAW_MEDIA = {"pcm_s16le": "audio/l16", "mulaw": "audio/mulaw", "alaw": "audio/alaw"}
_THEIR_MODEL = re.compile(r"(?:aura|flux)\b.*-([a-z]{2})$")


class SpeakRequest(BaseModel):
    """What ``POST /v1/speak`` takes."""

    model_config = ConfigDict(extra="forbid")
    text: str = Field(min_length=1)


def routes(service: Service) -> APIRouter:
    """``WS /v1/speak`` and ``POST /v1/speak``."""
    router = APIRouter(tags=["deepgram"], responses=ERRORS)

    @router.websocket("/v1/speak")
    async def speak(websocket: WebSocket) -> None:
        query = dict(websocket.query_params)
        await serve(websocket, service, lambda: DeepgramDialect(query, service.voices, service.config.voice))

    @router.post("/v1/speak", response_class=StreamedAnswer)
    async def speak_file(request: Request, body: SpeakRequest) -> StreamedAnswer:
        """Speaks a text as Deepgram's REST API: model, encoding, container, sample_rate and speed are in the query."""
        check_text(service, body.text, "text")
        speaking = _of_a_file(dict(request.query_params), service)
        events = one_turn(service, "deepgram", request, speaking, lambda: body.text)
        return StreamedAnswer(as_audio(events), _media(speaking))

    return router


class DeepgramDialect:
    """Each Flush ends a turn; Flushed is told when all of its audio is sent."""

    kind = "deepgram"

    def __init__(self, query: Mapping[str, str], voices: Voices, voice: str) -> None:
        """``query``: of the URL; ``voice``: the one of ``voices`` to speak where it names none of them."""
        self.speaking = speaking_of(query, voices, voice)
        self._model = query.get("model", voice)
        self._answers = 0

    def greet(self, stream: Stream) -> list[str | bytes]:
        return [
            json_message(
                "Metadata", request_id=stream.uid, model_name=self._model, model_version="sayline", model_uuid=stream.uid
            )
        ]

    def read(self, session: Session, message: str | bytes) -> None:
        order = json_object(message)
        match order.get("type"):
            case "Speak":
                text = order.get("text")
                if not isinstance(text, str):
                    raise RefusedError(400, "Speak needs text: a string", code="DATA-0000", param="text")
                session.append(text)
            case "Flush":
                session.end()
            case "Clear":
                session.cancel()
            case "Close":
                session.finish()
            case kind:
                raise RefusedError(400, f"type is {kind!r}: use Speak, Flush, Clear or Close", code="DATA-0000", param="type")

    def write(self, event: Event) -> list[str | bytes]:
        match event:
            case Audio():
                return [event.data]
            case Done():
                return [self._answer("Flushed")]
            case Cancelled():
                return [self._answer("Cleared")]
            case Failed():
                return [_failure(event)]
            case Leaving():
                return [_warning("the server shuts down: what is open is spoken, then the connection ends", "LEAVING")]
            case _:
                return []

    def _answer(self, kind: str) -> str:
        self._answers += 1
        return json_message(kind, sequence_id=self._answers - 1)


def speaking_of(query: Mapping[str, str], voices: Voices, voice: str) -> Speaking:
    """How a stream with Deepgram's parameters sounds and is sent. Raises InputError for what cannot be used.

    ``model`` is the name of one of our voices, or one of Deepgram's, which stands for ours. Parameters of Deepgram that
    mean nothing here are ignored.
    """
    return _speaking(query, _STREAMED, "linear16", voices, voice)


def _of_a_file(query: Mapping[str, str], service: Service) -> Speaking:
    """The same for a file, where other encodings and a container are possible."""
    speaking = _speaking(query, {**_STREAMED, **_FILES}, "mp3", service.voices, service.config.voice)
    container = query.get("container", "wav" if speaking.encoding == "pcm_s16le" else "none")
    if speaking.encoding == "pcm_s16le" and container == "wav":
        speaking = replace(speaking, encoding="wav")
    elif container != "none" and (speaking.encoding, container) != ("opus", "ogg"):
        raise invalid(f"container is {container!r}: use none, wav for linear16, or ogg for opus", "container")
    return speaking


def _speaking(
    query: Mapping[str, str],
    encodings: Mapping[str, tuple[Encoding | Container, int]],
    default: str,
    voices: Voices,
    voice: str,
) -> Speaking:
    name = query.get("encoding", default)
    if name not in encodings:
        raise invalid(f"encoding is {name!r}: use one of {', '.join(encodings)}", "encoding")
    encoding, rate = encodings[name]
    wanted, speed = query.get("sample_rate", str(rate)), query.get("speed", "1")
    if not re.fullmatch(r"[0-9]{1,6}", wanted):
        raise invalid(f"sample_rate is {wanted!r}: use a whole number of Hz", "sample_rate")
    if not re.fullmatch(r"[0-9]{1,2}(\.[0-9]{1,6})?", speed):
        raise invalid(f"speed is {speed!r}: use a factor, such as 1.2", "speed")
    with names("sample_rate"):
        check_rate(encoding, int(wanted))
    model = query.get("model", "")
    theirs = _THEIR_MODEL.match(model)
    if theirs and theirs[1] not in get_args(Language):
        raise invalid(f"no voice here speaks the language of {model!r}: use English or Chinese", "model")
    with names("model"):
        choice = voices.find(voice if theirs or not model else model)
    with names("speed"):
        return Speaking(choice.speaker, speed=float(speed), pitch=choice.pitch, encoding=encoding, sample_rate=int(wanted))


def _media(speaking: Speaking) -> str:
    if speaking.encoding in FORMATS:
        return media_type(speaking.encoding, speaking.sample_rate)
    return f"{_RAW_MEDIA[speaking.encoding]};rate={speaking.sample_rate};channels=1"


def _failure(event: Failed) -> str:
    error = event.error
    if error.status < 500 or event.epoch is not None:  # the stream goes on
        return _warning(str(error), error.code or "DATA-0000")
    return json_message("Error", description=str(error), code=error.code)


def _warning(text: str, code: str) -> str:
    return json_message("Warning", description=text, code=code, warn_msg=text, warn_code=code)
