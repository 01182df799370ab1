"""A stand-in for sounddevice: devices of one kind whose streams ask for buffers, or give them, in a thread of their own."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, Literal


class PortAudioError(Exception):
    pass


class Device:
    """What ``import sounddevice`` gives. ``opened`` are the rate, channels and latency of each attempt, in order."""

    kind: Literal["input", "output"]
    rate_hz: float
    PortAudioError = PortAudioError

    def __init__(self, names: tuple[str, ...], channels: int = 2) -> None:
        self.names, self.channels = names, channels
        self.opened: list[tuple[int, int, float]] = []
        self.open = 0
        self.broken = threading.Event()

    def query_devices(self, device: object = None, kind: str | None = None) -> Any:
        most = {f"max_{self.kind}_channels": self.channels}
        devices = [{"name": name, "default_samplerate": self.rate_hz, **most} for name in self.names]
        if kind is None:
            return devices
        fitting = [info for info in devices if device is None or str(device).lower() in info["name"].lower()]
        if not fitting:
            missing = f"No {self.kind} device matching"
            raise (PortAudioError("Error querying device -1") if device is None else ValueError(missing))
        return fitting[0]

    def install(self, monkeypatch: Any) -> None:
        monkeypatch.setitem(sys.modules, "sounddevice", self)


class Stream:
    """``buffer`` is called again and again until the stream ends or the device breaks."""

    def __init__(
        self,
        device: Device,
        *,
        samplerate: int,
        channels: int,
        latency: float,
        dtype: str,
        callback: Callable[..., None],
        finished_callback: Callable[[], None],
        refused: str = "",
    ) -> None:
        assert dtype == "float32"
        self.device, self.rate, self.channels, self.latency = device, samplerate, channels, latency
        self.callback, self.finished_callback = callback, finished_callback
        device.opened.append((samplerate, channels, latency))
        if refused:
            raise PortAudioError(refused)
        device.open += 1
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def buffer(self) -> None:
        raise NotImplementedError

    def start(self) -> None:
        self._thread.start()

    def abort(self) -> None:
        self._ending.set()
        self._thread.join()

    def stop(self) -> None:
        self.abort()

    def close(self) -> None:
        self.device.open -= 1

    def _run(self) -> None:
        while not self._ending.is_set() and not self.device.broken.is_set():
            self.buffer()
        self.finished_callback()
