"""``/rtc``: conversations over WebRTC. An SDP offer begins one; a message, a request or the peer's silence ends it."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fastapi import APIRouter, Request

from voice_agent.errors import MissingExtraError, SaylineError
from voice_agent.server.auth import Guest
from voice_agent.server.guard import caller_of
from voice_agent.server.refusals import ERRORS, RefusedError
from voice_agent.server.rtc_messages import Answer, Offer
from voice_agent.server.service import Service

if TYPE_CHECKING:
    from voice_agent.server.rtc_peer import Peer

__all__ = ["routes"]

_log = logging.getLogger(__name__)


def routes(service: Service) -> APIRouter:
    """``POST /rtc/offer``, ``DELETE /rtc/{id}``."""
    router = APIRouter(tags=["rtc"], responses=ERRORS)
    peers = Peers(service)
    service.on_start.append(_load)
    service.on_close.append(peers.close)

    @router.post("/rtc/offer")
    async def offer(request: Request, body: Offer) -> Answer:
        """Begins a conversation: microphone in, speech out, captions and commands on a data channel."""
        return await peers.connect(*caller_of(request.scope), body)

    @router.delete("/rtc/{session}", status_code=204)
    async def hang_up(request: Request, session: str) -> None:
        """Ends a conversation."""
        async with service.gate.admit(*caller_of(request.scope)) as guest:
            peers.hang_up(session, guest.name)

    return router


def _load() -> None:
    """Loads what the first offer would wait for, if it is installed."""
    with contextlib.suppress(ImportError):
        importlib.import_module("voice_agent.server.rtc_talk")


class Peers:
    """The peers that are connected; each is served by a task of its own, which is admitted as long as it lasts."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._live: dict[str, Peer] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def connect(self, headers: Mapping[str, str], client: str | None, offer: Offer) -> Answer:
        """Raises RefusedError where the offer cannot be taken."""
        answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._serve(headers, client, offer, answered), name="sayline-peer")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            return await answered
        except asyncio.CancelledError:
            task.cancel()
            raise

    def hang_up(self, session: str, guest: str) -> None:
        """Ends a session, if it has not ended yet. Raises RefusedError (404) for another guest's."""
        stream, peer = self._service.streams.live.get(session), self._live.get(session)
        if peer is None or stream is None:
            return  # the connection's own end may be seen before the request
        if stream.guest != guest:
            raise RefusedError(404, "there is no such session", code="not_found")
        peer.end("hung up")

    async def close(self) -> None:
        """Ends all sessions."""
        for peer in self._live.values():
            peer.end("the server shuts down")
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _serve(
        self, headers: Mapping[str, str], client: str | None, offer: Offer, answered: asyncio.Future[Answer]
    ) -> None:
        try:
            async with self._service.gate.admit(headers, client) as guest:
                await self._admitted(guest, offer, answered)
        except Exception as error:
            if not answered.done():
                answered.set_exception(error)
            elif not isinstance(error, SaylineError):
                _log.exception("a WebRTC session failed")

    async def _admitted(self, guest: Guest, offer: Offer, answered: asyncio.Future[Answer]) -> None:
        try:
            from voice_agent.server.rtc_peer import Peer
            from voice_agent.server.rtc_talk import MeteredSink, Talk
        except ImportError as error:
            raise MissingExtraError('WebRTC needs aiortc: pip install "sayline[server]"') from error
        service, settings = self._service, offer.settings
        most = service.config.rtc.sessions
        if len(self._live) >= most:
            raise RefusedError(503, f"{most} peers are connected; try again later", code="overloaded", retry_after_s=5.0)
        with (
            service.engine.seat(guest.account) as engine,
            service.streams.open("rtc", guest.name, settings.voice) as stream,
        ):
            sink = MeteredSink(stream)
            peer = Peer(sink, service.config.rtc.ice_servers, message_bytes=service.config.limits.message_bytes)
            self._live[stream.uid] = peer
            try:
                async with Talk(service, stream, peer, sink, settings, engine) as talk:
                    answer = Answer(sdp=await peer.answer(offer.sdp), id=stream.uid)
                    if answered.cancelled():
                        return
                    answered.set_result(answer)
                    await talk.run()
                    stream.outcome = peer.why or "ok"
            finally:
                del self._live[stream.uid]
                await peer.close()
