"""Who may come in: API keys, how often and how many at once, and from which pages. One gate for all transports."""

from __future__ import annotations

import hashlib
import hmac
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from voice_agent.server.config import KeySettings, ServerConfig, is_loopback
from voice_agent.server.refusals import RefusedError

__all__ = ["Gate", "Guest", "key_in"]

ANONYMOUS = "anonymous"
_REMEMBERED = 10_000
"""How many guests are remembered beside those that are in: who was not here for longest is forgotten first."""


@dataclass(frozen=True, slots=True)
class Guest:
    """Someone who was let in: the name of the key, "anonymous" without one; ``account``: whom that counts for, the key or the
    address."""

    name: str
    account: str


@dataclass(slots=True)
class _Account:
    """What one key, or one address without a key, has used: requests that are left (at ``at_s``) and those that are open."""

    left: float
    at_s: float
    open: int = 0


class Gate:
    """Admits requests: ``async with gate.admit(headers, client) as guest`` for as long as they last.

    ``draining``: the server ends, nobody is let in any more; ``open``: how many are in. A key is compared in a time that
    does not depend on it.
    """

    def __init__(self, config: ServerConfig, now_s: Callable[[], float] = time.monotonic) -> None:
        self.draining = False
        self.open = 0
        self._config = config
        self._now_s = now_s
        self._keys = [(_digest(key.key), key) for key in config.keys]
        self._accounts: OrderedDict[str, _Account] = OrderedDict()

    @asynccontextmanager
    async def admit(self, headers: Mapping[str, str], client: str | None) -> AsyncGenerator[Guest, None]:
        """``headers``: of the request, with lower-case names; ``client``: the peer's address.

        Raises RefusedError: 401 for a key, 403 for a page's origin, 429 beyond a limit, 503 while draining.
        """
        key = self.key_of(headers)
        limits = self._config.limits
        name, account, per_minute, concurrent = (
            ANONYMOUS, f"address {client}", limits.requests_per_minute, limits.concurrent
        )  # fmt: skip
        if key is not None:
            name = key.name
            account, per_minute, concurrent = f"key {name}", key.requests_per_minute, key.concurrent
        used = self._take(account, per_minute, concurrent)
        self.open += 1
        try:
            yield Guest(name, account)
        finally:
            self.open -= 1
            used.open -= 1

    def key_of(self, headers: Mapping[str, str]) -> KeySettings | None:
        """The key that came with a request, None where none is needed; nothing is counted.

        Raises RefusedError as :meth:`admit`, save for limits.
        """
        if self.draining:
            raise RefusedError(503, "the server is shutting down; try another one", code="draining", retry_after_s=5.0)
        self.check_origin(headers)
        if not self._keys:
            return None
        digest = _digest(key_in(headers) or "")
        found = [settings for wanted, settings in self._keys if hmac.compare_digest(wanted, digest)]
        if not found:
            message = "the API key is missing or wrong: send it as Authorization: Bearer KEY"
            raise RefusedError(401, message, code="invalid_api_key")
        return found[0]

    def check_origin(self, headers: Mapping[str, str]) -> None:
        """Raises RefusedError (403) for calls from pages of other origins, and for names that are not the server's.

        Without keys a page could otherwise reach a server on the reader's own machine, if need be by a name of the page's
        owner that leads to the loopback (DNS rebinding).
        """
        host = headers.get("host", "")
        if self._config.open_to_pages:
            name = _hostname(host)
            if name and not is_loopback(name) and name not in self._config.hosts:
                raise RefusedError(
                    403,
                    f"this server is not known as {name}: call it by its loopback address, add the name to hosts, or set keys",
                    code="host_not_allowed",
                )
        origin = headers.get("origin")
        if origin is None or "*" in self._config.origins or origin in self._config.origins:
            return
        scheme, _, authority = origin.partition("://")  # RFC 6454, 6.1; what a client writes there may be no URL at all
        if scheme not in ("http", "https") or not authority or authority.lower() != host.lower():
            raise RefusedError(
                403, "pages of this origin may not call: add it to the server's origins", code="origin_not_allowed"
            )

    def _take(self, account: str, per_minute: int, concurrent: int) -> _Account:
        """Counts a request that begins; a minute's requests may come at once, and are given back evenly."""
        now_s = self._now_s()
        used = self._accounts.pop(account, None) or _Account(float(per_minute), now_s)
        self._accounts[account] = used
        self._forget()
        if concurrent and used.open >= concurrent:
            raise RefusedError(
                429, f"{used.open} requests are open, no more are allowed at once", code="too_many_open", retry_after_s=1.0
            )
        if per_minute:
            used.left = min(float(per_minute), used.left + (now_s - used.at_s) * per_minute / 60)
            used.at_s = now_s
            if used.left < 1:
                wait_s = (1 - used.left) * 60 / per_minute
                raise RefusedError(
                    429,
                    f"more than {per_minute} requests a minute; try again in {wait_s:.1f} s",
                    code="rate_limit_exceeded",
                    retry_after_s=wait_s,
                )
            used.left -= 1
        used.open += 1
        return used

    def _forget(self) -> None:
        while len(self._accounts) > _REMEMBERED:
            oldest = next((name for name, used in self._accounts.items() if not used.open), None)
            if oldest is None:
                return
            del self._accounts[oldest]


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


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()


def _hostname(host: str) -> str:
    """The name in a Host header, without the port."""
    if host.startswith("["):
        return host.partition("]")[0][1:]
    return host.rpartition(":")[0] or host if host.count(":") <= 1 else host
