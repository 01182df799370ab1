"""Decodes a stream of strings: plain text, SSE or JSON objects, cut anywhere, told apart by how the stream starts.

A stream is SSE where its first field lines are SSE's own and the first ``data:`` holds JSON, and a stream of JSON
objects where its first object is surely a chunk of a known wire format. All else is plain text, also text that starts
with ``{`` or ``data:``. Text is held back only while its start can still become one of the two: a few characters as a
rule.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final, Literal

from voice_agent.errors import SourceError
from voice_agent.llm.failures import failure, torn

DONE: Final = object()
"""What decoders give for ``[DONE]``."""

MAX_EVENT_CHARS = 16_000_000
_HELD_CHARS = 4_096
_HELD_OBJECT_CHARS = 262_144
_LINE_END = re.compile(r"\r\n|\n|\r")
_FIELDS = ("data:", "event:", "id:", "retry:", ":")
_PRELUDE = re.compile(r":(?: .*|[\w\-]*)|event: ?[\w.\-]*|id: ?\S*|retry: ?\d*")
_OBJECT_START = re.compile(r'(?:\[\s*)?(?:\{\s*(?:"([^"\\]{0,40})(?:"\s*(:)?)?)?)?')
_FIRST_KEYS = frozenset(
    {"model", "id", "object", "choices", "type", "created", "created_at", "message", "response", "candidates", "error"}
    | {"usageMetadata", "done", "provider"}
)


class SseDecoder:
    """Server-sent events to their JSON data. Lines end in LF, CR or CR LF; comments and unknown fields are left out.

    An event is given as soon as its data is whole, be it over several lines, without waiting for the blank line.
    Pieces that are whole lines without a line end (an HTTP client's line iterator) are understood too. Data that is
    not JSON is text. https://html.spec.whatwg.org/multipage/server-sent-events.html
    """

    def __init__(self) -> None:
        self._line: list[str] = []
        self._line_chars = 0
        self._after_cr = False
        self._data: list[str] = []
        self._event = ""

    def feed(self, piece: str) -> Iterator[Any]:
        if self._line_was_whole(piece):
            yield from self._end_line("")
        if piece:
            after_cr, self._after_cr = self._after_cr, piece.endswith("\r")
            if after_cr and piece.startswith("\n"):
                piece = piece[1:]
        *ended, rest = _LINE_END.split(piece)
        for line in ended:
            yield from self._end_line(line)
        if not rest:
            return
        self._line_chars += len(rest)
        if self._line_chars > MAX_EVENT_CHARS:
            raise failure(f"an event of the LLM stream is longer than {MAX_EVENT_CHARS} characters")
        self._line.append(rest)
        if len(self._line) == 1 and rest.startswith("data:") and rest.endswith("}") and _json(rest[5:]) is not None:
            yield from self._end_line("")

    def flush(self) -> Iterator[Any]:
        if self._line:
            yield from self._end_line("")
        yield from self._end_event(at_end=True)

    def _line_was_whole(self, piece: str) -> bool:
        if len(self._line) != 1 or not (piece == "" or piece.startswith(_FIELDS)):
            return False
        line = self._line[0]
        if line.startswith("data:"):
            return line[5:].strip() == "[DONE]" or _json(line[5:]) is not None
        return line.startswith(_FIELDS)

    def _end_line(self, rest: str) -> Iterator[Any]:
        line = "".join((*self._line, rest))
        self._line.clear()
        self._line_chars = 0
        if not line:
            yield from self._end_event()
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._event = value.strip()
        elif name == "data":
            self._data.append(value)
            if value.strip() == "[DONE]":
                yield from self._end_event()
            elif value.rstrip().endswith(("}", "]")) and (whole := _json("\n".join(self._data))) is not None:
                self._data.clear()
                yield self._item(whole)

    def _end_event(self, at_end: bool = False) -> Iterator[Any]:
        data, event = "\n".join(self._data), self._event
        self._data.clear()
        whole = _json(data)
        if data.strip() == "[DONE]":
            yield DONE
        elif whole is not None:
            yield self._item(whole)
        elif data.lstrip().startswith(("{", "[{")):
            raise torn("an event", data) if at_end else failure(f"an event of the LLM stream is no JSON: {data[:80]!r}")
        elif event == "error" and data:
            yield {"error": data}
        elif data:
            yield data
        self._event = ""

    def _item(self, value: Any) -> Any:
        if self._event == "error" and isinstance(value, dict) and "error" not in value:
            return {"error": value}
        return value


class JsonDecoder:
    """JSON objects one after the other: one a line (NDJSON), over several lines, or as the elements of an array."""

    _OUTSIDE = re.compile(r'[{}\[\]"]')
    _INSIDE = re.compile(r'["\\]')

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._chars = 0
        self._depth = 0
        self._in_string = False
        self._skip = False

    def feed(self, piece: str) -> Iterator[Any]:
        start = position = 0
        if self._skip and piece:
            self._skip, position = False, 1
        while position < len(piece):
            if self._depth == 0:
                opening = piece.find("{", position)
                between = piece[position : opening if opening >= 0 else len(piece)]
                if between.strip(" \t\r\n,[]\ufeff"):
                    raise _no_json(between.strip())
                if opening < 0:
                    return
                start, position, self._depth = opening, opening + 1, 1
                continue
            found = (self._INSIDE if self._in_string else self._OUTSIDE).search(piece, position)
            if found is None:
                break
            position = found.end()
            mark = found.group()
            if mark == "\\":
                self._skip = position == len(piece)
                position += 1
            elif mark == '"':
                self._in_string = not self._in_string
            elif mark in "{[":
                self._depth += 1
            else:
                self._depth -= 1
                if self._depth == 0:
                    yield self._object(piece[start:position])
                    start = position
        if self._depth:
            self._parts.append(piece[start:])
            self._chars += len(piece) - start
            if self._chars > MAX_EVENT_CHARS:
                raise failure(f"an object of the LLM stream is longer than {MAX_EVENT_CHARS} characters")

    def flush(self) -> Iterator[Any]:
        if self._depth:
            raise torn("a JSON object", "".join(self._parts))
        return iter(())

    def _object(self, rest: str) -> Any:
        text = "".join((*self._parts, rest))
        self._parts.clear()
        self._chars = 0
        value = _json(text)
        if value is None:
            raise _no_json(text)
        return value


class WireDecoder:
    """Strings to texts (str), JSON values and `DONE`. ``decoder`` None tells by the start what the strings are.

    ``is_chunk`` says whether a JSON value is surely a chunk of a known wire format. "wire" takes them as SSE or JSON,
    never as plain text.
    """

    def __init__(
        self, decoder: SseDecoder | JsonDecoder | Literal["text", "wire"] | None, is_chunk: Callable[[Any], bool]
    ) -> None:
        self._decoder = decoder
        self._is_chunk = is_chunk
        self._held: list[str] = []
        self._held_chars = 0
        self._first_object: JsonDecoder | None = None

    def feed(self, piece: str) -> Iterator[Any]:
        if self._decoder == "text":
            if piece:
                yield piece
        elif isinstance(self._decoder, SseDecoder | JsonDecoder):
            yield from self._decoder.feed(piece)
        else:
            self._held.append(piece)
            self._held_chars += len(piece)
            self._decide(self._told(piece, at_end=False))
            yield from self._release()

    def flush(self) -> Iterator[Any]:
        yield from self.release()
        if isinstance(self._decoder, SseDecoder | JsonDecoder):
            yield from self._decoder.flush()

    def release(self) -> Iterator[Any]:
        """What is still held back, when nothing more comes to tell what it is."""
        if self._held:
            self._decide(self._told("", at_end=True) or "text")
            yield from self._release()

    def _release(self) -> Iterator[Any]:
        if self._decoder is None or self._decoder == "wire":
            return
        held, self._held = self._held, []
        if held and self._decoder != "text":
            held[0] = held[0].removeprefix("\ufeff")
        for piece in held:
            yield from self.feed(piece)

    def _decide(self, wire: Literal["text", "sse", "json"] | None) -> None:
        if wire == "sse":
            self._decoder = SseDecoder()
        elif wire == "json":
            self._decoder = JsonDecoder()
        elif wire == "text":
            self._decoder = "text"

    def _told(self, piece: str, at_end: bool) -> Literal["text", "sse", "json"] | None:
        if self._first_object is not None:
            return self._told_by_object(piece, at_end)
        start = "".join(self._held).lstrip("\ufeff \t\r\n")
        if self._decoder == "wire":
            return None if not start else "json" if start[0] in "{[" else "sse"
        if not start:
            return "text" if self._held_chars > _HELD_CHARS else None
        if start[0] in "{[":
            return self._told_by_first_key(start, at_end)
        joined = "".join(self._held)
        if at_end:
            return "sse" if _only_preludes(joined) else "text"
        verdicts = (_looks_like_sse(joined), _looks_like_sse("\n".join(self._held)))
        if True in verdicts:
            return "sse"
        return None if None in verdicts and self._held_chars <= _HELD_CHARS else "text"

    def _told_by_first_key(self, start: str, at_end: bool) -> Literal["text", "json"] | None:
        match = _OBJECT_START.match(start)
        key, colon = match.groups() if match else (None, None)
        if colon is None:
            possible = match is not None and match.end() == len(start)
            if key and not any(name.startswith(key) for name in _FIRST_KEYS):
                possible = False
            return None if possible and not at_end else "text"
        if key not in _FIRST_KEYS:
            return "text"
        self._first_object = JsonDecoder()
        return self._told_by_object(start, at_end)

    def _told_by_object(self, piece: str, at_end: bool) -> Literal["text", "json"] | None:
        assert self._first_object is not None
        try:
            for value in self._first_object.feed(piece):
                return "json" if self._is_chunk(value) else "text"
        except SourceError:
            return "text"
        return "text" if at_end or self._held_chars > _HELD_OBJECT_CHARS else None


def _looks_like_sse(text: str) -> bool | None:
    """Whether the start of a stream is SSE; None: too early to tell."""
    *ended, rest = _LINE_END.split(text[:_HELD_CHARS].lstrip("\ufeff \t\r\n"))
    for line in ended:
        if line.startswith("data:") and line[5:].strip():
            return _is_data(line[5:])
        if line and not line.startswith("data:") and not _PRELUDE.fullmatch(line):
            return False
    if rest.startswith("data:") and rest[5:].strip():
        return _is_data(rest[5:])
    possible = not rest.strip() or rest.startswith("data:") or any(name.startswith(rest) for name in _FIELDS)
    possible = possible or _PRELUDE.fullmatch(rest) is not None
    return None if possible else False


def _only_preludes(text: str) -> bool:
    """Whether a whole stream is SSE without an event: comments and the like, closed by a blank line."""
    lines = _LINE_END.split(text.lstrip("\ufeff \t\r\n"))
    return lines[-2:] == ["", ""] and all(not line or _PRELUDE.fullmatch(line) for line in lines)


def _is_data(value: str) -> bool | None:
    value = value.strip()
    if value.startswith("{") or value == "[DONE]":
        return True
    return None if "[DONE]".startswith(value) else False


def _no_json(text: str) -> SourceError:
    return failure(f"the LLM stream is no JSON here: {text[:80]!r}; check the server's address")


def _json(text: str) -> Any:
    """The JSON object, array or string that the text is; None where it is none."""
    if not text or text.isspace():
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list | str) else None
