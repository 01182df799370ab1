"""A single turn as an answer over HTTP: what happens while it is spoken, and the bytes of its file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from fastapi import Request

from voice_agent.server.live_events import Audio, Event, Failed
from voice_agent.server.live_session import Session
from voice_agent.server.refusals import RefusedError
from voice_agent.server.service import Service
from voice_agent.server.speaking import Speaking

__all__ = ["as_audio", "one_turn"]


async def one_turn(
    service: Service, kind: str, request: Request, speaking: Speaking, source: Callable[[], Any]
) -> AsyncGenerator[Event, None]:
    """The events of a turn that speaks what ``source`` gives, a text or an LLM's stream. Closing it stops everything."""
    guest = request.state.guest
    with service.streams.open(kind, guest.name, speaking.voice, request.state.uid) as stream:
        stream.asked()
        session = Session(service.engine.of(guest.account), service.config.limits, stream, replace(speaking, whole=True))
        session.say(source())
        session.finish()
        running = asyncio.create_task(session.run(), name="sayline-one-turn")
        try:
            while (event := await session.next()) is not None:
                if isinstance(event, Failed):
                    stream.outcome = event.error.code or "refused"
                yield event
        finally:
            running.cancel()
            await asyncio.wait({running})


async def as_audio(events: AsyncGenerator[Event, None]) -> AsyncGenerator[bytes, None]:
    """The bytes of one file. What failed is raised when everything else was given."""
    failure: RefusedError | None = None
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Audio):
                yield event.data
            elif isinstance(event, Failed):
                failure = failure or event.error
    if failure is not None:
        raise failure
