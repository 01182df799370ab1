"""Serves a live session over a WebSocket: admission, the tasks of a connection, its limits and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from fastapi import WebSocket, WebSocketDisconnect

from voice_agent.errors import SaylineError
from voice_agent.protocols import Synthesizer
from voice_agent.server.guard import answer, caller_of
from voice_agent.server.live_events import Event, Failed
from voice_agent.server.live_session import Session
from voice_agent.server.refusals import RefusedError, refusal
from voice_agent.server.service import Service
from voice_agent.server.speaking import Speaking
from voice_agent.server.streams import Stream

__all__ = ["Dialect", "serve"]

_log = logging.getLogger(__name__)
_MESSAGES_PER_S = 500.0
_MESSAGE_BURST = 20_000.0  # a whole text as tokens, at once
_YIELD_EVERY = 16  # messages read without letting others run
_BAD_MESSAGES = 100  # in a row
_GOODBYE_S = 1.0
_LOOK_S = (0.05, 1.0)
_NORMAL, _POLICY, _FAILED, _RESTART = 1000, 1008, 1011, 1012
"""Close codes: RFC 6455, section 7.4.1, and IANA's registry."""


class Dialect(Protocol):
    """How one protocol says things: messages to orders, events to messages."""

    kind: str
    """The name of the protocol in logs."""
    speaking: Speaking
    """What the client asked for when it connected."""

    def greet(self, stream: Stream) -> list[str | bytes]:
        """What the client is told first."""
        ...

    def read(self, session: Session, message: str | bytes) -> None:
        """Follows a message. Raises SaylineError for one that cannot be followed; then nothing was done."""
        ...

    def write(self, event: Event) -> list[str | bytes]:
        """The messages that tell of an event."""
        ...


@dataclass(frozen=True, slots=True)
class _Ending:
    """How a connection ends; ``code`` None: the client has gone. ``error``: what it is told before."""

    code: int | None = None
    reason: str = ""
    error: RefusedError | None = None


async def serve(websocket: WebSocket, service: Service, dialect: Callable[[], Dialect]) -> None:
    """Serves one connection to its end. What is refused is refused with an HTTP status, before the socket opens."""
    try:
        async with service.gate.admit(*caller_of(websocket.scope)) as guest:
            spoken = dialect()
            with (
                service.engine.seat(guest.account) as engine,
                service.streams.open(spoken.kind, guest.name, spoken.speaking.voice) as stream,
            ):
                offered = websocket.headers.get("sec-websocket-protocol", "").split(",")[0].strip()
                chosen = offered if offered.lower() == "token" else None  # with the key, see auth.key_in
                await websocket.accept(chosen, [(b"x-request-id", stream.uid.encode())])
                await _Connection(websocket, service, spoken, stream, engine).run()
    except SaylineError as error:
        refused = refusal(error)
        service.metrics.refused(refused)
        with contextlib.suppress(WebSocketDisconnect):
            await websocket.send_denial_response(answer(refused))


