"""What tag reader and cleaner share about the stretches of a text that are no prose: how they open, go on and close.

Every question is asked about a window of the stream and answered with a match, ``NO``, or ``MORE`` (the window ends
before it is decided). ``MORE`` is given only within a bound of characters, so nobody holds text for ever, and with
``final`` it is never given. An open region is consumed piece by piece by :meth:`Region.advance` and never buffered.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Literal, NamedTuple, Protocol

RegionKind = Literal["code", "reasoning", "tool call", "comment", "script", "table", "footnote", "citation", "url"]

_CLOSER_CHARS = 64


class Verdict(Enum):
    """``NO``: it is not, whatever follows. ``MORE``: it depends on text that is not there yet."""

    NO = 0
    MORE = 1


class Advance(NamedTuple):
    """``[start, content_end)`` is content, ``[content_end, end)`` the mark that closes; the rest stays."""

    content_end: int
    end: int
    closed: bool


class Region(Protocol):
    """An open stretch. ``advance`` is called with all text since the last ``end`` and takes what it can decide."""

    @property
    def kind(self) -> RegionKind: ...

    def advance(self, text: str, start: int, final: bool) -> Advance: ...


class Opening(NamedTuple):
    """``length`` characters open ``region``."""

    length: int
    region: Region


@dataclass
class Element:
    """A stretch that ends behind ``closer``, or where the stream ends."""

    kind: RegionKind
    closer: re.Pattern[str]

    def advance(self, text: str, start: int, final: bool) -> Advance:
        closed = self.closer.search(text, start)
        if closed is not None:
            return Advance(closed.start(), closed.end(), True)
        stop = len(text) if final else max(start, len(text) - _CLOSER_CHARS)
        return Advance(stop, stop, final)
