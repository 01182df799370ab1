"""``POST /v1/chat/speech``: a conversation goes in, the model's answer comes out as speech while it is written."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import asdict
from typing import Any, Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, field_validator

from voice_agent.server.answers import StreamedAnswer
from voice_agent.server.encoders import media_type
from voice_agent.server.live_events import Audio, Done, Event, Failed, Words, Written
from voice_agent.server.one_turn import as_audio, one_turn
from voice_agent.server.refusals import ERRORS
from voice_agent.server.service import Service
from voice_agent.server.speech import SpokenRequest, check_text, speaking_of

__all__ = ["ChatSpeechRequest", "routes"]


class ChatMessage(BaseModel):
    """A message of the conversation, as in OpenAI's chat completions; of content in parts the text is read."""

    model_config = ConfigDict(extra="forbid")
    role: Literal["system", "developer", "user", "assistant"]
    content: str
    name: str | None = Field(None, max_length=64)

    @field_validator("content", mode="before")
    @classmethod
    def _in_parts(cls, content: Any) -> Any:
        """[{"type": "text", "text": …}] as one text; what is no text is left, and refused."""
        if isinstance(content, list) and all(isinstance(part, dict) and part.get("type") == "text" for part in content):
            texts = [part.get("text") for part in content]
            if all(isinstance(text, str) for text in texts):
                return "".join(texts)
        return content


class ChatSpeechRequest(SpokenRequest):
    """What ``POST /v1/chat/speech`` takes: a conversation, and how its answer is to be spoken, as /v1/audio/speech.

    With ``stream_format`` sse the answer's text, its words with times and its audio come as events.
    """

    messages: list[ChatMessage] = Field(min_length=1, max_length=1000, description="The last one is answered.")


def routes(service: Service) -> APIRouter:
    """``POST /v1/chat/speech``."""
    router = APIRouter(tags=["speech"], responses=ERRORS)

    @router.post("/v1/chat/speech", response_class=StreamedAnswer)
    async def create_chat_speech(request: Request, body: ChatSpeechRequest) -> StreamedAnswer:
        """Speaks the model's answer. The first bytes are sent when the first packet is made."""
        check_text(service, "".join(message.content for message in body.messages), "messages")
        speaking = speaking_of(service, body)
        model = service.chat_model()
        messages = [message.model_dump(exclude_none=True) for message in body.messages]
        events = one_turn(service, "chat", request, speaking, lambda: model.reply(messages))
        if body.stream_format == "sse":
            return StreamedAnswer(_as_sse(events), "text/event-stream", {"cache-control": "no-store"})
        return StreamedAnswer(as_audio(events), media_type(body.response_format, body.sample_rate))

    return router


async def _as_sse(events: AsyncGenerator[Event, None]) -> AsyncGenerator[bytes, None]:
    """Server-sent events. An error before anything was written is raised."""
    began = False
    async with aclosing(events):
        async for event in events:
            match event:
                case Written():
                    values: Mapping[str, Any] = {"type": "chat.text.delta", "delta": event.text}
                case Words():
                    values = {"type": "speech.words", "words": [asdict(word) for word in event.words]}
                case Audio():
                    values = {"type": "speech.audio.delta", "audio": base64.b64encode(event.data).decode("ascii")}
                case Failed():
                    if not began:
                        raise event.error
                    values = {"type": "error", **event.error.body()}
                case Done():
                    values = {
                        "type": "speech.audio.done",
                        "text": event.report.text,
                        "duration_s": round(event.duration_s, 5),
                        "unspoken": event.report.unspoken,
                    }
                case _:
                    continue
            began = True
            yield f"event: {values['type']}\ndata: {json.dumps(values, ensure_ascii=False)}\n\n".encode()
