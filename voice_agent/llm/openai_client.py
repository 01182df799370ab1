"""Streams chat completions from any OpenAI-compatible server through the ``openai`` client, with errors that say what
to do.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from voice_agent.errors import ConfigError, SourceError
from voice_agent.llm.any_stream import stream_deltas
from voice_agent.llm.chunks import plain
from voice_agent.llm.deltas import Delta, End, Message
from voice_agent.llm.failures import failure, from_exception
from voice_agent.llm.openai_access import open_client

_LIST_S = 3.0
_LISTED_MODELS = 8


class OpenAIChat:
    """A `ChatModel` on an OpenAI-compatible server. Use it in one event loop and close it (``async with`` does).

    ``base_url`` and ``api_key`` default to OPENAI_BASE_URL and OPENAI_API_KEY; only OpenAI's own address needs a key.
    ``system`` goes in front of conversations that do not begin with a system message. ``timeout_s`` bounds each wait
    for the next bytes, ``retries`` the attempts after a failure before the first token. Raises `ConfigError` where
    the address or the key cannot be used.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        system: str | None = None,
        timeout_s: float = 60.0,
        retries: int = 1,
    ) -> None:
        if not model:
            raise ConfigError("no model is named: pass --model, such as --model gpt-4o-mini")
        self.model = model
        self.system = system
        self._client, url = open_client(base_url, api_key, timeout_s=timeout_s, retries=retries, instead=", or use --llm demo")
        self._where = f"the LLM at {url} (model {model})"

    async def reply(
        self, messages: Sequence[Message], *, tools: Sequence[Mapping[str, Any]] = ()
    ) -> AsyncGenerator[Delta, None]:
        """Streams the next assistant message. Closing or cancelling stops the HTTP request."""
        try:
            stream = await self._request(messages, tools)
        except Exception as error:
            raise await self._explained(error) from error
        async with aclosing(stream_deltas(stream, name=self._where)) as deltas:
            empty = True
            async for delta in deltas:
                if isinstance(delta, End) and delta.reason is None:
                    raise self._unfinished(empty)
                empty = False
                yield delta

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._client.close()

    async def __aenter__(self) -> OpenAIChat:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    async def _request(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]]) -> Any:
        conversation = _sendable(messages)
        if self.system and not (conversation and conversation[0].get("role") in ("system", "developer")):
            conversation.insert(0, {"role": "system", "content": self.system})
        request: dict[str, Any] = {"model": self.model, "messages": conversation, "stream": True}
        if tools:
            request["tools"] = _sendable(tools)
        return await self._client.chat.completions.create(**request)

    def _unfinished(self, empty: bool) -> SourceError:
        """The client takes a response that just ends for a whole one; the finish reason tells that it was cut."""
        if empty:
            return failure(
                f"{self._where} sent no answer: check that the address is the one of an OpenAI-compatible API "
                "(it usually ends in /v1)"
            )
        return failure(
            f"{self._where} ended its answer without a finish reason: it was probably cut, try again", retryable=True
        )

    async def _explained(self, error: Exception) -> SourceError:
        explained = from_exception(error, self._where)
        if getattr(error, "status_code", None) == 404 and (models := await self._models()):
            return failure(f"{explained}; it offers {models}")
        return explained

    async def _models(self) -> str:
        try:
            async with asyncio.timeout(_LIST_S):
                names = [model.id async for model in self._client.models.list()]
        except Exception:
            return ""  # the list is only an extra: the error itself is already known
        more = ", …" if len(names) > _LISTED_MODELS else ""
        return ", ".join(names[:_LISTED_MODELS]) + more


def _sendable(values: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """As JSON, with a question mark for half a character: no request can carry one."""
    sendable: list[dict[str, Any]] = json.loads(json.dumps(plain(values), ensure_ascii=False).encode("utf-8", "replace"))
    return sendable
