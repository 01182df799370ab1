"""What the text stages hand on: pieces and sentences, with their kind, their raw runs and the tags inside them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from tts_engine.types import Mark, Run, Tag

Kind = Literal["sentence", "list_item", "heading", "code"]
"""What a piece was in the LLM's markup; the planner reads it (a list item is spoken quicker, a heading gets a longer break)."""


@dataclass(frozen=True, slots=True)
class Boundary:
    """A point that ends the running piece, full stop or not: a tool call, a new message, a block of markup.

    ``kind`` is the kind of the text that *follows*, where the boundary knows it.
    """

    kind: Kind | None = None
    reason: str = ""


Item = Run | Tag | Boundary
"""What flows between tag reader, cleaner and splitter."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A sentence as the splitter gives it: no whitespace at its ends, ``runs`` cover ``text`` exactly.

    ``marks`` hold the tags inside it or right before it (index 0), in order.
    """

    text: str
    runs: tuple[Run, ...]
    kind: Kind = "sentence"
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True)
class Sentence:
    """What is spoken in one breath: one or more pieces joined, or a part of a long one, as the grouper gives it."""

    text: str
    runs: tuple[Run, ...]
    kind: Kind = "sentence"
    marks: tuple[Mark, ...] = ()


def joined(runs: Iterable[Run]) -> str:
    """The text of the runs."""
    return "".join(run.text for run in runs)
