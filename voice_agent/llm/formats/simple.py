"""Reads chunks that carry their text in one plain field, as many small servers and libraries do."""

from __future__ import annotations

from typing import Any

from voice_agent.llm.assembly import Assembly
from voice_agent.llm.chunks import content_text, field, has, word

_FIELDS = ("text", "content", "response")
_TYPES = frozenset({None, "text", "text_delta", "text-delta", "output_text", "content", "message", "token"})
_ROLES = frozenset({None, "assistant", "ai", "model"})


def knows(chunk: Any) -> bool:
    """Whether one of the plain fields is there with something that can be text."""
    if field(chunk, "type") not in _TYPES:
        return False
    if field(field(chunk, "token"), "text") is not None:
        return True
    return any(has(chunk, name) and _is_text(field(chunk, name)) for name in ("delta", *_FIELDS))


def read(chunk: Any, assembly: Assembly) -> None:
    """``delta`` is the new text where it is there (``text`` is then the text so far), else the first field that is set.

    A ``token`` is read only as an object with its text: as a string it is more likely a secret.
    """
    role = field(chunk, "role")
    if (role if isinstance(role, str) else None) not in _ROLES:
        return
    if field(field(chunk, "token"), "text") is not None:
        assembly.text(_text(field(chunk, "token")))
    elif has(chunk, "delta") and _is_text(field(chunk, "delta")):
        assembly.text(_text(field(chunk, "delta")))
    else:
        assembly.text(next((text for name in _FIELDS if (text := _text(field(chunk, name)))), None))
    if reason := word(field(chunk, "finish_reason")):
        assembly.finish(reason)


def _is_text(value: Any) -> bool:
    if value is None or isinstance(value, str | list | tuple):
        return True
    return isinstance(field(value, "text"), str) or isinstance(field(value, "content"), str)


def _text(value: Any) -> str:
    if value is None or isinstance(value, str | list | tuple):
        return content_text(value)
    if field(value, "special"):
        return ""
    return content_text(field(value, "text") if isinstance(field(value, "text"), str) else field(value, "content"))
