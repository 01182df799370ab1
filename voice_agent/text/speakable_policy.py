"""What the cleaner is asked to do with each kind of text that is not prose, and what it reports about it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, get_args, get_type_hints

from tts_engine.errors import InputError


@dataclass(frozen=True, slots=True)
class SpeakablePolicy:
    """What is done with each kind of text that is not prose. What is not read goes to the log.

    ``url``: "link" says "link" (in a Chinese sentence "链接"), "read" leaves it for the normaliser. ``code`` (blocks;
    inline code is always read) and ``table``: "read" says the content, a table row by row, "mention" says that there
    is one. ``image``: "read" says its description. ``emoji``, ``citation`` and ``footnote``: "read" leaves them in.
    Reasoning and tool calls are never read.
    """

    url: Literal["link", "skip", "read"] = "link"
    code: Literal["skip", "read", "mention"] = "skip"
    table: Literal["skip", "read", "mention"] = "skip"
    image: Literal["read", "skip"] = "read"
    emoji: Literal["skip", "read"] = "skip"
    citation: Literal["skip", "read"] = "skip"
    footnote: Literal["skip", "read"] = "skip"

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self))
        for field in fields(self):
            value, allowed = getattr(self, field.name), get_args(hints[field.name])
            if value not in allowed:
                raise InputError(f"policy {field.name!r} cannot be {value!r}: use one of {', '.join(allowed)}")


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something that was left out: its ``kind``, the ``rule`` that found it, its raw span and how it begins."""

    kind: str
    rule: str
    start: int
    end: int
    excerpt: str
