"""Who may come in: API keys, how often and how many at once, and from which pages. One gate for all transports."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from voice_agent.server.config import ServerConfig
from voice_agent.server.refusals import RefusedError

__all__ = ["Gate", "Guest", "key_in"]


@dataclass(frozen=True, slots=True)
class Guest:
    """Someone who was let in: the name of the key, "anonymous" without one."""

    name: str


class Gate:
    """Admits requests: ``async with gate.admit(headers, client) as guest``. Raises RefusedError (401, 403, 429, 503)."""

    def __init__(self, config: ServerConfig, now_s: Callable[[], float] = time.monotonic) -> None:
        self.draining = False
        self._config = config
        self._now_s = now_s
        self._keys = [(hashlib.sha256(key.key.encode()).digest(), key) for key in config.keys]

    @asynccontextmanager
    async def admit(self, headers: Mapping[str, str], client: str | None) -> AsyncGenerator[Guest, None]:
        """``headers``: of the request, with lower-case names; ``client``: the peer's address."""
        if self.draining:
            raise RefusedError(503, "the server is shutting down; try another one", code="draining", retry_after_s=5.0)
        self.check_origin(headers)
        yield Guest(self._name(key_in(headers)))

    def check_origin(self, headers: Mapping[str, str]) -> None:
        """Refuses calls from pages of other origins."""

    def _name(self, key: str | None) -> str:
        if not self._keys:
            return "anonymous"
        digest = hashlib.sha256((key or "").encode()).digest()
        found = [settings for wanted, settings in self._keys if hmac.compare_digest(wanted, digest)]
        if not found:
            raise RefusedError(
                401, "the API key is missing or wrong: send it as Authorization: Bearer KEY", code="invalid_api_key"
            )
        return found[0].name


def key_in(headers: Mapping[str, str]) -> str | None:
    """The API key that came with a request: Authorization with Bearer or Token, x-api-key, or, since a page cannot set
    headers on a WebSocket, its subprotocols "token, KEY"."""
    scheme, _, key = headers.get("authorization", "").partition(" ")
    if scheme.lower() in ("bearer", "token") and key.strip():
        return key.strip()
    if "x-api-key" in headers:
        return headers["x-api-key"]
    offered = [part.strip() for part in headers.get("sec-websocket-protocol", "").split(",")]
    return offered[1] if len(offered) == 2 and offered[0].lower() == "token" else None
