"""The other end of a WebSocket: plays what comes in the time of the running loop, and says how far it is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import numpy as np

from voice_agent.audio import pcm_to_samples
from voice_agent.sinks.player import Player
from voice_agent.sinks.valve import Valve
from voice_agent.testing.clock import LoopClock

_REPORT_S = 0.02


class PlayingClient:
    """``report_to``: takes the messages that it sends; None reports nothing. ``fail``: raised by the next send.

    ``knows_hold``: whether it stops for a hold.
    """

    def __init__(self, report_to: Callable[[str], object] | None = None) -> None:
        self.report_to = report_to
        self.messages: list[dict] = []
        self.binary: list[int] = []  # lengths
        self.fail: Exception | None = None
        self.mute = False
        self.knows_hold = True
        self._open(24_000)
        self._received = 0
        self._held = False
        self._width = 2
        self._epoch = 0
        self._timer: asyncio.TimerHandle | None = None

    def heard(self) -> np.ndarray:
        self._player.heard()
        return np.concatenate([np.zeros(0, np.float32), *self._heard])

    async def send(self, message: bytes | str) -> None:
        if self.fail is not None:
            raise self.fail
        now_s = asyncio.get_running_loop().time()
        if isinstance(message, bytes):
            self.binary.append(len(message))
            samples = pcm_to_samples(message, self._width)
            self._received += len(samples)
            self._player.offer(samples, now_s)
            self._report_soon()
            return
        order = json.loads(message)
        self.messages.append(order)
        if order["type"] == "start":
            assert order["channels"] == 1
            self._open(order["sample_rate"])
            self._width = {"pcm_s16le": 2, "pcm_s24le": 3, "pcm_f32le": 4}[order["encoding"]]
            self._epoch = order["epoch"]
        elif order["type"] == "clear":
            self._received = self._player.cut()
            self._held = False
            self._epoch = order["epoch"]
            self._report()
        elif order["type"] == "gain":
            self._player.heard()
            self._valve.set_gain(order["db"])
        elif order["type"] == "hold" and self.knows_hold:
            self._player.hold()
            asyncio.get_running_loop().call_later(0.012, self._stand)
        elif order["type"] == "resume" and self.knows_hold:
            self._held = False
            self._player.resume()
            self._report_soon()

    def _open(self, rate: int) -> None:
        self._heard: list[np.ndarray] = []
        self._valve = Valve(rate)
        self._player = Player(LoopClock(), self._valve, lambda frames, _: self._heard.append(frames), lambda: False)

    def _stand(self) -> None:
        self._held = True
        self._report()

    def _report_soon(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_REPORT_S, self._report_again)

    def _report_again(self) -> None:
        self._timer = None
        self._report()
        if len(self.heard()) < self._received and not self._held:
            self._report_soon()

    def _report(self) -> None:
        if self.report_to is not None and not self.mute:
            report = {"type": "played", "samples": len(self.heard()), "epoch": self._epoch, "held": self._held}
            self.report_to(json.dumps(report))
