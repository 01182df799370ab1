"""The JSON messages of the live sockets, read and written."""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

from voice_agent.errors import InputError
from voice_agent.server.refusals import RefusedError

__all__ = ["Order", "invalid", "json_message", "json_object", "names"]

Order = Mapping[str, Any]


def json_object(message: str | bytes) -> Order:
    """A message as a JSON object. Raises RefusedError (400)."""
    try:
        order = json.loads(message)
    except (ValueError, RecursionError):
        order = None
    if not isinstance(order, dict):
        raise invalid("a message is one JSON object with a type, as text", None)
    return order


def json_message(kind: str, **values: Any) -> str:
    """A message of a type."""
    return json.dumps({"type": kind, **values}, ensure_ascii=False, separators=(",", ":"))


def invalid(message: str, param: str | None) -> RefusedError:
    """The refusal of an order or a setting that makes no sense."""
    return RefusedError(400, message, code="invalid", param=param)


@contextmanager
def names(param: str) -> Generator[None, None, None]:
    """An InputError in the block is about this parameter: it becomes the refusal that says so."""
    try:
        yield
    except InputError as error:
        raise invalid(str(error), param) from None
