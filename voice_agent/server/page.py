"""The web page at ``/``: its files, what it has to know of the server, and the figures of its admin tab."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from voice_agent.errors import SaylineError
from voice_agent.server.guard import caller_of
from voice_agent.server.health import Health
from voice_agent.server.refusals import ERRORS
from voice_agent.server.service import Service
from voice_agent.server.voices import OPENAI_VOICES

__all__ = ["POLICY", "overview", "routes"]

_WEB = Path(__file__).with_name("web")
_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "media-src 'self' blob:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
"""The page runs its own scripts and nothing else, and nobody may frame it: it uses the microphone."""
_HEADERS = {
    "content-security-policy": POLICY,
    "permissions-policy": "microphone=(self), camera=(), geolocation=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-cache",
}


@dataclass(frozen=True, slots=True)
class _File:
    """One file of the page; ``tag`` changes with its content."""

    content: bytes
    media_type: str
    tag: str


def _files() -> Mapping[str, _File]:
    files = {}
    for path in sorted(_WEB.iterdir()):
        if path.suffix in _TYPES:
            content = path.read_bytes()
            files[path.name] = _File(content, _TYPES[path.suffix], f'"{hashlib.sha256(content).hexdigest()[:20]}"')
    return files


def routes(service: Service) -> APIRouter:
    """``GET /``, the page's files, ``GET /page/config``, ``GET /admin/streams``."""
    router = APIRouter()
    files = _files()
    warming: set[asyncio.Task[None]] = set()

    def file_route(path: str, file: _File) -> None:
        @router.get(path, include_in_schema=False)
        async def get(request: Request) -> Response:
            headers = {**_HEADERS, "etag": file.tag}
            if request.headers.get("if-none-match") == file.tag:
                return Response(None, 304, headers)
            return Response(file.content, 200, headers, file.media_type)

    file_route("/", files["index.html"])
    for name, file in files.items():
        if name != "index.html":
            file_route(f"/{name}", file)

    @router.get("/page/config", tags=["page"], responses=ERRORS)
    async def config(request: Request) -> dict[str, Any]:
        """What a page needs before it connects. Needs a key where calls do: ICE servers may have passwords."""
        async with service.gate.admit(*caller_of(request.scope)):
            if not warming:  # whoever opens the page may want to talk soon
                warming.add(asyncio.create_task(_warm(service), name="sayline-warm"))
            return page_config(service)

    @router.get("/admin/streams", tags=["page"], responses=ERRORS)
    async def streams(request: Request) -> dict[str, Any]:
        """The live streams, those of other keys without their ids and names, and the latencies of recent turns."""
        return overview(service, request.state.guest.name)

    async def close() -> None:
        for task in warming:
            task.cancel()
        if warming:
            await asyncio.wait(warming)

    service.on_close.append(close)

    return router


async def _warm(service: Service) -> None:
    with contextlib.suppress(SaylineError):  # those who talk are told
        await service.recognizer.ready()


def page_config(service: Service) -> dict[str, Any]:
    """Voices (Sayline's own, each once) and ICE servers as ``RTCPeerConnection`` takes them."""
    voices = [
        {"id": choice.name, "label": choice.name.capitalize(), "language": choice.languages[0]}
        for choice in service.voices.choices.values()
        if choice.name not in OPENAI_VOICES
    ]
    servers = []
    for server in service.config.rtc.ice_servers:
        secret = {"username": server.username, "credential": server.credential} if server.username else {}
        servers.append({"urls": list(server.urls), **secret})
    return {"voices": voices, "ice_servers": servers}


def overview(service: Service, guest: str) -> dict[str, Any]:
    """The live streams and recent figures, for the admin tab; ``guest`` is not told who else is there."""
    now = Health.of(service)
    return {
        "status": now.status,
        "score": now.score,
        "free": now.free_rows,
        "waiting": now.waiting,
        "underruns": service.metrics.underruns,
        "latency": service.metrics.percentiles(),
        "live": [
            stream.row() if stream.guest == guest else {**stream.row(), "uid": None, "guest": None}
            for stream in service.streams.live.values()
        ],
    }
