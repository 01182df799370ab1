"""``/health``: whether the server can take a request now."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from voice_agent.server.service import Service

__all__ = ["routes"]


def routes(service: Service) -> APIRouter:
    """``GET /health``."""
    router = APIRouter()

    @router.get("/health")
    async def health() -> dict[str, Any]:
        return {"status": "ok", "streams": len(service.streams.live)}

    return router
