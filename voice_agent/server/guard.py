"""What every HTTP request has to pass before a route sees it: the gate, and the bounds on what it may send."""

from __future__ import annotations

import asyncio
import math
import uuid
from collections.abc import Callable

from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from voice_agent.server.auth import Gate
from voice_agent.server.config import ServerConfig
from voice_agent.server.refusals import RefusedError

__all__ = ["Guard", "answer", "caller_of"]

_GUARDED = ("/v1/", "/metrics", "/admin/")
_BY_THEMSELVES = "/rtc/"
_SDP = "/rtc/offer"


class Guard:
    """ASGI middleware. Paths under ``/v1/``, ``/metrics`` and ``/admin/`` need to be admitted, and are until their answer
    is sent: the Guest is ``request.state.guest``. Other paths, and WebSockets, ask ``service.gate`` themselves where they
    need to; those under ``/rtc/`` have shown a key before their body is read. The pages that may call are checked for all
    of HTTP. ``request.state.uid`` is the ``x-request-id`` of the answer. HEAD is answered as GET, without its body."""

    def __init__(self, app: ASGIApp, gate: Gate, config: ServerConfig, refused: Callable[[RefusedError], None]) -> None:
        """``refused`` hears of each request that is refused here."""
        self._app = app
        self._refused = refused
        self._gate = gate
        self._config = config

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers, client = caller_of(scope)
        if scope["method"] == "HEAD":  # whoever serves it leaves the body out
            scope = {**scope, "method": "GET"}
        state = scope.setdefault("state", {})
        state["uid"] = uid = uuid.uuid4().hex
        limits = self._config.limits
        most = limits.sdp_bytes if scope["path"] == _SDP else limits.body_bytes
        body = _Body(receive, most, limits.body_s)
        started = False

        async def forward(message: Message) -> None:
            nonlocal started
            if body.refused is None or started:  # what a route makes of a body that was cut off is no answer
                started = True
                await name(message)

        async def name(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], (b"x-request-id", uid.encode())]}
            await send(message)

        try:
            body.announced(headers.get("content-length", ""))
            if scope["path"].startswith(_GUARDED):
                async with self._gate.admit(headers, client) as state["guest"]:
                    await self._app(scope, body.receive, forward)
            else:
                if scope["path"].startswith(_BY_THEMSELVES):
                    self._gate.key_of(headers)
                else:
                    self._gate.check_origin(headers)
                await self._app(scope, body.receive, forward)
        except RefusedError as error:
            body.refused = body.refused or error
        if body.refused is not None and not started:
            self._refused(body.refused)
            await answer(body.refused)(scope, receive, name)


class _Body:
    """A request's body with bounds on its length and on how long it may take. ``refused``: why it was cut off."""

    def __init__(self, receive: Receive, most_bytes: int, most_s: float) -> None:
        self.refused: RefusedError | None = None
        self._receive = receive
        self._most_bytes = most_bytes
        self._most_s = most_s
        self._deadline_s = asyncio.get_running_loop().time() + most_s
        self._taken = 0
        self._whole = False

    def announced(self, length: str) -> None:
        """The Content-Length that the client sent, "" without one."""
        if length.isdecimal() and int(length[:20]) > self._most_bytes:
            raise self._too_long()

    async def receive(self) -> Message:
        if self._whole:
            return await self._receive()
        if self.refused is not None:
            raise self.refused
        try:
            async with asyncio.timeout_at(self._deadline_s):
                message = await self._receive()
        except TimeoutError:
            self.refused = RefusedError(
                408, f"the request's body did not arrive within {self._most_s:g} s", code="request_timeout"
            )
            raise self.refused from None
        self._taken += len(message.get("body", b""))
        self._whole = not message.get("more_body", False)
        if self._taken > self._most_bytes:
            self.refused = self._too_long()
            raise self.refused
        return message

    def _too_long(self) -> RefusedError:
        return RefusedError(413, f"the request's body is longer than {self._most_bytes} bytes", code="request_too_large")


def answer(error: RefusedError) -> Response:
    """A refusal as OpenAI's APIs send it. What was not read of the request is left: the connection closes."""
    headers = {}
    if error.retry_after_s is not None:
        headers["retry-after"] = str(max(1, math.ceil(error.retry_after_s)))
    if error.status == 401:
        headers["www-authenticate"] = "Bearer"
    if error.status in (408, 413):
        headers["connection"] = "close"
    return JSONResponse(error.body(), error.status, headers)


def caller_of(scope: Scope) -> tuple[dict[str, str], str | None]:
    """Of an HTTP or WebSocket scope the headers, names in lower case, of several with one name the last; and the peer's
    address: what ``Gate.admit`` asks for."""
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
    return headers, scope["client"][0] if scope.get("client") else None
