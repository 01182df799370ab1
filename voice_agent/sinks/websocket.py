"""A sink that sends PCM to a WebSocket, after a header that says what it is; the client may say what it has played.

    → {"type": "start", "encoding": "pcm_s16le", "sample_rate": 24000, "channels": 1, "epoch": 0}
    → binary messages of 20 ms or less
    → {"type": "clear", "epoch": 1}     drop what has not sounded; ends a hold
    → {"type": "hold"}                  stop playing, within a fade of 10 ms, and keep what has not sounded
    → {"type": "resume"}                go on with the sample behind the last one that sounded, within a fade of 10 ms
    → {"type": "gain", "db": -12.0}     play so much louder from now on, reached within 20 ms; 0 at the start
    → {"type": "end"}                   nothing more will come
    ← {"type": "played", "samples": 4800, "epoch": 0, "held": false}

``samples`` counts, per channel, what has sounded since the start; what a clear dropped does not count. A client that
reports does so some times a second, and at once after a clear, with the clear's epoch, and when it has stopped for a hold,
with ``held`` true. While held nothing is sent, so a client that knows no hold plays what it has and reports that.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from typing import Protocol

from tts_engine.types import AudioFormat
from voice_agent.audio import samples_to_pcm
from voice_agent.errors import InputError, SinkError
from voice_agent.pacing import Clock
from voice_agent.sinks.sending import SendingSink
from voice_agent.sinks.valve import FADE_S

__all__ = ["WebSocket", "WebSocketSink"]

_ENCODINGS = {2: "pcm_s16le", 3: "pcm_s24le", 4: "pcm_f32le"}
_ANSWER_S = 0.25  # how long a clear() waits for the client to say what it has played
_POLL_S = 0.005
_STALL_S = 10.0
_END_S = 1.0


class WebSocket(Protocol):
    """What a WebSocket has to offer; that of ``websockets``, ``aiohttp`` (wrapped) and others has it."""

    async def send(self, message: bytes | str, /) -> object:
        """Send one binary or text message."""
        ...


class WebSocketSink(SendingSink):
    """Sends speech as fast as it is made, up to two seconds ahead of what was heard.

    Without reports what was sent is taken to sound from then on, ``latency_s`` later. With ``reports`` only what the
    client says counts (hand its text messages to :meth:`receive`); a client that is silent for ten seconds while
    speech waits is taken for gone. The socket stays its owner's: ``close`` sends "end" and leaves it open.
    """

    def __init__(
        self,
        socket: WebSocket,
        *,
        format: AudioFormat | None = None,
        reports: bool = False,
        latency_s: float = 0.0,
        clock: Clock | None = None,
    ) -> None:
        """``format``: what is sent; None takes rate and channels of the speech, and 16 bits."""
        if format is not None and format.width not in _ENCODINGS:
            raise InputError(f"a sample has 2, 3 or 4 bytes, not {format.width}")
        super().__init__(format, latency_s=latency_s, clock=clock)
        self._socket = socket
        self._reports = reports
        self._orders: deque[str] = deque()  # text messages, which go before any frames
        self._cuts = 0
        self._played = 0
        self._played_cuts = 0  # the epoch of the newest report
        self._client_held = False
        self._moved_s = 0.0  # when the client last got anywhere, or had nothing to do

    def receive(self, message: str | bytes) -> bool:
        """Takes a message of the client; False: it is none for this sink."""
        try:
            report = json.loads(message)
            if not self._reports or report["type"] != "played":
                return False
            samples, epoch = int(report["samples"]), int(report.get("epoch", 0))
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            return False
        if self._played_cuts <= epoch == self._cuts:
            if epoch > self._played_cuts or samples > self._played:
                self._moved_s = self._clock.now_s()
            self._played = max(self._played, min(samples, self._frames_sent))
            self._played_cuts = epoch
            self._client_held = report.get("held") is True
            self._player.confirm(self._played)
        return True

    async def _open(self, format: AudioFormat) -> AudioFormat:
        header = {
            "type": "start",
            "encoding": _ENCODINGS[format.width],
            "sample_rate": format.sample_rate,
            "channels": format.channels,
            "epoch": 0,
        }
        self._order(header)
        if self._gain_db:
            self._order_gain()
        self._moved_s = self._clock.now_s()
        return await super()._open(format)

    async def _send_all(self) -> None:
        while True:
            if self._orders:
                await self._socket.send(self._orders.popleft())
            elif self._queue and not self._held:
                frames = self._queue.popleft()
                if self._played == self._frames_sent:
                    self._moved_s = self._clock.now_s()
                self._sent(frames)
                await self._socket.send(samples_to_pcm(frames, self.format.width))
            else:
                await self._wait_for_more()

    async def _release(self) -> None:
        await super()._release()
        if self._failure is None:
            with contextlib.suppress(Exception):  # it had everything that matters
                async with asyncio.timeout(_END_S):
                    await self._socket.send(json.dumps({"type": "end"}))

    def _watched(self) -> bool:
        return super()._watched() and not self._reports

    def _heard(self) -> int:
        return self._played if self._reports else super()._heard()

    async def _cut(self) -> int:
        self._queue.clear()
        self._cuts += 1
        self._order({"type": "clear", "epoch": self._cuts})
        if self._reports:
            until_s = self._clock.now_s() + _ANSWER_S
            while self._played_cuts < self._cuts and self._failure is None and self._clock.now_s() < until_s:
                await self._clock.sleep(_POLL_S)
            self._played_cuts = self._cuts
        self._frames_sent = self._player.cut(self._played if self._reports else None)
        return self._frames_sent

    async def _pause(self) -> None:
        self._client_held = False
        self._order({"type": "hold"})
        if not self._reports:
            self._player.hold()
            await self._clock.sleep(FADE_S)
            return
        until_s = self._clock.now_s() + _ANSWER_S
        while self._held and not self._client_held and self._failure is None and self._clock.now_s() < until_s:
            await self._clock.sleep(_POLL_S)

    def _go_on(self) -> None:
        self._order({"type": "resume"})
        self._moved_s = self._clock.now_s()
        if not self._reports:
            self._player.resume()

    def set_gain(self, db: float) -> None:
        super().set_gain(db)
        if self._opened:
            self._order_gain()

    def _check(self) -> None:
        waiting = self._reports and not self._held and self._failure is None and self._frames_sent > self._played
        if waiting and self._clock.now_s() - self._moved_s > _STALL_S:
            self._failure = SinkError(f"the listener is gone: the client has reported no progress for {_STALL_S:g} s")
        super()._check()

    def _order_gain(self) -> None:
        self._order({"type": "gain", "db": self._gain_db})

    def _order(self, message: dict[str, object]) -> None:
        self._orders.append(json.dumps(message))
        self._more.set()
