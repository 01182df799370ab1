"""Runs the application on a socket: slow and stuck clients are dropped, and SIGTERM ends it without cutting anybody off."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
from types import FrameType
from typing import Any

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from voice_agent.server.config import ServerConfig
from voice_agent.server.refusals import RefusedError
from voice_agent.server.service import Service

__all__ = ["DrainingServer", "bounded_protocol", "bounded_socket", "make_server"]

_KEEP_ALIVE_S = 15.0
_AFTER_DRAIN_S = 5
_HEADER_BYTES = 32_768
_SOCKET_READ_BYTES = 16_384
"""All messages of a read are parsed at once: a flood of small ones must not keep the loop from the others."""


def make_server(app: FastAPI, config: ServerConfig) -> DrainingServer:
    """A server for the application; ``await server.serve()`` returns when it has ended."""
    return DrainingServer(
        app.state.service,
        uvicorn.Config(
            app,
            host=config.host,
            port=config.port,
            http=bounded_protocol(config),
            ws=bounded_socket(config),
            ws_max_size=config.limits.message_bytes,
            ws_per_message_deflate=False,  # audio hardly shrinks, and each socket would hold 300 KB for it
            timeout_keep_alive=int(_KEEP_ALIVE_S),
            timeout_graceful_shutdown=_AFTER_DRAIN_S,
            h11_max_incomplete_event_size=_HEADER_BYTES,
            log_config=None,
            access_log=False,
            server_header=False,
        ),
    )


class DrainingServer(uvicorn.Server):
    """On the first SIGTERM or SIGINT new requests are refused and speech in flight goes on; on the second all ends."""

    def __init__(self, service: Service, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._service = service
        self._draining: asyncio.Task[None] | None = None

    async def serve(self, sockets: Any = None) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            await super().serve(sockets)
        finally:
            if self._draining is not None:
                self._draining.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await self._draining

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._loop.call_soon_threadsafe(self._leave, sig)

    def _leave(self, sig: int) -> None:
        if self._draining is None:
            self._draining = asyncio.create_task(self._drain(), name="sayline-drain")
        else:
            self.should_exit = True
            self.force_exit = sig == signal.SIGINT

    async def _drain(self) -> None:
        try:
            await self._service.drain()
        finally:
            self.should_exit = True


class _BoundedSending(asyncio.Protocol):
    """A part of a protocol: drops a client that takes nothing for ``send_s``, also while the connection is closing."""

    send_s: float
    transport: asyncio.Transport
    _send_timer: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        super().pause_writing()
        self._send_timer = asyncio.get_running_loop().call_later(self.send_s, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_send_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_send_timer()
        super().connection_lost(exc)

    def _stop_send_timer(self) -> None:
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None


def bounded_socket(config: ServerConfig) -> type[WebSocketsSansIOProtocol]:
    """uvicorn's WebSocket protocol, with bounds on how long a client may take nothing, and how much of it is read at once."""

    class BoundedSocket(_BoundedSending, WebSocketsSansIOProtocol):
        send_s = config.limits.send_s

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if hasattr(transport, "max_size"):  # asyncio's own transports: the most that one read takes
                transport.max_size = _SOCKET_READ_BYTES

        async def send(self, message: Any) -> None:
            await super().send(message)
            if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
                self.handshake_complete = True  # it was: with a refusal, which uvicorn would log as the application's error

    return BoundedSocket


def bounded_protocol(config: ServerConfig) -> type[H11Protocol]:
    """uvicorn's HTTP protocol, with the bounds that it lacks."""
    limits = config.limits

    class BoundedProtocol(_BoundedSending, H11Protocol):
        """Drops clients that do not send their headers, or take nothing of what is sent, and more than may be connected."""

        send_s = limits.send_s
        _header_timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            if len(self.connections) > limits.connections:
                transport.abort()
                return
            self._await_headers()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self.conn.their_state is h11.IDLE and (self.cycle is None or self.cycle.response_complete):
                if self._header_timer is None:
                    self._await_headers()
            else:
                self._stop_header_timer()

        def send_400_response(self, msg: str) -> None:
            """As uvicorn's, in the form of all errors."""
            body = json.dumps(RefusedError(400, "this is no HTTP that can be read", code="bad_request").body()).encode()
            headers = [("content-type", "application/json"), ("content-length", str(len(body))), ("connection", "close")]
            response = h11.Response(status_code=400, headers=headers, reason=b"Bad Request")
            for event in (response, h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
            self.transport.close()

        def handle_websocket_upgrade(self, event: h11.Request) -> None:
            self._stop_header_timer()
            super().handle_websocket_upgrade(event)

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_header_timer()
            super().connection_lost(exc)

        def _await_headers(self) -> None:
            self._header_timer = self.loop.call_later(limits.header_s, self.transport.abort)

        def _stop_header_timer(self) -> None:
            if self._header_timer is not None:
                self._header_timer.cancel()
                self._header_timer = None

    return BoundedProtocol
