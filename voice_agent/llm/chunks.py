"""Reads fields of a chunk alike from a mapping and from an object with attributes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TEXT_BLOCKS = frozenset({None, "text", "output_text", "text_delta", "refusal"})


def field(chunk: Any, name: str) -> Any:
    """The value, or None where there is no such field (also where a property of an SDK's object raises)."""
    if isinstance(chunk, Mapping):
        return chunk.get(name)
    try:
        return getattr(chunk, name, None)
    except Exception:
        return None


def has(chunk: Any, name: str) -> bool:
    """Whether the field is there, be it None."""
    if isinstance(chunk, Mapping):
        return name in chunk
    try:
        return hasattr(chunk, name)
    except Exception:
        return False


def first(chunk: Any, *names: str) -> Any:
    """The first of the fields that is not None."""
    for name in names:
        value = field(chunk, name)
        if value is not None:
            return value
    return None


def items(value: Any) -> tuple[Any, ...]:
    """The elements of a list-like field; nothing where it is None or no list."""
    if isinstance(value, list | tuple):
        return tuple(value)
    if value is None or isinstance(value, str | bytes | Mapping) or not hasattr(value, "__len__"):
        return ()
    return tuple(value)


def content_text(content: Any) -> str:
    """The text of a ``content`` field: a string, or the text blocks of a list of blocks (thinking, tools, images are
    left out).
    """
    if isinstance(content, str):
        return content
    return "".join(block if isinstance(block, str) else block_text(block) for block in items(content))


def block_text(block: Any) -> str:
    """The text of one content block; empty where the block is of another kind."""
    if field(block, "type") not in TEXT_BLOCKS:
        return ""
    text = first(block, "text", "refusal")
    return text if isinstance(text, str) else ""


def word(value: Any) -> str | None:
    """A finish reason or the like as plain text: enums of an SDK give their value."""
    value = getattr(value, "value", value)
    return value if isinstance(value, str) and value else None


def count(value: Any) -> int | None:
    """A token count, or None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def plain(value: Any) -> Any:
    """The value as JSON would hold it: objects of an SDK become dicts."""
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    if callable(dump := getattr(value, "model_dump", None)):
        return plain(dump())
    if hasattr(value, "__dict__"):
        return plain({key: inner for key, inner in vars(value).items() if not key.startswith("_")})
    return str(value)
