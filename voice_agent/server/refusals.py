"""Why a request is refused, as one error that HTTP, WebSocket and WebRTC tell in their own way."""

from __future__ import annotations

from typing import Any

from voice_agent.errors import BusyError, InputError, MissingExtraError, SaylineError, SourceError

__all__ = ["ERRORS", "RefusedError", "refusal"]

_BODY = {
    "application/json": {
        "schema": {
            "type": "object",
            "required": ["error"],
            "properties": {
                "error": {
                    "type": "object",
                    "required": ["message", "type", "param", "code"],
                    "properties": {
                        "message": {"type": "string"},
                        "type": {"type": "string"},
                        "param": {"type": ["string", "null"]},
                        "code": {"type": ["string", "null"]},
                    },
                }
            },
        }
    }
}
_ABOUT = {
    400: "The request cannot be used; param says what of it.",
    401: "The API key is missing or wrong.",
    403: "Pages of this origin may not call.",
    404: "There is no such thing.",
    408: "The request did not arrive in time.",
    413: "The request is too long.",
    422: "The request cannot be used.",
    429: "Too many requests; Retry-After says when to come back.",
    500: "Synthesis failed.",
    501: "Something that is needed is not installed or set up.",
    503: "Overloaded or shutting down; Retry-After says when to come back.",
}
ERRORS: dict[int | str, dict[str, Any]] = {status: {"description": text, "content": _BODY} for status, text in _ABOUT.items()}
"""For the OpenAPI of any route: what all of them may answer."""


class RefusedError(SaylineError):
    """``status`` as in HTTP; ``kind``, ``param`` and ``code`` as in OpenAI's errors; ``retry_after_s``: when to try again."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        code: str | None = None,
        param: str | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.param = param
        self.retry_after_s = retry_after_s
        self.retryable = retry_after_s is not None

    @property
    def kind(self) -> str:
        """OpenAI's ``type`` of the error."""
        if self.status == 401:
            return "authentication_error"
        if self.status == 429:
            return "rate_limit_error"
        return "invalid_request_error" if self.status < 500 else "server_error"

    def body(self) -> dict[str, dict[str, str | None]]:
        """The error as OpenAI's APIs give it."""
        return {"error": {"message": str(self), "type": self.kind, "param": self.param, "code": self.code}}


def refusal(error: SaylineError, param: str | None = None) -> RefusedError:
    """Any of our errors as the RefusedError that stands for it."""
    if isinstance(error, RefusedError):
        return error
    if isinstance(error, InputError):
        return RefusedError(400, str(error), param=param)
    if isinstance(error, BusyError):
        return RefusedError(503, str(error), code="overloaded", retry_after_s=error.retry_after_s)
    if isinstance(error, SourceError):
        return RefusedError(502, str(error), code="model_failed", retry_after_s=1.0 if error.retryable else None)
    if isinstance(error, MissingExtraError):
        return RefusedError(501, str(error), code="not_installed")
    return RefusedError(500, str(error), code="failed")
