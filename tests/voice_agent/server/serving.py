"""A real server on a free port of this machine, in the test's own event loop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from websockets.asyncio.client import ClientConnection, connect

from voice_agent.server.serving import make_server


@asynccontextmanager
async def serving(app: FastAPI) -> AsyncGenerator[str, None]:
    """The server's "127.0.0.1:PORT" while the block runs; nothing of it is left afterwards."""
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listening:
        port = listening.getsockname()[1]
        server = make_server(app, app.state.service.config)
        before = asyncio.all_tasks()
        running = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            await until(lambda: server.started or running.done())
            assert server.started, running.result()
            yield f"127.0.0.1:{port}"
        finally:
            server.should_exit = True
            await running
        async with asyncio.timeout(10):
            while left := asyncio.all_tasks() - before - {running}:
                await asyncio.wait(left)


async def until(condition: Callable[[], object], limit_s: float = 30.0) -> None:
    """Waits in real time."""
    async with asyncio.timeout(limit_s):
        while not condition():  # noqa: ASYNC110 — anything may make it true
            await asyncio.sleep(0.01)


class LiveClient:
    """Speaks JSON over a WebSocket, keeps all that comes. ``async with LiveClient(url) as client``."""

    def __init__(self, url: str, **options: Any) -> None:
        self._connecting = connect(url, compression=None, proxy=None, **options)
        self.messages: list[dict[str, Any]] = []
        self.audio = b""
        self.socket: ClientConnection

    async def __aenter__(self) -> LiveClient:
        self.socket = await self._connecting
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.socket.close()

    async def send(self, kind: str, **values: Any) -> None:
        await self.socket.send(json.dumps({"type": kind, **values}))

    async def until(self, *kinds: str, limit_s: float = 30.0) -> dict[str, Any]:
        """Reads up to the next message of one of these kinds."""
        async with asyncio.timeout(limit_s):
            while True:
                message = await self.socket.recv()
                if isinstance(message, bytes):
                    self.audio += message
                    continue
                self.messages.append(json.loads(message))
                if self.messages[-1]["type"] in kinds:
                    return self.messages[-1]

    async def closed(self, limit_s: float = 30.0) -> int | None:
        """Reads to the end; the close code."""
        with contextlib.suppress(Exception):
            await self.until(limit_s=limit_s)
        assert self.socket.close_code is not None, "still open"
        return self.socket.close_code
