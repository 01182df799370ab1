"""Puts the server together: routes, errors, and the engine's life."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

from tts_engine.engine import Engine
from tts_engine.scheduler import Scheduler, SchedulerConfig
from voice_agent.llm.deltas import ChatModel
from voice_agent.protocols import Synthesizer
from voice_agent.server import chat, deepgram, health, live, page, rtc, speech
from voice_agent.server.config import ServerConfig
from voice_agent.server.error_answers import answer_errors
from voice_agent.server.guard import Guard
from voice_agent.server.service import Service

__all__ = ["create_app"]

_ROUTES = (health.routes, speech.routes, chat.routes, live.routes, deepgram.routes, rtc.routes, page.routes)
_ABOUT = "Speech while it is made: OpenAI's endpoints, live sockets and WebRTC. See docs/server.md."


def create_app(config: ServerConfig, *, engine: Synthesizer | None = None, model: ChatModel | None = None) -> FastAPI:
    """The ASGI application. ``engine`` and ``model`` are used instead of the configured ones and not closed.

    ``app.state.service`` is its :class:`Service`. The engine loads while the first requests are already taken.
    """
    own = None if engine is not None else Scheduler(lambda: Engine.load(config=config.engine.arithmetic()), _scheduler(config))
    shared = engine or own
    assert shared is not None
    service = Service(config, shared, model)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None, None]:
        starting = asyncio.create_task(service.start(), name="sayline-start")
        try:
            yield
        finally:
            starting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await starting
            try:
                await service.close()
            finally:
                if own is not None:
                    await asyncio.to_thread(own.close)

    app = FastAPI(title="Sayline", description=_ABOUT, lifespan=lifespan, docs_url=None, redoc_url=None)
    app.state.service = service
    for routes in _ROUTES:
        app.include_router(routes(service))
    app.add_middleware(Guard, gate=service.gate, config=config, refused=service.metrics.refused)
    if config.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=config.origins,
            allow_methods=("GET", "POST", "DELETE"),
            allow_headers=("*",),
            expose_headers=("retry-after", "x-request-id"),
        )
    answer_errors(app, service)
    return app


def _scheduler(config: ServerConfig) -> SchedulerConfig:
    engine = config.engine
    return SchedulerConfig(
        sessions=engine.sessions,
        queued_sessions=engine.queued_sessions,
        ahead_s=engine.ahead_s,
        workers=engine.workers,
        memory_limit_mb=engine.memory_limit_mb,
    )
