"""``WS /v1/audio/speech/stream``: tokens in, speech out. docs/server-live.md describes each message."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any, get_args

from fastapi import APIRouter, WebSocket

from tts_engine.types import Language
from voice_agent.server.encoders import check_rate
from voice_agent.server.live_events import (
    Audio,
    Cancelled,
    Configured,
    Done,
    Event,
    Failed,
    Flushed,
    Heard,
    Leaving,
    Started,
    Words,
    Written,
)
from voice_agent.server.live_messages import Order, invalid, json_message, json_object, names
from voice_agent.server.live_session import Session
from voice_agent.server.raw_audio import ENCODINGS
from voice_agent.server.service import Service
from voice_agent.server.sockets import serve
from voice_agent.server.speaking import Speaking
from voice_agent.server.streams import Stream
from voice_agent.server.voices import Voices

__all__ = ["LiveDialect", "routes"]

_TRANSPORTS = ("binary", "base64")
_AHEAD_RANGE_S = (0.2, 3600.0)
_MOST = 1 << 53
_OF_SPEAKING = ("language", "speed", "encoding", "sample_rate", "ahead_s")
_SETTINGS = ("voice", *_OF_SPEAKING, "transport", "words")


def routes(service: Service) -> APIRouter:
    """``WS /v1/audio/speech/stream``."""
    router = APIRouter()

    @router.websocket("/v1/audio/speech/stream")
    async def stream(websocket: WebSocket) -> None:
        query = dict(websocket.query_params)
        await serve(websocket, service, lambda: LiveDialect(query, service.voices, service.config.voice))

    return router


class LiveDialect:
    """Our own protocol: JSON messages with a ``type``, audio as binary messages or base64."""

    kind = "live"

    def __init__(self, query: Mapping[str, str], voices: Voices, voice: str) -> None:
        """``query``: settings of the URL, the same as of "configure"; ``voice``: the one to speak if it names none."""
        self.speaking = Speaking()
        self._voices = voices
        self._voice = voice
        self._transport = "binary"
        self._words = True
        self._orders: dict[str, Callable[[Session, Order], None]] = {
            "configure": self._configure,
            "append": lambda session, order: session.append(_text(order)),
            "flush": lambda session, order: session.flush(),
            "end": lambda session, order: session.end(),
            "cancel": lambda session, order: session.cancel(),
            "truncate": lambda session, order: session.truncate(*_place(session, order)),
            "played": lambda session, order: session.played(*_place(session, order)),
            "close": lambda session, order: session.finish(),
        }
        self.speaking = self._set({"voice": voice, **{name: _from_query(value) for name, value in query.items()}})

    def greet(self, stream: Stream) -> list[str | bytes]:
        return [json_message("ready", session=stream.uid, **self._settings())]

    def read(self, session: Session, message: str | bytes) -> None:
        order = json_object(message)
        kind = order.get("type")
        if kind not in self._orders:
            raise invalid(f"type is {kind!r}: use one of {', '.join(self._orders)}", "type")
        self._orders[kind](session, order)

    def write(self, event: Event) -> list[str | bytes]:
        match event:
            case Audio():
                return [self._audio(event)]
            case Words():
                words = [asdict(word) for word in event.words]
                return [json_message("words", epoch=event.epoch, words=words)] if self._words else []
            case Configured():
                return [json_message("configured", **self._settings())]
            case Started() | Written() | Flushed():
                return [json_message(type(event).__name__.lower(), **asdict(event))]
            case Done():
                return [json_message("done", epoch=event.epoch, samples=event.samples, **_summary(event))]
            case Heard():
                return [json_message("heard", **_heard(event))]
            case Cancelled():
                heard = None if event.heard is None else _heard(event.heard)
                return [json_message("cancelled", epoch=event.epoch, heard=heard)]
            case Failed():
                return [json_message("error", epoch=event.epoch, **_failure(event))]
            case Leaving():
                return [
                    json_message("leaving", message="the server shuts down: what is open is spoken, then the connection ends")
                ]

    def _configure(self, session: Session, order: Order) -> None:
        self.speaking = self._set({name: value for name, value in order.items() if name != "type"})
        session.configure(self.speaking)

    def _set(self, wanted: Order) -> Speaking:
        """Our settings with those that are wanted. Raises InputError for what cannot be used."""
        unknown = sorted(set(wanted) - set(_SETTINGS))
        if unknown:
            raise invalid(f"unknown setting {unknown[0]!r}: there are {', '.join(_SETTINGS)}", unknown[0])
        given = {name: value for name, value in wanted.items() if value is not None or name == "language"}
        for name, known in (("transport", _TRANSPORTS), ("encoding", ENCODINGS), ("language", (None, *get_args(Language)))):
            if name in given and given[name] not in known:
                raise invalid(f"{name} is {given[name]!r}: use one of {', '.join(map(str, known))}", name)
        if not isinstance(given.get("words", True), bool):
            raise invalid("words is true or false", "words")
        if not isinstance(given.get("voice", ""), str):
            raise invalid("voice is the name of a voice", "voice")
        for name in ("speed", "ahead_s", "sample_rate"):
            if name in given and not _is_number(given[name]):
                raise invalid(f"{name} is {given[name]!r}: use a number", name)
        if "sample_rate" in given:
            if given["sample_rate"] != int(given["sample_rate"]):
                raise invalid(f"sample_rate is {given['sample_rate']}: use a whole number of Hz", "sample_rate")
            given["sample_rate"] = int(given["sample_rate"])
            with names("sample_rate"):
                check_rate(given.get("encoding", self.speaking.encoding), given["sample_rate"])
        least, most = _AHEAD_RANGE_S
        if not least <= given.get("ahead_s", least) <= most:
            raise invalid(f"ahead_s is {given['ahead_s']}: use {least:g} to {most:g} seconds", "ahead_s")
        with names("voice"):
            choice = self._voices.find(given.get("voice", self._voice))
        own = {name: value for name, value in given.items() if name in _OF_SPEAKING}
        with names("speed"):
            speaking = replace(self.speaking, **{**own, "voice": choice.speaker, "pitch": choice.pitch})
        self._voice = choice.name
        self._transport = given.get("transport", self._transport)
        self._words = given.get("words", self._words)
        return speaking

    def _settings(self) -> dict[str, Any]:
        own = {name: getattr(self.speaking, name) for name in _OF_SPEAKING}
        return {"voice": self._voice, **own, "channels": 1, "transport": self._transport, "words": self._words}

    def _audio(self, event: Audio) -> str | bytes:
        if self._transport == "binary":
            return event.data
        data = base64.b64encode(event.data).decode("ascii")
        return json_message("audio", epoch=event.epoch, start=event.start, samples=event.samples, audio=data)


def _text(order: Order) -> str:
    text = order.get("text")
    if not isinstance(text, str):
        raise invalid("append needs text: a string", "text")
    return text


def _place(session: Session, order: Order) -> tuple[int, int]:
    """Turn and sample that an order means: by "samples", or by "ms"."""
    epoch = order.get("epoch")
    if not isinstance(epoch, int) or isinstance(epoch, bool):
        raise invalid("epoch is the number of a turn, as in started", "epoch")
    given = [name for name in ("samples", "ms") if name in order]
    if len(given) != 1 or not _is_number(order[given[0]]) or order[given[0]] < 0:
        raise invalid("say how much of the turn was played: samples, or ms, as a number that is not negative", "samples")
    value = order[given[0]]
    return epoch, int(value if given[0] == "samples" else value * session.sample_rate(epoch) / 1000)


def _heard(heard: Heard) -> dict[str, Any]:
    return {**asdict(heard), "chars": len(heard.text)}


def _summary(event: Done) -> dict[str, Any]:
    report = event.report
    return {
        "duration_ms": round(1000 * event.duration_s, 2),
        "chars": len(report.text),
        "sentences": len(report.sentences),
        "skipped": [{"kind": part.kind, "start": part.start, "end": part.end} for part in report.skipped],
        "unspoken": report.unspoken,
        "warnings": report.warnings,
    }


def _failure(event: Failed) -> dict[str, Any]:
    error = event.error
    return {
        "code": error.code or "invalid",
        "message": str(error),
        "param": error.param,
        "retryable": error.retryable,
        "retry_after_s": error.retry_after_s,
        "text": event.text,
    }


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _MOST


def _from_query(value: str) -> Any:
    """The value of a setting in the URL: numbers and true, false, null are JSON, all else is text."""
    try:
        parsed = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return value if isinstance(parsed, str | list | dict) else parsed
