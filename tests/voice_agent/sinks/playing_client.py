"""The other end of a WebSocket: plays what comes in the time of the running loop, and says how far it is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable

import numpy as np

from voice_agent.audio import pcm_to_samples
from voice_agent.pacing import Playout

_REPORT_S = 0.02


class PlayingClient:
    """``report_to``: takes the messages that it sends; None reports nothing. ``fail``: raised by the next send."""

    def __init__(self, report_to: Callable[[str], object] | None = None) -> None:
        self.report_to = report_to
        self.messages: list[dict] = []
        self.binary: list[int] = []  # lengths
        self.fail: Exception | None = None
        self.mute = False
        self._samples = np.zeros(0, np.float32)
        self._playout = Playout(24_000)
        self._width = 2
        self._epoch = 0
        self._timer: asyncio.TimerHandle | None = None

    def heard(self) -> np.ndarray:
        return self._samples[: self._playout.heard(asyncio.get_running_loop().time())]

    async def send(self, message: bytes | str) -> None:
        if self.fail is not None:
            raise self.fail
        now_s = asyncio.get_running_loop().time()
        if isinstance(message, bytes):
            self.binary.append(len(message))
            samples = pcm_to_samples(message, self._width)
            self._samples = np.concatenate([self._samples, samples])
            self._playout.offer(max(now_s, self._playout.end_s()), len(samples))
            self._report_soon()
            return
        order = json.loads(message)
        self.messages.append(order)
        if order["type"] == "start":
            assert order["channels"] == 1
            self._playout = Playout(order["sample_rate"])
            self._width = {"pcm_s16le": 2, "pcm_s24le": 3, "pcm_f32le": 4}[order["encoding"]]
            self._epoch = order["epoch"]
        elif order["type"] == "clear":
            self._samples = self._samples[: self._playout.cut(now_s)]
            self._epoch = order["epoch"]
            self._report()

    def _report_soon(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_REPORT_S, self._report_again)

    def _report_again(self) -> None:
        self._timer = None
        self._report()
        if len(self.heard()) < len(self._samples):
            self._report_soon()

    def _report(self) -> None:
        if self.report_to is not None and not self.mute:
            self.report_to(json.dumps({"type": "played", "samples": len(self.heard()), "epoch": self._epoch}))
