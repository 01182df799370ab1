"""Cuts a growing text into sentences: the same pieces for any chunking, and never a cut inside a protected token.

A piece is given as soon as the text shows that its sentence has ended:

* behind ``。！？`` with the next character (it may be a closing quote);
* behind ``! ?`` with the next character, behind a full stop with the next two; a closing quote or bracket adds one;
* behind an abbreviation or initial the next word has to be seen: at most 31 characters;
* a line that may become a list line or a blank line: at most 65 blanks and 5 characters;
* an open bracket in mid-sentence, or an open book title, keeps the marks inside it until it closes, for at most 200
  characters.

A sentence without an end is cut at ``MAX_PIECE`` characters, between words if it has any, so memory is bounded.
"""

from __future__ import annotations

import re

from tts_engine.types import Run, Tag
from voice_agent.text.buffer import RunBuffer
from voice_agent.text.character_classes import BRACKETS, MARKS
from voice_agent.text.clauses import CLAUSE_MARKS, Length, clause_end, whole_character
from voice_agent.text.ends import LIST_START, End, at_bracket, at_mark, at_newline
from voice_agent.text.pieces import Item, Kind, Piece
from voice_agent.text.protected import MoreText, token_before

MAX_PIECE = 5_000
"""Characters after which a sentence that has no end is cut."""

_CANDIDATES = re.compile(f"[\n\u2029{re.escape(BRACKETS)}{MARKS}]")
_CANDIDATES_AND_CLAUSES = re.compile(f"[\n\u2029{re.escape(BRACKETS)}{MARKS}{CLAUSE_MARKS}]")
_NEW_LINES = "\n\u2029"
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
_BLANK_BETWEEN_WORDS = re.compile(r"(?<![.!?])\s(?=\S)")


