"""Puts the server together: routes, errors, and the engine's life."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from tts_engine.scheduler import Scheduler, SchedulerConfig
from voice_agent.errors import SaylineError
from voice_agent.llm.deltas import ChatModel
from voice_agent.protocols import Synthesizer
from voice_agent.server import deepgram, health, live
from voice_agent.server.config import ServerConfig
from voice_agent.server.refusals import refusal
from voice_agent.server.service import Service

__all__ = ["create_app"]

_ROUTES = (health.routes, live.routes, deepgram.routes)


def create_app(config: ServerConfig, *, engine: Synthesizer | None = None, model: ChatModel | None = None) -> FastAPI:
    """The ASGI application. ``engine`` and ``model`` are used instead of the configured ones and not closed.

    ``app.state.service`` is its :class:`Service`.
    """
    own = None if engine is not None else Scheduler(config=_scheduler(config))
    service = Service(config, engine or own, model)  # type: ignore[arg-type]

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None, None]:
        if own is not None:
            own.start()
        yield
        if own is not None:
            own.close()

    app = FastAPI(title="Sayline", lifespan=lifespan)
    app.state.service = service
    for routes in _ROUTES:
        app.include_router(routes(service))

    @app.exception_handler(SaylineError)
    async def refuse(_: Request, error: SaylineError) -> JSONResponse:
        refused = refusal(error)
        headers = {} if refused.retry_after_s is None else {"retry-after": str(max(1, round(refused.retry_after_s)))}
        return JSONResponse(refused.body(), refused.status, headers)

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
