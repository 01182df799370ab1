"""Turns what goes wrong in an LLM stream into one `SourceError` that says what to do next and whether to try again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from voice_agent.errors import SourceError
from voice_agent.llm.chunks import field, first

_RETRYABLE_STATUS = frozenset({408, 409, 425, 429, 529})
_PASSING = re.compile(
    r"timeout|timed_out|connection|disconnect|protocol|transport|readerror|incomplete|ratelimit|rate_limit|overload"
    r"|server_error|internal|unavailable|api_error|resource_exhausted|exhausted",
    re.IGNORECASE,
)
_NO_QUOTA = re.compile(r"insufficient_quota|billing|credit", re.IGNORECASE)
_SECRET_NAME = re.compile(r"key|token$|secret|auth|password|cookie|credential", re.IGNORECASE)
_SECRET = re.compile(
    r"(?i)\b(?:sk|pk|rk|gsk|xai|hf|key|AIza)[-_][\w\-*]{6,}|AIza[\w\-]{10,}|(?<=bearer )[\w\-.~+/=*]{4,}|://[^/\s:@]+:[^/\s@]+@"
)
_SHOWN_CHARS = 300
_ADVICE = {
    400: "the server could not use the request: check the model's name, the tools and the length of the conversation",
    401: "the server refused the key: check OPENAI_API_KEY, or the api_key you passed",
    402: "the account has no credit: add some, or use another server",
    403: "the key may not use this model: check the key's rights",
    404: "the server does not know the model or the address: check --model and OPENAI_BASE_URL",
    413: "the conversation is too long for the server: start a new one",
    422: "the server could not use the request: check the model's name and the tools",
    429: "too many requests: wait a little and try again",
}


def failure(message: str, *, retryable: bool = False) -> SourceError:
    """A `SourceError` with secrets masked."""
    error = SourceError(redacted(message))
    error.retryable = retryable
    return error


def from_exception(error: BaseException, where: str, status_advice: Mapping[int, str] = MappingProxyType({})) -> SourceError:
    """What an SDK, an HTTP library or the caller's own iterator raised. ``where`` says what was being read,
    ``status_advice`` what to do about an HTTP status where that differs from what helps with an LLM.
    """
    body = field(error, "body")
    details = " ".join(str(part) for part in (field(error, "code"), first(body, "type"), field(error, "type")) if part)
    status = field(error, "status_code")
    message = field(body, "message")
    if isinstance(status, int):
        said = message if isinstance(message, str) else str(error)
        return from_status(status, details, said, where, status_advice)
    chain = [error, *_causes(error)]
    names = " ".join(kind.__name__ for each in chain for kind in type(each).__mro__[:-2])
    passing = any(isinstance(each, ConnectionError | TimeoutError) for each in chain) or _passes(f"{names} {details}")
    if "Timeout" in names:
        advice = "nothing came in time: check that the server is not overloaded, or raise the timeout"
    elif re.search(r"ConnectError|ConnectionRefused|gaierror|ClientConnector", names):
        advice = "nobody answers there: check that the server runs, the network, and the address (OPENAI_BASE_URL)"
    elif "CancelledError" in names:
        advice = "the task that feeds it was cancelled"
    elif passing:
        advice = "the connection or the server broke off: try again"
    else:
        advice = "see the cause below"
    causes = ", ".join(dict.fromkeys(_clipped(str(each)) for each in chain if str(each)))
    said = f"{type(error).__name__}: {causes}" if causes else type(error).__name__
    return failure(f"{where} failed: {said}; {advice}", retryable=passing)


def from_chunk(error: Any, where: str) -> SourceError:
    """An error that came as a chunk of the stream: a text, or an object with ``message`` and at times ``type``,
    ``code``.
    """
    if isinstance(error, str):
        return failure(f"{where} reported an error: {_clipped(error)}", retryable=_passes(error))
    said = first(error, "message", "errorText", "detail", "type")
    code = first(error, "code", "status_code")
    details = " ".join(str(part) for part in (code, field(error, "type"), field(error, "status")) if part)
    text = _clipped(said if isinstance(said, str) else shape_of(error))
    status = int(code) if isinstance(code, int) or (isinstance(code, str) and code.isdigit()) else None
    if status is not None and 400 <= status < 600:
        return from_status(status, details, text, where)
    passing = _passes(details)
    kind = f" ({details})" if details and details not in text else ""
    advice = "try again" if passing else "the answer up to here is all there is"
    return failure(f"{where} reported an error{kind}: {text}; {advice}", retryable=passing)


def from_status(
    status: int, details: str, said: str, where: str, status_advice: Mapping[int, str] = MappingProxyType({})
) -> SourceError:
    """A server answered with an HTTP status that says that it failed. ``details``: its codes and types of error, ``said``:
    its message; the other two as in :func:`from_exception`.
    """
    said = _clipped(said)
    no_quota = bool(_NO_QUOTA.search(details))
    if status == 429 and no_quota:
        advice = "the account has no quota left: add credit, or use another server"
    elif status >= 500:
        advice = "the server failed: try again"
    else:
        advice = status_advice.get(status) or _ADVICE.get(status, "the server refused the request")
    retryable = (status in _RETRYABLE_STATUS or status >= 500) and not no_quota
    return failure(f"{where} answered {status}: {said}; {advice}", retryable=retryable)


def unknown_shape(chunk: Any, known: Iterable[str]) -> SourceError:
    """A chunk that no format knows; the message shows its shape, not its secrets."""
    return failure(
        f"a chunk of the LLM stream has an unknown shape: {shape_of(chunk)}; "
        f"yield its text as plain strings, or pass format= one of {', '.join(known)}"
    )


def torn(what: str, rest: str) -> SourceError:
    """The stream ended in the middle of an event or of an object."""
    return failure(
        f"the LLM stream ended inside {what}: {_clipped(rest, 80)!r}; the connection was probably cut, try again",
        retryable=True,
    )


def shape_of(chunk: Any) -> str:
    """The type and fields of a value with short, masked contents, such as ``dict {role: 'user', n: 3}``."""
    name = type(chunk).__name__
    if isinstance(chunk, Mapping):
        return f"{name} {_fields(chunk)}"
    if isinstance(chunk, list | tuple):
        return f"{name} of {len(chunk)}" + (f", the first is {shape_of(chunk[0])}" if chunk else "")
    if isinstance(chunk, str | bytes | int | float) or chunk is None:
        return f"{name} {_clipped(redacted(repr(chunk)), 60)}"
    attributes = {key: value for key, value in getattr(chunk, "__dict__", {}).items() if not key.startswith("_")}
    return f"{name} with attributes {_fields(attributes)}" if attributes else f"{name} without public attributes"


def redacted(text: str) -> str:
    """The text with keys, bearer tokens and passwords in addresses masked."""
    return _SECRET.sub("…", text)


def _passes(details: str) -> bool:
    return bool(_PASSING.search(details)) and not _NO_QUOTA.search(details)


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen = {id(error)}
    cause = error.__cause__ or error.__context__
    while cause is not None and id(cause) not in seen and len(seen) < 4:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def _fields(values: Mapping[Any, Any], shown: int = 12) -> str:
    parts = []
    for key, value in list(values.items())[:shown]:
        if _SECRET_NAME.search(str(key)):
            parts.append(f"{key}: …")
        elif isinstance(value, Mapping):
            parts.append(f"{key}: {{{', '.join(str(inner) for inner in list(value)[:6])}}}")
        elif isinstance(value, list | tuple):
            parts.append(f"{key}: {type(value).__name__} of {len(value)}")
        elif isinstance(value, str | int | float | bool) or value is None:
            parts.append(f"{key}: {_clipped(redacted(repr(value)), 40)}")
        else:
            parts.append(f"{key}: {type(value).__name__}")
    more = ", …" if len(values) > shown else ""
    return "{" + ", ".join(parts) + more + "}"


def _clipped(text: str, limit: int = _SHOWN_CHARS) -> str:
    text = " ".join(text.split()).rstrip(".")
    return text if len(text) <= limit else text[: limit - 1] + "…"
