"""Reads the body of an HTTP response, an object of ``httpx``, ``requests``, ``aiohttp`` or ``openai``, as it comes in."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from voice_agent.errors import SourceError
from voice_agent.llm.chunks import field, first
from voice_agent.llm.failures import from_status

__all__ = ["response_body", "response_in"]

_SHOWN_BYTES = 4096
_REQUESTS_BYTES = 128  # ``requests`` waits for so many where the body comes without chunks


def response_in(source: Any) -> Any:
    """The response whose body can be read piece by piece, which this is or (of ``openai``) holds; None: neither."""
    for response in (field(source, "http_response"), source):
        by_method = any(callable(field(response, name)) for name in ("iter_bytes", "iter_content"))
        if by_method or callable(field(field(response, "content"), "iter_any")):
            return response
    return None


def response_body(response: Any) -> Iterator[bytes] | AsyncIterator[bytes]:
    """The bytes of the body: an async iterator where the client is async.

    The iteration raises SourceError for a response that says it failed, with what it says.
    """
    status = first(response, "status_code", "status")
    refused = status if isinstance(status, int) and status >= 400 else None
    pieces = _pieces(response)
    return _async_body(pieces, refused) if hasattr(pieces, "__aiter__") else _body(pieces, refused)


def _pieces(response: Any) -> Any:
    if hasattr(field(response, "stream"), "__aiter__"):
        return response.aiter_bytes()
    if callable(pieces := field(response, "iter_bytes")):
        return pieces()
    if callable(pieces := field(response, "iter_content")):
        return pieces(_REQUESTS_BYTES)
    return response.content.iter_any()


def _body(pieces: Iterator[bytes], refused: int | None) -> Iterator[bytes]:
    said = b""
    for piece in pieces:
        if refused is None:
            yield piece
        elif len(said) < _SHOWN_BYTES:
            said += piece
    if refused is not None:
        raise _refusal(refused, said)


async def _async_body(pieces: AsyncIterator[bytes], refused: int | None) -> AsyncIterator[bytes]:
    said = b""
    async for piece in pieces:
        if refused is None:
            yield piece
        elif len(said) < _SHOWN_BYTES:
            said += piece
    if refused is not None:
        raise _refusal(refused, said)


def _refusal(status: int, body: bytes) -> SourceError:
    text = body.decode("utf-8", "replace")
    try:
        error = json.loads(text)
    except ValueError:
        error = text
    inner = first(error, "error", "detail") or error
    said = inner if isinstance(inner, str) else field(inner, "message")
    details = " ".join(str(part) for part in (field(inner, "code"), field(inner, "type")) if part)
    return from_status(status, details, said if isinstance(said, str) else text, "the LLM's server")