class SentenceSplitter:
    """Gives sentences out of text that arrives in pieces.

    Strings are raw text, and their raw offsets are counted here; runs bring their own. A tag belongs to the piece whose
    text follows it; tags behind the last text come with the last piece of ``flush``, which may have an empty text.
    Marks without a letter or digit are no sentence: they open the next piece, and stand alone only before a boundary.

    ``early`` lets the next piece be a clause: it is cut behind the first clause mark that has this length before it. It
    counts for one piece and is ``None`` afterwards.
    """

    _buffer: RunBuffer
    _raw_end: int
    _kind: Kind | None
    _block_is_empty: bool
    _quote_open: bool
    _place: int
    _word_seen: bool
    _word_checked: int

    def __init__(self) -> None:
        self.early: Length | None = None
        self.reset()

    def reset(self) -> None:
        """Forgets the text and starts a new stream at raw offset 0."""
        self._buffer = RunBuffer()
        self._raw_end = 0
        self._begin_block(None)

    @property
    def pending(self) -> str:
        """The text of the sentence that has not ended yet."""
        return self._buffer.text

    def feed(self, item: str | Item) -> list[Piece]:
        if isinstance(item, str):
            self._buffer.append_raw(item, self._raw_end)
            self._raw_end += len(item)
        elif isinstance(item, Run):
            self._buffer.append(item)
        elif isinstance(item, Tag):
            self._buffer.append_tag(item)
            return []
        else:
            pieces = self._close()
            self._begin_block(item.kind)
            return pieces
        return self._scan(final=False)

    def flush(self) -> list[Piece]:
        """Ends the stream: gives what is left, whether it has an end or not."""
        pieces = self._close(all_tags=True)
        if self._buffer.has_tags:
            pieces.append(self._take(0, all_tags=True))
        self._begin_block(None)
        return pieces

    def settle(self) -> list[Piece]:
        """For a stream that has stalled: gives the pending text if it looks like a whole sentence.

        What ends in a number or an abbreviation, and an open quote or bracket, is not given.
        """
        text, place = self._buffer.text.rstrip(), self._place
        if place >= len(text) or text[place] not in MARKS or not self._has_word(place):
            return []
        if (text.count('"') + self._quote_open) % 2 or text.count("“") > text.count("”"):
            return []
        dot = text[place] in ".．" and text[place + 1 : place + 2] not in tuple(MARKS)
        if dot and text == self._buffer.text and not token_before(text, place).isalpha():
            return []
        # Before a small letter an abbreviation goes on, but so do an ellipsis and a quotation.
        follower = " a" if dot and place + 1 == len(text) else " Q"
        end = at_mark(text + follower, place, self._quote_open, final=True)
        return [self.take(len(self._buffer.text))] if end == End(True, len(text)) else []

    def take(self, end: int) -> Piece:
        """Cuts the pending text before character ``end``, which the caller has found to be a safe place."""
        return self._take(end)

    def _close(self, *, all_tags: bool = False) -> list[Piece]:
        """Gives all text that is left, for nothing of the same sentence follows."""
        pieces = self._scan(final=True)
        end = len(self._buffer.text)
        if not self._buffer.text.isspace() and end:
            pieces.append(self._take(end, all_tags=all_tags))
        else:
            self._buffer.drop_blanks(end)
        return pieces

    def _scan(self, final: bool) -> list[Piece]:
        pieces = []
        while (found := self._next_end(final)) is not None:
            end, new_block = found
            blank = not self._buffer.text[:end].strip()
            if not blank:
                pieces.append(self._take(end))
            if new_block:
                self._buffer.drop_blanks(end + 1 if blank else 1)
                self._begin_block(self._kind if self._block_is_empty else None)
        dropped = self._buffer.drop_blanks(self._place)
        self._place -= dropped
        self._word_checked = max(self._word_checked - dropped, 0)
        return pieces

    def _next_end(self, final: bool) -> tuple[int, bool] | None:
        """Where the next piece ends and whether a new block of lines begins there; ``None`` while that is open."""
        text, place = self._buffer.text, self._place
        candidates = _CANDIDATES_AND_CLAUSES if self.early else _CANDIDATES
        try:
            while match := candidates.search(text, place, MAX_PIECE):
                place = match.start()
                end = self._end_at(text, place, final)
                if end.cut:
                    self._place = end.at
                    return end.at, text[place] in _NEW_LINES
                place = end.at
        except MoreText:
            self._place = place
            return None
        if len(text) > MAX_PIECE:
            self._place = max(place, MAX_PIECE)
            return _forced_end(text), False
        self._place = max(place, len(text))
        return None

    def _end_at(self, text: str, place: int, final: bool) -> End:
        mark = text[place]
        if mark in _NEW_LINES:
            return at_newline(text, place, final)
        if mark in BRACKETS:
            return at_bracket(text, place, not self._has_word(place), final)
        if mark in CLAUSE_MARKS:
            clause = clause_end(text, place, final)
            early = clause is not None and self.early is not None and self.early.reached_at(text[:clause]) is not None
            return End(early, clause if early and clause is not None else place + 1)
        end = at_mark(text, place, self._quote_open, final)
        return End(end.cut and self._has_word(end.at), end.at)

    def _has_word(self, end: int) -> bool:
        if not self._word_seen and end > self._word_checked:
            self._word_seen = _LETTER_OR_DIGIT.search(self._buffer.text, self._word_checked, end) is not None
            self._word_checked = end
        return self._word_seen

    def _take(self, end: int, *, all_tags: bool = False) -> Piece:
        text = self._buffer.text
        if text.count('"', 0, end) % 2:
            self._quote_open = not self._quote_open
        if self._kind is None:
            self._kind = "list_item" if LIST_START.match(text) else "sentence"
        spoken, runs, marks = self._buffer.take(end, all_tags=all_tags)
        self._block_is_empty = False
        self._begin_piece(max(self._place - end, 0))
        self.early = None
        return Piece(spoken, runs, self._kind, marks)

    def _begin_block(self, kind: Kind | None) -> None:
        """``kind`` None: the first piece shows whether this is a list line."""
        self._kind = kind
        self._block_is_empty = True
        self._quote_open = False
        self._begin_piece(0)

    def _begin_piece(self, place: int) -> None:
        self._place = place  # no mark before this character is an end
        self._word_seen = False
        self._word_checked = 0


def _forced_end(text: str) -> int:
    """The last blank in the second half of the first ``MAX_PIECE`` characters, else their end."""
    end = 0
    for match in _BLANK_BETWEEN_WORDS.finditer(text, MAX_PIECE // 2, MAX_PIECE):
        end = match.end()
    return end or whole_character(text, MAX_PIECE)
