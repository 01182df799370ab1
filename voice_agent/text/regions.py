"""Finds the stretches of an LLM's text that are no prose: code, reasoning, tool calls; tag reader and cleaner share it.

Every question is asked about a window of the stream and answered with a match, ``NO``, or ``MORE`` (the window ends before
it is decided). ``MORE`` is given only within a bound of characters, so nobody holds text for ever, and with ``final`` it
is never given. An open region is consumed piece by piece by :meth:`Region.advance` and never buffered.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Literal, NamedTuple, Protocol

RegionKind = Literal["code", "reasoning", "tool call", "comment", "script", "table", "footnote", "citation", "url"]

CODE_SPAN_CHARS = 256
FENCE_INFO_CHARS = 200
RUN_CHARS = 64
_ATTRIBUTE_CHARS = 200
_CLOSER_CHARS = 64
_JSON_CHARS = 1024


class Verdict(Enum):
    """``NO``: it is not, whatever follows. ``MORE``: it depends on text that is not there yet."""

    NO = 0
    MORE = 1


class Advance(NamedTuple):
    """``[start, content_end)`` is content, ``[content_end, end)`` the mark that closes; what is behind ``end`` stays."""

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


class CodeSpan(NamedTuple):
    """Window offsets of an inline code span: its text, and where the closing backticks end."""

    content_start: int
    content_end: int
    end: int


# ---------------------------------------------------------------------------------------------------------------- code

_BACKTICKS = re.compile(r"`+")
_LINE_PREFIX = re.compile(r"(?:[ \t>]|[-*+•][ \t]|\d{1,3}[.)][ \t])*")
_LINE_PREFIX_START = re.compile(_LINE_PREFIX.pattern + r"(?:[-*+•]|\d{1,3}[.)]?)?")
_LINE_PREFIX_CHARS = 64
_FENCE_LINE = re.compile(r"[ \t>]{0,64}(?P<run>`{1,256}|~{1,256})?(?P<info>[^`\n]{0,200})")
_MARKDOWN = frozenset({"markdown", "md"})


def is_line_prefix(line: str) -> bool:
    """Whether a block may still begin after this much of a line: indentation, quote marks, bullets."""
    return _LINE_PREFIX.fullmatch(line) is not None


def may_become_line_prefix(line: str) -> bool:
    """Whether more text can make a line prefix of it; not if it is over 64 characters long."""
    return len(line) <= _LINE_PREFIX_CHARS and _LINE_PREFIX_START.fullmatch(line) is not None


def run_end(text: str, start: int) -> int:
    """Where the run of ``text[start]`` ends."""
    mark, end = text[start], start + 1
    while end < len(text) and text[end] == mark:
        end += 1
    return end


@dataclass
class Fence:
    """A fenced code block (CommonMark 4.5; closed at any indentation, since lists indent them).

    ``anywhere``: it began behind text, so it may also end behind text. Inside a ``markdown`` fence, fences nest.
    """

    mark: str
    length: int
    anywhere: bool = False
    nests: bool = False
    depth: int = 0
    line_start: bool = True
    kind: RegionKind = "code"

    def advance(self, text: str, start: int, final: bool) -> Advance:
        if self.anywhere:
            return self._advance_anywhere(text, start, final)
        position = start
        while position < len(text):
            if self.line_start:
                line = _FENCE_LINE.match(text, position)
                assert line is not None
                if line.end() == len(text) and not final and self._may_close(line):
                    return Advance(position, position, False)
                ends = line.end() == len(text) or text[line.end()] == "\n"
                if ends and self._is_ours(line):
                    if not line["info"].strip():
                        if self.depth == 0:
                            return Advance(position, line.end("run"), True)
                        self.depth -= 1
                    elif self.nests:
                        self.depth += 1
            newline = text.find("\n", position)
            self.line_start = newline >= 0
            position = newline + 1 if newline >= 0 else len(text)
        return Advance(position, position, final)

    def _is_ours(self, line: re.Match[str]) -> bool:
        run = line["run"]
        return run is not None and run[0] == self.mark and len(run) >= self.length and _is_short(line)

    def _may_close(self, line: re.Match[str]) -> bool:
        """Whether a line that is not complete yet can still turn out to be a fence of ours."""
        if not _is_short(line):
            return False
        if line["run"] is None:
            return not line["info"].strip(" \t>`~")
        return self.nests or not line["info"].strip()

    def _advance_anywhere(self, text: str, start: int, final: bool) -> Advance:
        for run in _BACKTICKS.finditer(text, start):
            if run.end() == len(text) and not final and run.end() - run.start() < RUN_CHARS:
                return Advance(run.start(), run.start(), False)
            if run.end() - run.start() >= self.length:
                return Advance(run.start(), min(run.end(), run.start() + RUN_CHARS), True)
        return Advance(len(text), len(text), final)


def _is_short(line: re.Match[str]) -> bool:
    """Longer lines are content, so that no fence has to be waited for without a bound."""
    return line.end() - line.start() < FENCE_INFO_CHARS


def open_fence(text: str, start: int, line_empty: bool, final: bool) -> Opening | Verdict:
    """Whether the run of backticks or tildes at ``start`` opens a fenced block.

    Behind text (``line_empty`` False) three backticks that their own line does not close open one too: LLMs write
    "Run this: ```sh" and go on in the next line.
    """
    mark, end = text[start], run_end(text, start)
    length = end - start
    if length > RUN_CHARS:
        return Verdict.NO
    if end == len(text) and not final:
        return Verdict.MORE
    if length < 3 or (mark == "~" and not line_empty):
        return Verdict.NO
    newline = text.find("\n", end)
    info = text[end : newline if newline >= 0 else len(text)]
    if mark == "`" and "`" in info[:FENCE_INFO_CHARS]:
        return Verdict.NO
    if newline < 0 and not final and len(info) < FENCE_INFO_CHARS:
        return Verdict.MORE
    stop = newline + 1 if newline >= 0 else len(text)
    if len(info) > FENCE_INFO_CHARS:
        stop = end + FENCE_INFO_CHARS
    return Opening(
        stop - start,
        Fence(
            mark,
            length,
            anywhere=not line_empty,
            nests=info.strip().lower() in _MARKDOWN,
            line_start=newline >= 0 and len(info) <= FENCE_INFO_CHARS,
        ),
    )


def code_span(text: str, start: int, final: bool) -> CodeSpan | Verdict:
    """The inline code that the backticks at ``start`` open: closed by as many, in the same line (CommonMark 6.1)."""
    opened = run_end(text, start)
    length = opened - start
    if length > RUN_CHARS:
        return Verdict.NO
    if opened == len(text):
        return Verdict.NO if final else Verdict.MORE
    limit = opened + CODE_SPAN_CHARS
    newline = text.find("\n", opened, limit)
    stop = min(limit, len(text)) if newline < 0 else newline
    for run in _BACKTICKS.finditer(text, opened, stop):
        if run.end() == len(text) and not final:
            return Verdict.MORE
        if run.end() - run.start() == length and text[run.end() : run.end() + 1] != "`":
            return CodeSpan(opened, run.start(), run.end())
    if newline < 0 and len(text) < limit and not final:
        return Verdict.MORE
    return Verdict.NO


# -------------------------------------------------------------------------------------------------------------- hidden

_REASONING = "think thinking thought thoughts reasoning scratchpad".split()
_TOOLS = (
    "tool_call tool_calls tool_code tool_use tool_result tool_results tool_response tool_output "
    "function_call function_calls function_response function_results invoke"
).split()
_SCRIPTS = ["script", "style"]
_NAMES = [*_REASONING, *_TOOLS, *_SCRIPTS]
_FUNCTION = "function="
_ELEMENT = re.compile(rf"<({'|'.join(_NAMES)})(?=[\s/>])|<(function)=", re.IGNORECASE)
_ELEMENT_NAME = re.compile(r"<[a-z_]*=?\Z", re.IGNORECASE)
_TRIANGLE = re.compile(r"◁([a-z_]{1,16})▷", re.IGNORECASE)
_TRIANGLE_START = re.compile(r"◁[a-z_]{0,16}\Z", re.IGNORECASE)
_BAR = "|｜"
_CHANNEL = re.compile(r"<\|channel\|>\s{0,4}(?:analysis|commentary)(?!\w)", re.IGNORECASE)
_CHANNEL_START = re.compile(r"<\|channel\|>\s{0,4}[a-z]{0,10}\Z", re.IGNORECASE)
_CHANNEL_END = re.compile(r"<\|(?:end|return|call)\|>|(?=<\|(?:start|channel)\|>)", re.IGNORECASE)
_TOOL_TOKEN = re.compile(rf"<[{_BAR}]([\w▁]{{0,24}}tool[\w▁]{{0,24}})[_▁]begin[{_BAR}]>", re.IGNORECASE)
_TOOL_REST = re.compile(r"<\|(?:python_tag|tool_call)\|>", re.IGNORECASE)
_TOKEN_START = re.compile(rf"<[{_BAR}][\w▁]{{0,56}}\|?\Z")
_NEXT_TOKEN = re.compile(rf"(?=<[{_BAR}])")
_TOOL_CALLS = re.compile(r"\[TOOL_CALLS\]\s{0,8}(?=[\[{]|[\w.-]{1,64}(?:\[ARGS\]\s{0,4})?[\[{])", re.IGNORECASE)
_TOOL_CALLS_START = re.compile(r"\[TOOL_CALLS\]\s{0,8}[\w.-]{0,64}(?:\[[ARGS]{0,4}\]?\s{0,4})?\Z", re.IGNORECASE)
_TOOL_CALLS_TOKEN = "[tool_calls]"


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


def open_hidden(text: str, start: int, final: bool) -> Opening | Verdict:
    """Whether ``<``, ``◁`` or ``[`` at ``start`` opens reasoning, a tool call, a comment or a script, closed or not."""
    mark = text[start]
    if mark == "◁":
        return _open_triangle(text, start, final)
    if mark == "[":
        return _open_tool_calls(text, start, final)
    if text.startswith("<!", start):
        if text.startswith("<!--", start):
            return Opening(4, Element("comment", re.compile("-->")))
        return Verdict.MORE if "<!--".startswith(text[start:]) and not final else Verdict.NO
    if start + 1 < len(text) and text[start + 1] in _BAR:
        return _open_token(text, start, final)
    named = _ELEMENT.match(text, start)
    if named is None:
        partial = _ELEMENT_NAME.match(text, start)
        if partial is None or final:
            return _open_cut_name(text, start) if final else Verdict.NO
        word = partial.group()[1:].lower()
        return Verdict.MORE if any(name.startswith(word) for name in (*_NAMES, _FUNCTION)) else Verdict.NO
    name = (named[1] or named[2]).lower()
    region = Element(_kind(name), _closer(name))
    limit = named.end() + _ATTRIBUTE_CHARS
    for position in range(named.end(), min(limit, len(text))):
        if text[position] == ">":
            if text[position - 1] == "/" and not named[2]:
                return Verdict.NO
            return Opening(position + 1 - start, region)
        if text[position] in "<\n":
            return Opening(named.end() - start, region)
    if len(text) < limit and not final:
        return Verdict.MORE
    return Opening(named.end() - start, region)


def _open_cut_name(text: str, start: int) -> Opening | Verdict:
    """A stream that ends right behind the name of a hidden element."""
    name = text[start + 1 :].lower()
    return Opening(len(text) - start, Element(_kind(name), _closer(name))) if name in _NAMES else Verdict.NO


def _kind(name: str) -> RegionKind:
    return "reasoning" if name in _REASONING else "script" if name in _SCRIPTS else "tool call"


def _closer(name: str) -> re.Pattern[str]:
    return re.compile(rf"</\s{{0,4}}{re.escape(name)}\s{{0,8}}>", re.IGNORECASE)


def _open_triangle(text: str, start: int, final: bool) -> Opening | Verdict:
    opened = _TRIANGLE.match(text, start)
    if opened is not None:
        name = opened[1].lower()
        if name not in _NAMES:
            return Verdict.NO
        return Opening(len(opened.group()), Element(_kind(name), re.compile(rf"◁/\s{{0,4}}{name}▷", re.IGNORECASE)))
    return Verdict.MORE if not final and _TRIANGLE_START.match(text, start) else Verdict.NO


def _open_token(text: str, start: int, final: bool) -> Opening | Verdict:
    if not final and _CHANNEL_START.match(text, start):
        return Verdict.MORE
    if _CHANNEL.match(text, start):
        return Opening(len("<|channel|>"), Element("reasoning", _CHANNEL_END))
    begin = _TOOL_TOKEN.match(text, start)
    if begin is not None:
        closer = re.compile(rf"<[{_BAR}]{re.escape(begin[1])}[_▁]end[{_BAR}]>", re.IGNORECASE)
        return Opening(len(begin.group()), Element("tool call", closer))
    rest = _TOOL_REST.match(text, start)
    if rest is not None:
        return Opening(len(rest.group()), Element("tool call", _NEXT_TOKEN))
    if not final and _TOKEN_START.match(text, start):
        return Verdict.MORE
    return Verdict.NO


# ---------------------------------------------------------------------------------------------------------------- JSON

_JSON_MARK = re.compile(r'["\\\[\]{}]')
_JSON_HEAD = re.compile(r'(?:\[\s{0,16})?\{\s{0,64}"')
_JSON_HEAD_START = re.compile(r"(?:\[\s{0,16})?(?:\{\s{0,64})?\Z")
_JSON_NAME = re.compile(r'"name"\s{0,8}:')
_JSON_ARGUMENTS = re.compile(r'"(?:arguments|parameters)"\s{0,8}:')
_JSON_FIRST_KEY = re.compile(r'(?:\[\s{0,16})?\{\s{0,64}"(\w{0,32})("?)')
_TOOL_KEYS = ("name", "arguments", "parameters", "function", "tool_calls")


@dataclass
class Json:
    """One JSON object or array, by its brackets and strings; it need not be valid otherwise."""

    kind: RegionKind = "tool call"
    depth: int = 0
    in_string: bool = False
    escaped: bool = False

    def advance(self, text: str, start: int, final: bool) -> Advance:
        position = start
        if self.escaped and position < len(text):
            self.escaped = False
            position += 1
        while (mark := _JSON_MARK.search(text, position)) is not None:
            position = mark.end()
            character = mark.group()
            if character == '"':
                self.in_string = not self.in_string
            elif character == "\\":
                if position == len(text):
                    self.escaped = self.in_string
                elif self.in_string:
                    position += 1
            elif not self.in_string:
                self.depth += 1 if character in "[{" else -1
                if self.depth <= 0:
                    return Advance(position, position, True)
        return Advance(len(text), len(text), final)


def open_json(text: str, start: int, final: bool) -> Opening | Verdict:
    """Whether ``{`` or ``[`` at the start of a line begins a tool call in plain JSON: ``name`` and ``arguments``."""
    if _JSON_HEAD.match(text, start) is None:
        return Verdict.MORE if not final and _JSON_HEAD_START.match(text, start) else Verdict.NO
    stop = start + _JSON_CHARS
    end, _, closed = Json().advance(text[start:stop], 0, False)
    body = text[start : start + end]
    if _JSON_NAME.search(body) and _JSON_ARGUMENTS.search(body):
        return Opening(0, Json())
    if closed:
        return Verdict.NO
    if len(text) < stop and not final:
        return Verdict.MORE
    first = _JSON_FIRST_KEY.match(body)
    assert first is not None
    whole = first[2] == '"'
    if not whole and first.end() < len(body):
        return Verdict.NO
    if any(key == first[1] if whole else key.startswith(first[1]) for key in _TOOL_KEYS):
        return Opening(0, Json())
    return Verdict.NO


def _open_tool_calls(text: str, start: int, final: bool) -> Opening | Verdict:
    opened = _TOOL_CALLS.match(text, start)
    if opened is not None:
        return Opening(len(opened.group()), Json())
    rest = text[start : start + len(_TOOL_CALLS_TOKEN)].lower()
    if not _TOOL_CALLS_TOKEN.startswith(rest) or final:
        return Verdict.NO
    partial = len(rest) < len(_TOOL_CALLS_TOKEN) or _TOOL_CALLS_START.match(text, start)
    return Verdict.MORE if partial else Verdict.NO
