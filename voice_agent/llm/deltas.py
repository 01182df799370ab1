"""What comes out of an LLM, whatever its wire format: text, tool calls, breaks and the end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

BreakReason = Literal["tool_call", "message", "block"]
Message = Mapping[str, Any]
"""One entry of a conversation in OpenAI's format: ``role``, ``content``, at times ``tool_calls`` or ``tool_call_id``.
"""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """Text to be spoken; never empty. A refusal is text too: the listener has to hear something."""

    text: str


@dataclass(frozen=True, slots=True)
class Break:
    """The text so far is a piece of its own, full stop or not.

    ``tool_call``: the model began to write a call (its arguments may still be on the way). ``message``, ``block``: a
    message or content block ended.
    """

    reason: BreakReason


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the caller has to run, complete.

    ``arguments`` is None where the model wrote something that is no JSON object; ``raw`` is always what it wrote.
    Tools that the provider runs itself (web search and the like) are not reported, they only give a `Break`.
    """

    name: str
    arguments: dict[str, Any] | None
    id: str | None = None
    raw: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class End:
    """The stream ended without an error; always the last delta.

    ``reason`` is the provider's own word ("stop", "length", "end_turn" …), None where it gave none (then the answer
    may be cut). Tokens as it counted them.
    """

    reason: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None


Delta = TextDelta | ToolCall | Break | End


class ChatModel(Protocol):
    """Answers a conversation with a stream of deltas that ends in `End`, or raises `SourceError` after what arrived."""

    def reply(self, messages: Sequence[Message], *, tools: Sequence[Mapping[str, Any]] = ()) -> AsyncIterator[Delta]:
        """Streams the next assistant message. ``tools`` are descriptions in OpenAI's format."""
        ...
