"""Every error of HTTP in OpenAI's form, those of FastAPI and Starlette too: what is wrong, and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute, Match
from starlette.types import Receive, Scope, Send

from voice_agent.errors import SaylineError, clipped
from voice_agent.server.guard import answer
from voice_agent.server.refusals import RefusedError, refusal
from voice_agent.server.service import Service

__all__ = ["answer_errors"]


def answer_errors(app: FastAPI, service: Service) -> None:
    """Has the application answer all errors so. Sockets to paths that are not there are told 404, as requests are."""

    def refuse(error: RefusedError) -> Response:
        service.metrics.refused(error)
        return answer(error)

    @app.exception_handler(SaylineError)
    async def ours(_: Request, error: SaylineError) -> Response:
        return refuse(refusal(error))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        return refuse(_mistake(request.headers.get("content-type", ""), error.errors()))

    @app.exception_handler(HTTPException)
    async def http(request: Request, error: HTTPException) -> Response:
        refused = answer(_misled(request.scope, error, app.routes))
        refused.headers.update(error.headers or {})
        return refused

    @app.exception_handler(Exception)
    async def crashed(_: Request, error: Exception) -> Response:
        return refuse(RefusedError(500, "the server failed; its log says why", code="crashed"))

    async def not_there(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            raise HTTPException(404)
        message = f"there is no socket at {clipped(scope['path'])}: use /v1/audio/speech/stream or /v1/speak"
        refused = RefusedError(404, message, code="not_found")
        service.metrics.refused(refused)
        await answer(refused)(scope, receive, send)

    app.router.default = not_there


def _mistake(content_type: str, errors: Sequence[Any]) -> RefusedError:
    """The first thing that is wrong with a body, or a parameter of the path."""
    first = errors[0]
    place = [str(part) for part in first["loc"] if part != "body"]
    if not place or first["type"] == "json_invalid":
        kind = content_type.partition(";")[0].strip().lower()
        if kind != "application/json" and not kind.endswith("+json"):
            message = f"the content type is {clipped(kind) or 'missing'}: send JSON with Content-Type: application/json"
            return RefusedError(400, message, code="unsupported_content_type")
        return RefusedError(400, f"the body is no JSON object that can be read: {first['msg']}", code=first["type"])
    param = place[0]
    # Where a value may have several forms there is an error for each: the one that got farthest is meant.
    same = [error for error in errors if [str(part) for part in error["loc"] if part != "body"][:1] == [param]]
    best = max(same, key=lambda error: len(error["loc"]))
    if best["type"] == "extra_forbidden":
        message = f"unknown parameter {_where(best['loc'])}: leave it out; /openapi.json lists those that there are"
        return RefusedError(400, message, code="unknown_parameter", param=param)
    return RefusedError(400, f"{_where(best['loc'])}: {best['msg']}", code=best["type"], param=param)


def _where(place: Sequence[int | str]) -> str:
    """A place in the body, such as messages[0].name; names of types, where a value may have several, are left out."""
    where = ""
    for part in place:
        if isinstance(part, int):
            where += f"[{part}]"
        elif part not in ("body", "str", "constrained-str") and not part[:1].isupper():
            where += f".{part}" if where else part
    return clipped(where)


def _misled(scope: Scope, error: HTTPException, routes: Sequence[BaseRoute]) -> RefusedError:
    """A request that no route takes."""
    method, path = scope["method"], clipped(scope["path"])
    if error.status_code == 404:
        socket = {**scope, "type": "websocket"}
        if any(route.matches(dict(socket))[0] is Match.FULL for route in routes):
            return RefusedError(426, f"{path} is a WebSocket: connect to it with ws:// or wss://", code="upgrade_required")
        return RefusedError(404, f"there is no {method} {path}; /openapi.json lists what there is", code="not_found")
    if error.status_code == 405:
        allowed = (error.headers or {}).get("allow", (error.headers or {}).get("Allow", ""))
        return RefusedError(405, f"there is no {method} {path}: use {allowed}", code="method_not_allowed")
    if error.status_code == 400:
        return RefusedError(400, "the body is no JSON that can be read: send UTF-8, without deep nesting", code="json_invalid")
    return RefusedError(error.status_code, str(error.detail))
