"""Builds deltas from what the wire formats report: joins tool-call fragments, places the breaks, drops empty text."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable
from typing import Any

from voice_agent.llm.chunks import plain
from voice_agent.llm.deltas import Break, BreakReason, Delta, End, TextDelta, ToolCall
from voice_agent.llm.failures import failure

MAX_ARGUMENT_CHARS = 1_000_000
_HIGH_SURROGATE = re.compile("[\ud800-\udbff]")


class Assembly:
    """The state of one stream. Formats call `text`, `block`, `call`, `finish`; `take` hands on what became complete."""

    def __init__(self) -> None:
        self.streamed: set[Hashable] = set()
        """Parts whose text came in deltas, so that a format does not repeat it from a closing event."""
        self.empty = True
        self._out: list[Delta] = []
        self._calls: dict[int | None, _Call] = {}
        self._latest: dict[Hashable, int] = {}
        self._calls_begun = 0
        self._running_piece = False
        self._finished = False
        self._block: Hashable = None
        self._half = ""
        self._end = End()

    def take(self) -> list[Delta]:
        """What became complete since the last call."""
        out, self._out = self._out, []
        return out

    def text(self, text: object) -> None:
        """Text of the answer. Anything but a string with characters is no text."""
        if not isinstance(text, str) or not text:
            return
        if self._calls:
            self._close_calls(only_complete=True)
        if self._finished:
            self.block("message")
        text = self._whole_characters(text)
        if text:
            self._out.append(TextDelta(text))
            self._running_piece = True
            self.empty = False

    def block(self, reason: BreakReason = "block") -> None:
        """A message or content block begins or ends here."""
        self._finished = False
        if self._running_piece:
            self._break(reason)

    def at_block(self, index: Hashable) -> None:
        """The next text belongs to the block with this index; a change closes the block before."""
        if index is not None and index != self._block:
            self.block()
            self._block = index

    def hidden_call(self) -> None:
        """The provider calls a tool of its own: it ends the piece and is not reported."""
        self._finished = False
        self._break("tool_call")

    def call(self, index: Hashable, *, id: Any = None, name: Any = None, arguments: Any = None) -> None:
        """A fragment of a tool call.

        Servers number parallel calls in many ways: the same index for all with different ids, no index, neither. A
        new call begins where the id changes, or where a name comes without an id after complete arguments.
        """
        id = id if isinstance(id, str) and id else None
        name = name if isinstance(name, str) and name else None
        if arguments is not None and not isinstance(arguments, str):
            arguments = json.dumps(plain(arguments), ensure_ascii=False)
        if not (id or name or arguments):
            return
        call = self._calls.get(self._latest.get(index))
        if call is None or call.differs(id, name, arguments):
            self._finished = False
            self._calls_begun += 1
            self._latest[index] = self._calls_begun
            call = self._calls[self._calls_begun] = _Call()
            self._break("tool_call")
        call.id = call.id or id
        call.name = call.name or name
        if arguments:
            call.add(arguments)

    def whole_call(self, *, id: Any = None, name: Any = None, arguments: Any = None) -> None:
        """A tool call that comes complete."""
        index = ("whole", self._calls_begun)
        self.call(index, id=id, name=name, arguments=arguments)
        self.close_call(index)

    def close_call(self, index: Hashable, *, name: Any = None, arguments: Any = None) -> None:
        """The call is complete. ``arguments``, where the closing event repeats them, win over the joined fragments."""
        key = self._latest.get(index)
        if key not in self._calls:
            return
        call = self._calls[key]
        call.name = call.name or (name if isinstance(name, str) else None)
        if isinstance(arguments, str):
            call.replace(arguments)
        self._close(key)

    def finish(self, reason: str | None, *, message_ends: bool = True) -> None:
        """The model stopped. Text after that is a new message, unless the server says so in every chunk."""
        self._close_calls()
        self._finished = message_ends
        self._end = End(reason or self._end.reason, self._end.input_tokens, self._end.output_tokens)

    def usage(self, input_tokens: int | None, output_tokens: int | None) -> None:
        """Token counts; the last ones that are known count."""
        before = self._end
        self._end = End(
            before.reason,
            before.input_tokens if input_tokens is None else input_tokens,
            before.output_tokens if output_tokens is None else output_tokens,
        )

    def close(self) -> None:
        """The stream ended by itself: what is still open is closed."""
        self._close_calls()
        if self._half:
            self._out.append(TextDelta(self._half))
            self._half = ""
        self._out.append(self._end)

    def _break(self, reason: BreakReason) -> None:
        self._out.append(Break(reason))
        self._running_piece = False

    def _close_calls(self, only_complete: bool = False) -> None:
        for key in list(self._calls):
            if not only_complete or self._calls[key].complete:
                self._close(key)

    def _close(self, key: int | None) -> None:
        self._out.append(self._calls.pop(key).result())
        self.empty = False

    def _whole_characters(self, text: str) -> str:
        """Joins a UTF-16 pair that the server cut in two; half of one waits for the next delta."""
        text = self._half + text
        self._half = ""
        if "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        if _HIGH_SURROGATE.search(text):
            text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        return text


class _Call:
    def __init__(self) -> None:
        self.id: str | None = None
        self.name: str | None = None
        self._parts: list[str] = []
        self._chars = 0

    @property
    def complete(self) -> bool:
        raw = "".join(self._parts).strip()
        return not raw or _is_json(raw)

    def differs(self, id: str | None, name: str | None, arguments: str | None) -> bool:
        if id is not None and self.id is not None:
            return id != self.id
        another = name is not None and (name != self.name or bool(arguments))
        return another and self._chars > 0 and self.complete

    def add(self, fragment: str) -> None:
        self._chars += len(fragment)
        if self._chars > MAX_ARGUMENT_CHARS:
            raise failure(f"the arguments of the call {self.name!r} are longer than {MAX_ARGUMENT_CHARS} characters")
        self._parts.append(fragment)

    def replace(self, arguments: str) -> None:
        self._parts, self._chars = [], 0
        self.add(arguments)

    def result(self) -> ToolCall:
        raw = "".join(self._parts)
        try:
            arguments = json.loads(raw) if raw.strip() else {}
        except (ValueError, RecursionError):
            arguments = None
        return ToolCall(self.name or "", arguments if isinstance(arguments, dict) else None, self.id, raw)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
