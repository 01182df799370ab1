"""An HTTP answer of bytes that are still being made: its headers wait for the first of them, its maker stops with the
client.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from voice_agent.errors import SaylineError

__all__ = ["StreamedAnswer"]

_log = logging.getLogger(__name__)


class StreamedAnswer(Response):
    """Sends what ``pieces`` gives. An error before the first piece is raised, so that it is answered like any other.

    A later error breaks the connection off without the last chunk, which tells the client that the answer is not whole.
    When the client leaves, ``pieces`` is closed at once, whatever it waits for.
    """

    def __init__(
        self,
        pieces: AsyncGenerator[bytes, None],
        media_type: str,
        headers: Mapping[str, str] | None = None,
        status_code: int = 200,
    ) -> None:
        super().__init__(None, status_code, headers, media_type)
        del self.headers["content-length"]
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.ensure_future(self._send(send))
        leaving = asyncio.ensure_future(_left(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, leaving):
                task.cancel()
            await asyncio.wait({sending, leaving})
        if not sending.cancelled():
            sending.result()

    async def _send(self, send: Send) -> None:
        async with aclosing(self._pieces):
            start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            started = False
            try:
                async for piece in self._pieces:
                    if not started:
                        started = True
                        await send(start)
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            except SaylineError as error:
                if not started:
                    raise
                _log.warning("an answer was broken off: %s", type(error).__name__)  # its message may quote what was said
                return
            if not started:
                await send(start)
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _left(receive: Receive) -> None:
    """Returns when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
