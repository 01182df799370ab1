"""``/health`` and ``/metrics``: whether the server can take a request now, and how it has done."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse

from voice_agent.server.metrics import CONTENT_TYPE
from voice_agent.server.service import Service

__all__ = ["Health", "routes"]

Status = Literal["ok", "starting", "full", "sick", "draining"]
_SICK_BELOW = 10.0


@dataclass(frozen=True, slots=True)
class Health:
    """The state of the server: ``rows`` are the places at the engine, ``waiting`` those who wait for one."""

    status: Status
    score: float
    rows: int
    free_rows: int
    waiting: int
    streams: int
    detail: str = ""

    @staticmethod
    def of(service: Service) -> Health:
        """What holds at this moment."""
        rows, used, waiting = service.rows()
        score = service.score.value
        status: Status = "ok"
        detail = ""
        if service.failure is not None:
            status, detail = "sick", str(service.failure)
        elif service.gate.draining:
            status = "draining"
        elif not service.ready:
            status = "starting"
        elif used >= rows or service.engine.full or len(service.streams.live) >= service.config.limits.streams:
            status = "full"
        elif score < _SICK_BELOW:
            status, detail = "sick", "recent answers were slow"
        return Health(status, round(score, 1), rows, rows - used, waiting, len(service.streams.live), detail)


def routes(service: Service) -> APIRouter:
    """``GET /health``, ``GET /metrics``."""
    router = APIRouter()
    service.metrics.watch("healthy", "1 while /health says ok", lambda: float(Health.of(service).status == "ok"))

    @router.get("/health", tags=["health"], responses={503: {"description": "starting, full, sick or draining"}})
    async def health() -> JSONResponse:
        """Whether the server can take a request: 200, or 503 with the reason."""
        now = Health.of(service)
        body: dict[str, Any] = {
            "status": now.status,
            "score": now.score,
            "rows": now.rows,
            "free_rows": now.free_rows,
            "waiting": now.waiting,
            "streams": now.streams,
        }
        if now.detail:
            body["detail"] = now.detail
        return JSONResponse(body, 200 if now.status == "ok" else 503)

    @router.get("/metrics", tags=["health"], response_class=Response)
    async def metrics() -> Response:
        """Figures for Prometheus."""
        return Response(service.metrics.text(), media_type=CONTENT_TYPE)

    return router
