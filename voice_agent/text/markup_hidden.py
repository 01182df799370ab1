"""Finds what an LLM writes but does not say: reasoning, tool calls, comments and scripts, closed or not."""

from __future__ import annotations

import re
from dataclasses import dataclass

from voice_agent.text.regions import Advance, Element, Opening, RegionKind, Verdict

_ATTRIBUTE_CHARS = 200
_JSON_CHARS = 1024
_REASONING_NAMES = "think thinking thought thoughts reasoning scratchpad"
_TOOL_NAMES = (
    "tool_call tool_calls tool_code tool_use tool_result tool_results tool_response tool_output "
    "function_call function_calls function_response function_results invoke"
)
_REASONING = _REASONING_NAMES.split()
_SCRIPTS = ["script", "style"]
_NAMES = [*_REASONING, *_TOOL_NAMES.split(), *_SCRIPTS]
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
_TOKEN_START = re.compile(rf"<[{_BAR}][\w▁]{{0,56}}[{_BAR}]?\Z")
_NEXT_TOKEN = re.compile(rf"(?=<[{_BAR}])")
_TOOL_CALLS = re.compile(r"\[TOOL_CALLS\]\s{0,8}(?=[\[{]|[\w.-]{1,64}(?:\[ARGS\]\s{0,4})?[\[{])", re.IGNORECASE)
_TOOL_CALLS_START = re.compile(r"\[TOOL_CALLS\]\s{0,8}[\w.-]{0,64}(?:\[[ARGS]{0,4}\]?\s{0,4})?\Z", re.IGNORECASE)
_TOOL_CALLS_TOKEN = "[tool_calls]"


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


def _open_tool_calls(text: str, start: int, final: bool) -> Opening | Verdict:
    opened = _TOOL_CALLS.match(text, start)
    if opened is not None:
        return Opening(len(opened.group()), Json())
    rest = text[start : start + len(_TOOL_CALLS_TOKEN)].lower()
    if not _TOOL_CALLS_TOKEN.startswith(rest) or final:
        return Verdict.NO
    partial = len(rest) < len(_TOOL_CALLS_TOKEN) or _TOOL_CALLS_START.match(text, start)
    return Verdict.MORE if partial else Verdict.NO


# JSON

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
