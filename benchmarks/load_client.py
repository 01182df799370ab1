"""A WebSocket client that costs next to nothing, so that it may share the cores with the server that it loads (RFC 6455).

Masks with zeros, joins no fragments, compresses nothing: for our own server only.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
from collections.abc import Callable

__all__ = ["RefusedByServer", "Socket", "open_socket"]

_TEXT, _BINARY, _CLOSE, _PING, _PONG = 1, 2, 8, 9, 10
_LENGTHS = {126: 2, 127: 8}
_MASK = b"\0\0\0\0"


class RefusedByServer(Exception):  # noqa: N818 — not an error of ours
    """The handshake was answered with another status."""

    def __init__(self, status: int, retry_after_s: float) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.retry_after_s = retry_after_s


class Socket(asyncio.Protocol):
    """One connection. ``on_text`` gets JSON messages, ``on_audio`` binary ones, ``on_close`` the end; all at once."""

    def __init__(self, path: str, host: str) -> None:
        self.on_text: Callable[[dict[str, object]], None] = lambda message: None
        self.on_audio: Callable[[bytes], None] = lambda data: None
        self.on_close: Callable[[], None] = lambda: None
        key = base64.b64encode(os.urandom(16)).decode()
        self._request = (
            f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n"
        ).encode()
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._data = bytearray()
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        self._data += data
        if not self.opened.done() and not self._read_head():
            return
        while (frame := self._take()) is not None:
            kind, payload = frame
            if kind == _BINARY:
                self.on_audio(payload)
            elif kind == _TEXT:
                self.on_text(json.loads(payload))
            elif kind == _PING:
                self._send(_PONG, payload)
            elif kind == _CLOSE:
                self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.opened.done():
            self.opened.set_exception(RefusedByServer(0, 0.1))
        self.on_close()

    def send(self, **message: object) -> None:
        """One JSON message."""
        self._send(_TEXT, json.dumps(message, ensure_ascii=False).encode())

    def close(self) -> None:
        """Says goodbye and closes."""
        self._send(_CLOSE, (1000).to_bytes(2, "big"))
        self._transport.close()

    def _send(self, kind: int, payload: bytes) -> None:
        count = len(payload)
        head = bytes((0x80 | kind, 0x80 | count)) if count < 126 else bytes((0x80 | kind, 0xFE)) + count.to_bytes(2, "big")
        self._transport.write(head + _MASK + payload)

    def _read_head(self) -> bool:
        head, found, rest = bytes(self._data).partition(b"\r\n\r\n")
        if not found:
            return False
        self._data = bytearray(rest)
        lines = head.decode("latin-1").split("\r\n")
        status = int(lines[0].split()[1])
        if status == 101:
            self.opened.set_result(None)
            return True
        wait = next((line.split(":")[1] for line in lines if line.lower().startswith("retry-after:")), "0.1")
        self.opened.set_exception(RefusedByServer(status, float(wait)))
        self._transport.close()
        return False

    def _take(self) -> tuple[int, bytes] | None:
        """The next whole frame."""
        data = self._data
        if len(data) < 2:
            return None
        count, start = data[1] & 0x7F, 2
        if count in _LENGTHS:
            start += _LENGTHS[count]
            if len(data) < start:
                return None
            count = int.from_bytes(data[2:start], "big")
        if len(data) < start + count:
            return None
        kind, payload = data[0] & 0x0F, bytes(data[start : start + count])
        del data[: start + count]
        return kind, payload


async def open_socket(address: str, path: str) -> Socket:
    """Connects to "HOST:PORT". Raises RefusedByServer."""
    host, port = address.rsplit(":", 1)
    _, socket = await asyncio.get_running_loop().create_connection(lambda: Socket(path, address), host, int(port))
    await socket.opened
    return socket
