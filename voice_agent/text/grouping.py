"""Decides when text is spoken and how much of it at once: sentences are joined while there is audio left to play, and
given at once when there is not.

* The first sentence of a stream is given at once, or a clause of it if it is long. That depends on the text alone.
* While ``hold_above_s`` of audio or more are buffered, later sentences are joined up to the target length. With less,
  all that is complete is given; a short sentence joins one that is already there, and is never held back for one.
* No sentence is longer than the maximum: a longer one is cut at its best clause boundary, before its end has arrived.
* When no text arrives for ``stall_s``, all that is complete is given, and a clause too if less than ``hold_above_s`` of
  audio is left.

Time is handed in by the caller, in seconds of any monotonic clock, and so is the audio that is not played yet.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tts_engine.types import Mark, Run, slice_runs
from voice_agent.errors import InputError
from voice_agent.text.character_classes import WIDE
from voice_agent.text.clauses import Length, best_cut, last_clause_end
from voice_agent.text.pieces import Item, Piece, Sentence
from voice_agent.text.sentences import SentenceSplitter

_MEASURED_EVERY = 16
"""Characters of an open sentence between two looks at its length."""

_NO_BLANK_AFTER = re.compile(rf"[{WIDE}。！？；：，、～｡][”’」』》）】\"']*\Z")


@dataclass(frozen=True, slots=True)
class GroupingConfig:
    """How much is spoken at once.

    ``least``: a shorter sentence joins one that is already there, and an early first clause is at least this long.
    ``early_clause``: the first sentence of a stream may be a clause. ``target``: what later sentences are joined up to.
    ``maximum``: what nothing exceeds. ``hold_above_s``: seconds of buffered audio that make it safe to wait for text.
    ``stall_s``: seconds without text after which the stream counts as stalled.
    """

    least: Length = field(default_factory=lambda: Length(words=4, chars=6))
    early_clause: bool = True
    target: Length = field(default_factory=lambda: Length(words=25, chars=40))
    maximum: Length = field(default_factory=lambda: Length(words=50, chars=80))
    hold_above_s: float = 1.0
    stall_s: float = 0.150

    def __post_init__(self) -> None:
        if not self.least.within(self.target) or not self.target.within(self.maximum):
            raise InputError("grouping: lengths must grow from least over target to maximum, in words and in chars")
        if self.hold_above_s < 0 or self.stall_s <= 0:
            raise InputError("grouping: hold_above_s must be 0 or more, and stall_s more than 0")


class Grouper:
    """Gives the sentences to speak, out of text that arrives in pieces. Owns the splitter and may cut open sentences.

    ``now_s`` is the time on any monotonic clock; ``buffered_s`` the seconds of audio that are made but not played yet.
    """

    _held: list[Piece]
    _opening: bool  # nothing of the stream was given yet
    _stalled: bool
    _stalls_at_s: float | None
    _runs_low_at_s: float | None
    _measured: int

    def __init__(self, config: GroupingConfig | None = None) -> None:
        self.config = config or GroupingConfig()
        self._splitter = SentenceSplitter()
        self.reset()

    def reset(self) -> None:
        """Forgets all text and starts a new stream at raw offset 0."""
        self._splitter.reset()
        self._held = []
        self._begin()

    def feed(self, item: str | Item, now_s: float, buffered_s: float) -> list[Sentence]:
        self._stalled = False
        self._stalls_at_s = now_s + self.config.stall_s
        held = len(self._held)
        self._hold(self._splitter.feed(item))
        self._cut_open_sentence()
        if len(self._held) == held and buffered_s >= self.config.hold_above_s:
            return self._wait(now_s, buffered_s)
        return self._give(now_s, buffered_s)

    def flush(self) -> list[Sentence]:
        """Ends the stream: gives everything that is left."""
        self._hold(self._splitter.flush())
        given = self._groups(hold=False)
        self._begin()
        return given

    def tick(self, now_s: float, buffered_s: float) -> list[Sentence]:
        """To be called at ``deadline_s``: gives what has waited long enough."""
        if self._stalls_at_s is not None and now_s >= self._stalls_at_s:
            self._stalled = True
            self._stalls_at_s = None
        if self._stalled:
            self._hold(self._splitter.settle())
            if not self._held and buffered_s < self.config.hold_above_s:
                self._hold_clause()
        return self._give(now_s, buffered_s)

    def deadline_s(self) -> float | None:
        """When ``tick`` has something to do if no text arrives before: the stream stalls, or audio runs low."""
        return min((at_s for at_s in (self._stalls_at_s, self._runs_low_at_s) if at_s is not None), default=None)

    def pause(self) -> None:
        """Says that no text is read, because of back-pressure: silence is no stall until ``feed`` or ``resume``."""
        self._stalls_at_s = None

    def resume(self, now_s: float) -> None:
        """Says that text is read again."""
        self._stalls_at_s = now_s + self.config.stall_s

    def _begin(self) -> None:
        self._splitter.early = self.config.least if self.config.early_clause else None
        self._opening = True
        self._stalled = False
        self._measured = 0
        self._stalls_at_s = None
        self._runs_low_at_s = None

    def _hold(self, pieces: list[Piece]) -> None:
        for piece in pieces:
            if not piece.text and self._held:
                last = self._held[-1]
                tags = tuple(Mark(len(last.text), mark.tag) for mark in piece.marks)
                self._held[-1] = Piece(last.text, last.runs, last.kind, last.marks + tags)
                continue
            rest = piece
            while (limit := self.config.maximum.overflow_at(rest.text)) is not None:
                part, rest = cut_piece(rest, best_cut(rest.text, limit))
                self._held.append(part)
            self._held.append(rest)

    def _cut_open_sentence(self) -> None:
        pending = self._splitter.pending
        if len(pending) < self._measured:
            self._measured = 0
        if len(pending) - self._measured < _MEASURED_EVERY:
            return
        self._measured = len(pending)
        while (limit := self.config.maximum.overflow_at(self._splitter.pending)) is not None:
            self._hold([self._splitter.take(best_cut(self._splitter.pending, limit))])

    def _hold_clause(self) -> None:
        pending = self._splitter.pending
        end = last_clause_end(pending)
        if end is not None and self.config.least.reached_at(pending[:end]) is not None:
            self._hold([self._splitter.take(end)])

    def _give(self, now_s: float, buffered_s: float) -> list[Sentence]:
        given = self._groups(hold=buffered_s >= self.config.hold_above_s and not self._stalled)
        return given + self._wait(now_s, buffered_s)

    def _wait(self, now_s: float, buffered_s: float) -> list[Sentence]:
        """Gives nothing, and sets when the audio runs low for text that could be given then."""
        spare_s = buffered_s - self.config.hold_above_s
        waits = self._held or (self._stalled and self._splitter.pending)
        self._runs_low_at_s = now_s + spare_s if waits and spare_s >= 0 else None
        return []

    def _groups(self, hold: bool) -> list[Sentence]:
        """Joins what is held. ``hold``: a last group that may still grow stays, unless it opens the stream."""
        given = []
        while self._held:
            count, may_grow = self._next_group()
            if hold and may_grow and not self._opening:
                break
            given.append(join_pieces(self._held[:count]))
            del self._held[:count]
            self._opening = False
        return given

    def _next_group(self) -> tuple[int, bool]:
        """How many of the held pieces are spoken together, and whether one that is still to come might join them."""
        config = self.config
        wanted = config.least if self._opening else config.target
        count, text = 1, self._held[0].text
        while wanted.reached_at(text) is None:
            if count == len(self._held):
                return count, self._held[-1].kind == "sentence"
            longer = text + " " + self._held[count].text
            limit = config.target if config.least.reached_at(text) is not None else config.maximum
            if not _may_join(self._held[count - 1], self._held[count]) or limit.overflow_at(longer) is not None:
                break
            count, text = count + 1, longer
        return count, False


def _may_join(left: Piece, right: Piece) -> bool:
    """Only running text is joined, and not over a break that the LLM asked for."""
    if left.kind != "sentence" or right.kind != "sentence":
        return False
    at_end = any(mark.index == len(left.text) and mark.tag.name == "break" for mark in left.marks)
    return not at_end and not any(mark.index == 0 and mark.tag.name == "break" for mark in right.marks)


def join_pieces(pieces: list[Piece]) -> Sentence:
    """One sentence out of pieces of one kind: with a blank between them, or without behind Chinese text or marks.

    The blank is a run with an empty raw span.
    """
    text = ""
    runs: list[Run] = []
    marks: list[Mark] = []
    for piece in pieces:
        if text and not _NO_BLANK_AFTER.search(text, max(0, len(text) - 8)):
            runs.append(Run(" ", runs[-1].end, runs[-1].end))
            text += " "
        marks += [Mark(len(text) + mark.index, mark.tag) for mark in piece.marks]
        runs += piece.runs
        text += piece.text
    return Sentence(text, tuple(runs), pieces[0].kind, tuple(marks))


def cut_piece(piece: Piece, at: int) -> tuple[Piece, Piece]:
    """The parts of a piece before and behind character ``at``, without the whitespace there; no tag is lost."""
    left = piece.text[:at].rstrip()
    right = piece.text[at:].lstrip()
    begin = len(piece.text) - len(right)
    before = tuple(mark for mark in piece.marks if mark.index < len(left))
    behind = tuple(Mark(max(mark.index - begin, 0), mark.tag) for mark in piece.marks if mark.index >= len(left))
    return (
        Piece(left, slice_runs(piece.runs, 0, len(left)), piece.kind, before),
        Piece(right, slice_runs(piece.runs, begin, len(piece.text)), piece.kind, behind),
    )