class _Connection:
    """One open socket: a task reads, one speaks, one sends, one looks at the limits; the first to end ends all."""

    def __init__(self, websocket: WebSocket, service: Service, dialect: Dialect, stream: Stream, engine: Synthesizer) -> None:
        self._socket = websocket
        self._limits = service.config.limits
        self._dialect = dialect
        self._stream = stream
        self._session = Session(engine, self._limits, stream, dialect.speaking)
        self._began_s = self._read_s = self._now_s()
        self._leaving = False
        self._refused = service.metrics.refused

    async def run(self) -> None:
        tasks = [
            asyncio.create_task(self._speak(), name="sayline-live-speaking"),
            asyncio.create_task(self._read(), name="sayline-live-reading"),
            asyncio.create_task(self._send(), name="sayline-live-sending"),
            asyncio.create_task(self._watch(), name="sayline-live-watching"),
        ]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            ending = _ending_of(next(task for task in tasks if task in done))
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        if ending.error is not None:
            self._stream.outcome = ending.error.code or "failed"
        elif ending.code is None and not self._session.quiet:
            self._stream.outcome = "left"
        await self._close(ending)

    async def _speak(self) -> _Ending:
        """Speaks; that it is over is told by what there is to send."""
        await self._session.run()
        never: asyncio.Future[_Ending] = asyncio.get_running_loop().create_future()
        return await never

    async def _read(self) -> _Ending:
        """Follows what the client sends, as long as it takes the answers."""
        bad, count, credit = 0, 0, _MESSAGE_BURST
        while True:
            message = await self._socket.receive()
            if message["type"] == "websocket.disconnect":
                return _Ending()
            now_s = self._now_s()
            credit = min(_MESSAGE_BURST, credit + (now_s - self._read_s) * _MESSAGES_PER_S) - 1
            self._read_s = now_s
            if credit < 0:
                message_rate = RefusedError(429, f"more than {_MESSAGES_PER_S:g} messages a second", code="too_many_messages")
                return _Ending(_POLICY, "too many messages", message_rate)
            data = message.get("text")
            try:
                self._follow(data if data is not None else message.get("bytes") or b"")
                bad = 0
            except SaylineError as error:
                refused = refusal(error)
                self._session.fail(refused)
                bad += refused.status == 400
                if bad >= _BAD_MESSAGES:
                    return _Ending(_POLICY, "too many messages that make no sense")
            await self._session.settled()
            count += 1
            if count % _YIELD_EVERY == 0:
                await asyncio.sleep(0)

    def _follow(self, message: str | bytes) -> None:
        most = self._limits.message_bytes
        if len(message) > most:
            raise RefusedError(
                413, f"a message of {len(message)} bytes: send {most} at most", code="message_too_big", param="message"
            )
        self._dialect.read(self._session, message)

    async def _send(self) -> _Ending:
        """Sends what there is to tell, one message at a time."""
        try:
            for message in self._dialect.greet(self._stream):
                await self._put(message)
            while (event := await self._session.next()) is not None:
                if isinstance(event, Failed):
                    self._refused(event.error)
                    if event.epoch is not None:  # speech that was not given, not a message that makes no sense
                        self._stream.outcome = event.error.code or "failed"
                for message in self._dialect.write(event):
                    await self._put(message)
        except WebSocketDisconnect:
            return _Ending()
        return _Ending(_RESTART, "the server shuts down") if self._leaving else _Ending(_NORMAL)

    async def _put(self, message: str | bytes) -> None:
        if isinstance(message, str):
            await self._socket.send_text(message)
        else:
            await self._socket.send_bytes(message)

    async def _watch(self) -> _Ending:
        """Looks now and then at what must not take too long."""
        limits = self._limits
        least, most = _LOOK_S
        pause_s = min(max(least, min(limits.idle_s, limits.session_s) / 4), most)
        while True:
            await asyncio.sleep(pause_s)
            now_s = self._now_s()
            if now_s - self._began_s > limits.session_s:
                over = RefusedError(408, f"a session lasts {limits.session_s:g} s at most: connect again", code="session_limit")
                return _Ending(_POLICY, "session limit", over)
            if now_s - max(self._read_s, self._session.active_s) > limits.idle_s:
                idle = RefusedError(408, f"nothing was said for {limits.idle_s:g} s: connect again", code="idle")
                return _Ending(_POLICY, "idle", idle)
            if self._stream.ending.is_set() and not self._leaving:
                self._leaving = True
                self._session.leave()

    async def _close(self, ending: _Ending) -> None:
        """Says goodbye to a client that is still there."""
        if ending.code is None:
            return
        with contextlib.suppress(WebSocketDisconnect, RuntimeError, TimeoutError):
            async with asyncio.timeout(_GOODBYE_S):
                if ending.error is not None:
                    for message in self._dialect.write(Failed(ending.error)):
                        await self._put(message)
                await self._socket.close(ending.code, ending.reason)

    def _now_s(self) -> float:
        return asyncio.get_running_loop().time()


def _ending_of(task: asyncio.Task[_Ending]) -> _Ending:
    error = task.exception()
    if error is None:
        return task.result()
    _log.error("a live connection failed", exc_info=error)
    return _Ending(_FAILED, "failed", RefusedError(500, "the connection failed inside the server", code="failed"))
