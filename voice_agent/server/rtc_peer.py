"""One WebRTC peer: its connection, its microphone, its data channel, and whether it is still there. Needs aiortc.

A peer that has once sent sound or a message and then sends neither for ten seconds has vanished; so has one that never
connects. Everything that waits for the peer or comes from it is bounded.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import time
from collections import deque
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import numpy as np
from aiortc import (
    MediaStreamTrack,
    RTCConfiguration,
    RTCDataChannel,
    RTCIceServer,
    RTCPeerConnection,
    RTCRtpSender,
    RTCSessionDescription,
)
from aiortc.mediastreams import MediaStreamError
from aiortc.rtcconfiguration import RTCBundlePolicy

from tts_engine.types import Samples
from voice_agent.server.config import IceServer
from voice_agent.server.refusals import RefusedError
from voice_agent.sinks.webrtc import RATE, WebRtcSink

__all__ = ["Peer"]

_log = logging.getLogger(__name__)
_ANSWER_S = 10.0
_CONNECT_S = 20.0
_VANISHED_LOOKS = 20
"""So many looks without a sign of life, not a time: while the server itself is held up, nobody is taken for gone."""
_CLOSE_S = 5.0
_MOST_UNSENT_BYTES = 1 << 20
_MOST_EARLY_MESSAGES = 1000
_MOST_COMMANDS = 64
_MOST_SOUND_S = 2.0
"""How much of the microphone may wait; older sound is dropped."""
_MOST_HOLE_S = 0.5
"""Lost sound up to this length becomes silence, so that what follows keeps its time."""
_MOST_CANDIDATES = 64
_NO_ADDRESS = re.compile(r"^a=(?:candidate:\S+ \S+ \S+ \S+ \S+\.local .*|end-of-candidates)\r?\n?", re.MULTILINE)
"""Candidates under a name that only the peer's own network can resolve, and that there are no others: the address of a
peer shows when it connects."""

_CLOSING: set[asyncio.Task[None]] = set()


class Peer:
    """``sink`` plays to it, ``sound()`` is its microphone, ``commands()`` what it sends, ``tell`` answers.

    ``over`` is set when the peer is gone or :meth:`end` was called; ``close`` releases everything.
    """

    def __init__(self, sink: WebRtcSink, ice_servers: Sequence[IceServer], *, message_bytes: int) -> None:
        self.sink = sink
        self.over = asyncio.Event()
        self.why = ""
        self._message_bytes = message_bytes
        servers = [
            RTCIceServer(list(server.urls), server.username or None, server.credential or None) for server in ice_servers
        ]
        self._connection = RTCPeerConnection(RTCConfiguration(servers, bundlePolicy=RTCBundlePolicy.MAX_BUNDLE))
        self._connection.on("connectionstatechange", self._state_changed)
        self._connection.on("track", self._take_track)
        self._connection.on("datachannel", self._take_channel)
        self._channel: RTCDataChannel | None = None
        self._early: deque[str] = deque(maxlen=_MOST_EARLY_MESSAGES)  # before the channel was there
        self._commands: deque[dict[str, Any]] = deque()
        self._sound: deque[tuple[Samples, float]] = deque()
        self._sound_frames = 0
        self._changed = asyncio.Event()  # something came in
        self._listening: asyncio.Task[None] | None = None
        self._began_s = time.monotonic()
        self._silent_looks: int | None = None  # since it last sent sound or a message

    async def answer(self, offer: str) -> str:
        """The answer to an SDP offer. Raises RefusedError (400) for one that cannot be used."""
        offer = _checked(offer)
        transceiver = self._connection.addTransceiver(self.sink.track, direction="sendrecv")
        codecs = RTCRtpSender.getCapabilities("audio").codecs
        transceiver.setCodecPreferences([codec for codec in codecs if codec.mimeType.lower() == "audio/opus"])
        try:
            async with asyncio.timeout(_ANSWER_S):
                await self._connection.setRemoteDescription(RTCSessionDescription(offer, "offer"))
                await self._connection.setLocalDescription(await self._connection.createAnswer())
        except TimeoutError:
            raise RefusedError(503, "the ICE servers did not answer in time", code="ice_timeout", retry_after_s=2.0) from None
        except Exception as error:  # a parser of text from outside: whatever it trips over
            _log.info("an offer was refused: %s: %s", type(error).__name__, error)
            raise RefusedError(
                400,
                "the SDP offer cannot be used: it needs ICE, DTLS and one audio section with Opus",
                code="bad_sdp",
                param="sdp",
            ) from error
        return str(self._connection.localDescription.sdp)

    def end(self, why: str) -> None:
        """The conversation is over."""
        if not self.over.is_set():
            self.why = why
            self.over.set()
            self._changed.set()

    def look(self) -> None:
        """Notices a peer that has vanished; to be called twice a second."""
        if self._silent_looks is None:
            unconnected = self._connection.connectionState in ("new", "connecting")
            if unconnected and time.monotonic() - self._began_s > _CONNECT_S:
                self.end("never connected")
            return
        self._silent_looks += 1
        if self._silent_looks > _VANISHED_LOOKS:
            self.end("vanished")

    def tell(self, event: str) -> None:
        """Sends a message, without waiting; before the channel is open it is kept. A peer that takes none is gone."""
        channel = self._channel
        if channel is None or channel.readyState == "connecting":
            self._early.append(event)
        elif channel.readyState == "open" and self._connection.connectionState == "connected":
            if channel.bufferedAmount > _MOST_UNSENT_BYTES:
                self.end("took no messages")
                return
            channel.send(event)

    async def commands(self) -> AsyncGenerator[dict[str, Any], None]:
        """The messages that the peer sends, JSON objects, until it is gone."""
        while await self._until(self._commands):
            yield self._commands.popleft()

    async def sound(self) -> AsyncGenerator[tuple[Samples, float], None]:
        """What the microphone hears, [samples] float32 at 48 kHz, each with the ``time.monotonic`` of its arrival."""
        while await self._until(self._sound):
            samples, at_s = self._sound.popleft()
            self._sound_frames -= len(samples)
            yield samples, at_s

    async def close(self) -> None:
        """Hangs up. A second close does nothing."""
        self.end("closed")
        self._early.clear()
        closing = asyncio.create_task(self._connection.close(), name="sayline-peer-closing")
        _CLOSING.add(closing)  # it has to end by itself: cut off, it would leave its sockets open
        closing.add_done_callback(_CLOSING.discard)
        await asyncio.wait({closing}, timeout=_CLOSE_S)
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait({self._listening})

    # ---- from the connection --------------------------------------------------------------------------------------

    async def _until(self, line: deque[Any]) -> bool:
        """Waits for something in a line; False: the peer is gone."""
        while not line and not self.over.is_set():
            self._changed.clear()
            await self._changed.wait()
        return not self.over.is_set()

    def _state_changed(self) -> None:
        if self._connection.connectionState in ("failed", "closed"):
            self.end("the connection is lost")

    def _take_channel(self, channel: RTCDataChannel) -> None:
        if self._channel is not None:
            channel.close()
            return
        self._channel = channel
        channel.on("message", self._take_message)
        channel.on("close", lambda: self.end("the data channel was closed"))
        while self._early:
            channel.send(self._early.popleft())

    def _take_message(self, message: str | bytes) -> None:
        self._silent_looks = 0
        if len(message) > self._message_bytes or len(self._commands) >= _MOST_COMMANDS:
            self.tell(json.dumps({"event": "Failed", "message": "the message is too long, or too many wait; it is dropped"}))
            return
        try:
            command = json.loads(message)
        except (ValueError, RecursionError):
            command = None
        if not isinstance(command, dict):
            self.tell(json.dumps({"event": "Failed", "message": "a message has to be a JSON object"}))
            return
        self._commands.append(command)
        self._changed.set()

    def _take_track(self, track: MediaStreamTrack) -> None:
        if self._listening is None and track.kind == "audio":
            self._listening = asyncio.create_task(self._listen(track), name="sayline-microphone")
            self._listening.add_done_callback(self._listened)

    def _listened(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a microphone cannot be listened to", exc_info=error)
            self.end("the microphone failed")

    async def _listen(self, track: MediaStreamTrack) -> None:
        expected: int | None = None  # place of the next frame, in samples
        with contextlib.suppress(MediaStreamError):
            while True:
                frame: Any = await track.recv()
                self._silent_looks, at_s = 0, time.monotonic()
                sound = _mono(frame)
                if expected is not None and 0 < frame.pts - expected <= _MOST_HOLE_S * RATE:
                    sound = np.concatenate([np.zeros(frame.pts - expected, np.float32), sound])
                expected = frame.pts + frame.samples
                self._sound.append((sound, at_s))
                self._sound_frames += len(sound)
                while self._sound_frames > _MOST_SOUND_S * RATE:
                    self._sound_frames -= len(self._sound.popleft()[0])
                self._changed.set()


def _mono(frame: Any) -> Samples:
    """A decoded frame (16 bit, interleaved) as float32, its first channel: browsers send one."""
    channels = len(frame.layout.channels)
    samples: Samples = frame.to_ndarray().reshape(-1)[::channels].astype(np.float32) / 32768
    return samples


def _checked(offer: str) -> str:
    """The offer as it is handed on. Raises RefusedError for what nobody needs and would cost us something."""
    kinds = re.findall(r"^m=(\S+)", offer, re.MULTILINE)
    if kinds.count("audio") != 1 or kinds.count("application") > 1 or len(kinds) > 1 + kinds.count("application"):
        raise RefusedError(
            400, "the SDP offer has to have one audio section, and may have one for data", code="bad_sdp", param="sdp"
        )
    if offer.count("a=candidate:") > _MOST_CANDIDATES:
        raise RefusedError(400, f"the SDP offer has more than {_MOST_CANDIDATES} candidates", code="bad_sdp", param="sdp")
    return _NO_ADDRESS.sub("", offer)
