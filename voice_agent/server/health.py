"""``/health`` and ``/metrics``: whether the server can take a request now, and how it has done."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse

from voice_agent.server.metrics import CONTENT_TYPE

if TYPE_CHECKING:
    from voice_agent.server.service import Service

__all__ = ["Health", "Score", "routes"]

Status = Literal["ok", "starting", "full", "sick", "draining"]
_BEST = 100.0
_SICK_BELOW = 10.0
_RECENT_S = 60.0
_RECENT = 200
_SLOW_S = 1.0
_SLOW_IN_A_ROW = 3


class Score:
    """How quick the recent answers were, 0 to 100.

    Each answer makes it 0.9 · score + max(0, 100 − latency in ms), 100 at most; the third in a row above a second, and
    each further one, halves it. Answers count for a minute, so a server that gets no requests recovers.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._answers: deque[tuple[float, float]] = deque(maxlen=_RECENT)

    def answered(self, latency_s: float) -> None:
        """An answer's first sound was there after so long."""
        self._answers.append((self._now_s(), latency_s))

    @property
    def value(self) -> float:
        since_s = self._now_s() - _RECENT_S
        while self._answers and self._answers[0][0] < since_s:
            self._answers.popleft()
        score, slow = _BEST, 0
        for _, latency_s in self._answers:
            score = min(_BEST, 0.9 * score + max(0.0, 100 - 1000 * latency_s))
            slow = slow + 1 if latency_s > _SLOW_S else 0
            if slow >= _SLOW_IN_A_ROW:
                score /= 2
        return score


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
