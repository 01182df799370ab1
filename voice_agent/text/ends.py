"""Decides at one mark of a text whether a sentence ends there, where exactly, or that the sentence goes on.

All functions are pure and take the text from the start of the running piece. They return an ``End``, or raise
``MoreText`` while the answer may still change; an ``End`` is the same for every continuation of the text.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from voice_agent.text.character_classes import BRACKETS, CLOSERS, CLOSING_BRACKETS, DOTS, HAN, MARKS, STRONG, WIDE, WIDE_OPENERS
from voice_agent.text.protected import MoreText, brand_goes_on, dot_ends, following, token_before

RUN_WINDOW = 64
"""Marks and closing marks in a row that are read as one end."""

BRACKET_WINDOW = 200
"""Characters in which a bracket has to close to protect the marks inside it."""

_BRACKET_DEPTH = 8
_LINE_BLANKS = 64
_LIST_INDENT = 16

_RUN = re.compile(f"[{MARKS}]{{1,{RUN_WINDOW}}}")
_CLOSING = re.compile(f"[{CLOSERS}]{{0,{RUN_WINDOW}}}")
_SPACED_DOTS = re.compile(r"(?: \.){1,32}")
_BLANKS = re.compile(r"\s{1,3}")
_STRONG = re.compile(f"[{STRONG}]")
_WIDE_END = re.compile("[！？。｡]")
# A sentence may begin directly behind a mark, without a blank, with one of these: letters of scripts without blanks,
# wide opening marks, pictographs. Full-width digits and Latin letters continue a number or a name.
_BEGINS = re.compile(rf"[{WIDE}{WIDE_OPENERS}\u2190-\u2bff\ud800-\udfff\U0001f000-\U0001faff]")
_GOES_ON = frozenset(f",;:，；：、—–-{MARKS}")
_FLAT_FACE = re.compile(r"\._{1,3}\.")
_LAUGHING_FACE = re.compile(r"(?:^|\s)[:;=]['’]?-?\Z")
_BRACKET = re.compile(f"[{re.escape(BRACKETS + CLOSING_BRACKETS)}]")
_OPENING = frozenset(BRACKETS)

_NUMBER = "[0-9０-９]{1,3}"
_BULLET = "[-*+•·‣◦▪●○]"
_HAN_NUMBER = "[一二三四五六七八九十]{1,3}"
_LIST_MARK = (
    rf"(?:{_BULLET}[^\S\n]|[(（]?{_NUMBER}(?:[.)．）](?:[^\S\n]|(?=[{HAN}]))|、)"
    rf"|[(（]{_HAN_NUMBER}[)）]|{_HAN_NUMBER}、|[①-⑳])"
)
LIST_START = re.compile(rf"\s*{_LIST_MARK}")
"""Matches a piece that begins like a list line."""

_NEW_LINE = re.compile(rf"\n(?:[^\S\n]{{0,{_LINE_BLANKS}}}[\n\u2029]|[^\S\n]{{0,{_LIST_INDENT}}}{_LIST_MARK})")
_NEW_LINE_BEGUN = re.compile(
    rf"\n[^\S\n]{{0,{_LINE_BLANKS}}}(?:{_BULLET}|[(（]?(?:{_NUMBER}[.)．）]?|{_HAN_NUMBER}[)）]?)?)?\Z"
)


class End(NamedTuple):
    """``cut``: a sentence ends before ``at``. Otherwise there is no end up to ``at``."""

    cut: bool
    at: int


def at_newline(text: str, at: int, final: bool) -> End:
    """A blank line and the start of a list line are ends; any other newline is a blank."""
    if text[at] == "\u2029" or _NEW_LINE.match(text, at):
        return End(True, at)
    if not final and _NEW_LINE_BEGUN.match(text, at):
        raise MoreText
    return End(False, at + 1)


def at_bracket(text: str, at: int, begins_piece: bool, final: bool) -> End:
    """Skips a bracket in mid-sentence, or a book title anywhere, with all marks inside it, if it closes soon."""
    if begins_piece and text[at] not in "《〈":
        return End(False, at + 1)
    if _LAUGHING_FACE.search(text, max(0, at - 4), at):
        return End(False, at + 1)
    depth = 0
    for match in _BRACKET.finditer(text, at, at + BRACKET_WINDOW):
        depth += 1 if match.group() in _OPENING else -1
        if depth == 0:
            return End(False, match.end())
        if depth > _BRACKET_DEPTH:
            return End(False, at + 1)
    if not final and len(text) < at + BRACKET_WINDOW:
        raise MoreText
    return End(False, at + 1)


def at_mark(text: str, at: int, quote_open: bool, final: bool) -> End:
    """Decides at the sentence mark ``text[at]``. ``quote_open``: a straight quote is open at the start of the text."""
    run_stop, stop = _read_run(text, at, quote_open, final)
    run = text[at:run_stop]
    if _FLAT_FACE.match(text, at) and not text[at - 1 : at].strip():
        return End(False, stop)
    closed = stop > run_stop
    after = text[stop : stop + 1]
    if after in _GOES_ON:
        return End(False, stop)
    if _STRONG.search(text, at, stop):
        return End(_strong_ends(text, at, run_stop, stop, final), stop)
    plain = len(run) == 1 and run != "…"
    if plain and text[stop - 1] in DOTS and closed:
        return End(True, stop)  # as in “…the U.S.”.
    if plain and after and not after.isspace() and not _BEGINS.match(after):
        return End(False, stop)
    if plain and after == " " and not closed:
        spaced = _spaced_dots(text, stop, final)
        if spaced > stop:
            return End(_ellipsis_ends(text, spaced, False, final), spaced)
    if plain:
        return End(_dot_ends(text, at, stop, closed, final), stop)
    return End(_ellipsis_ends(text, stop, closed, final), stop)


def _read_run(text: str, at: int, quote_open: bool, final: bool) -> tuple[int, int]:
    """Where the first run of marks ends, and where the closing marks (and marks between them) behind it end."""
    match = _RUN.match(text, at)
    assert match is not None
    run_stop = stop = match.end()
    while stop < at + RUN_WINDOW:
        match = _CLOSING.match(text, stop)
        assert match is not None
        after_closing = match.end()
        if text[after_closing : after_closing + 1] in ('"', "'") and _quote_closes(text, after_closing, quote_open, final):
            after_closing += 1
        if after_closing == stop:
            break
        stop = after_closing
        match = _RUN.match(text, stop)
        if match:
            stop = match.end()
    if stop >= len(text) and not final:
        raise MoreText
    return run_stop, stop


def _quote_closes(text: str, at: int, quote_open: bool, final: bool) -> bool:
    """Whether the straight quote right behind a mark closes: one is open, or no text follows it directly."""
    if text[at] == "'":
        return True
    if (text.count('"', 0, at) + quote_open) % 2:
        return True
    if at + 1 >= len(text) and not final:
        raise MoreText
    return not text[at + 1 : at + 2].isalnum()


def _narrator_follows(text: str, stop: int, final: bool) -> bool:
    """Whether a sentence goes on in lower case behind the closing quote or bracket before ``stop``."""
    blanks = _BLANKS.match(text, stop)
    begin = blanks.end() if blanks else stop
    if begin >= len(text) and not final:
        raise MoreText
    return "\n\n" not in text[stop:begin] and text[begin : begin + 1].islower()


def _strong_ends(text: str, at: int, run_stop: int, stop: int, final: bool) -> bool:
    after = text[stop : stop + 1]
    if not after:
        return True
    closed = stop > run_stop
    wide = _WIDE_END.search(text, at, stop) is not None
    if closed and after == "的":
        if stop + 1 >= len(text) and not final:
            raise MoreText
        return text[stop + 1 : stop + 2] in ("确", "士")
    if after.isspace():
        if closed:
            return not _narrator_follows(text, stop, final)
        return not (_operator_follows(text, at, stop, final) or brand_goes_on(text, at, stop, final))
    if wide:
        return True
    if _BEGINS.match(after):
        return closed or not brand_goes_on(text, at, stop, final)
    # "Really?Yes": the blank is missing. Anything else without one ("a?b=1", "!important", "x!=y") is a token.
    return after.isupper() and text[at - 1 : at].islower() and token_before(text, at).isalpha()


def _operator_follows(text: str, at: int, stop: int, final: bool) -> bool:
    """A factorial: "5! = 120"."""
    if text[at:stop] != "!" or not (text[at - 1 : at].isdigit() or len(token_before(text, at)) == 1):
        return False
    if stop + 1 >= len(text) and not final:
        raise MoreText
    return text[stop + 1 : stop + 2] in ("=", "+", "*", "/", "<", ">", "×", "÷")


def _dot_ends(text: str, at: int, stop: int, closed: bool, final: bool) -> bool:
    after = text[stop : stop + 1]
    if _BEGINS.match(after) and text[at - 1 : at] and _inside_wide_address(text, at):
        return False
    if not dot_ends(text, at, stop, final):
        return False
    return not (closed and _narrator_follows(text, stop, final))


def _inside_wide_address(text: str, at: int) -> bool:
    """A dot between Chinese characters of an address that is known by its scheme: "https://例子.中国"."""
    words = text[max(0, at - 64) : at].split()
    word = words[-1] if words else ""
    start = max(word.rfind("://"), word.rfind("www."))
    return start >= 0 and re.match(f"[{WIDE}]", word[-1]) is not None and not _STRONG.search(word, start)


def _spaced_dots(text: str, stop: int, final: bool) -> int:
    """Where an ellipsis written ". . ." ends, without a dot that begins a name (".NET"); ``stop`` if there is none."""
    if stop + 1 >= len(text) and not final:
        raise MoreText
    match = _SPACED_DOTS.match(text, stop)
    if match is None:
        return stop
    if match.end() >= len(text):
        if not final:
            raise MoreText
        return match.end()
    return match.end() if text[match.end()].isspace() else match.end() - 2


def _ellipsis_ends(text: str, stop: int, closed: bool, final: bool) -> bool:
    """Behind "…" a sentence ends only where a capital, a new quotation or nothing follows."""
    after = text[stop : stop + 1]
    if not after:
        return True
    if not after.isspace():
        return closed and after in '“「『‘"'
    follower = following(text, stop, final)
    if not follower.first:
        return True
    if closed and _BLANKS.match(text, stop) and text[stop:].lstrip()[:1] in ("“", "「", '"'):
        return True
    return follower.first.isupper() and follower.word != "I"
