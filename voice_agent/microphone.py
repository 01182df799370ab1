"""The user's microphone, through PortAudio: pieces of sound with the moment at which they were taken."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tts_engine.types import AudioFormat, Samples
from voice_agent.audio import map_channels
from voice_agent.errors import DeviceError
from voice_agent.sound_device import import_sounddevice

__all__ = ["Microphone", "Sound"]

_LATENCY_S = 0.03
_SAFE_LATENCY_S = 0.2  # for a device that loses sound at every rate
_SETTLE_S = 0.1
_MOST_SPEED = 1.7  # a device that gives sound faster than this, for as long as it is watched, makes it up
_LOST_S = 5.0  # a device that gives nothing for this long is gone; one that wakes up may take 2 s
_POLL_S = 0.25
_RATES = (48_000, 44_100, 16_000, 32_000, 24_000)
_INSTEAD = "or choose another with --input"
_ALLOW = (
    "allow this program to use the microphone (macOS: System Settings, Privacy & Security, Microphone; Windows: Settings, "
    "Privacy, Microphone; Linux: be in the group audio, or run it in your desktop's session)"
)


@dataclass(frozen=True, slots=True)
class Sound:
    """What the microphone took: [samples] float32 mono.

    ``at_s``: when the first of them sounded (``time.monotonic``), at the latest: how long the device took is not known.
    """

    samples: Samples
    at_s: float


class Microphone:
    """Iterate over it for what it hears; use it as ``async with Microphone() as microphone``.

    The device is opened at its own rate, or at another that it takes, in mono or with several channels that are averaged.
    At most ``queue_s`` of sound wait for who iterates; of more the oldest is dropped (``dropped_s``). The iteration raises
    DeviceError when the device goes away, and ends when it is closed.
    """

    def __init__(self, device: int | str | None = None, *, queue_s: float = 5.0) -> None:
        """``device``: a number or a part of a name as PortAudio lists them, None for the system's default."""
        self._device = device
        self._queue_s = queue_s
        self._waiting: deque[Sound] = deque()
        self._waiting_s = 0.0
        self.dropped_s = 0.0
        self.silent_s = 0.0
        """Seconds of zeros since it was opened, 0 once anything else came: what a muted device gives, or one not allowed."""
        self._silent = True
        self._came = asyncio.Event()
        self._stream: Any = None
        self._ended = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._heard_s = 0.0  # when the newest sound came
        self._frames = self._overflows = 0  # since the stream began
        self._format = AudioFormat()

    @property
    def format(self) -> AudioFormat:
        """Of the sounds: mono float32, at the device's rate once it is open."""
        return self._format

    async def start(self) -> None:
        """Opens the device; a second start does nothing. Raises DeviceError, which says what to do."""
        if self._stream is not None:
            return
        self._loop = asyncio.get_running_loop()
        # PortAudio needs some 100 ms to look for devices.
        opening = asyncio.ensure_future(asyncio.to_thread(self._open))
        try:
            await asyncio.shield(opening)
        except asyncio.CancelledError:
            # A thread cannot be cancelled: let it finish, then give back the device.
            await asyncio.wait([opening])
            if not opening.cancelled():
                opening.exception()  # seen; the cancellation is what counts
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """Gives the device back; a second close does nothing."""
        stream, self._stream = self._stream, None
        self._came.set()
        if stream is not None:
            await asyncio.shield(asyncio.to_thread(_end, stream))

    async def __aenter__(self) -> Microphone:
        await self.start()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    def __aiter__(self) -> AsyncIterator[Sound]:
        return self

    async def __anext__(self) -> Sound:
        while not self._waiting:
            if self._stream is None:
                raise StopAsyncIteration
            if self._ended or time.monotonic() - self._heard_s > _LOST_S:
                raise DeviceError(f"the microphone went away; plug it in again {_INSTEAD}")
            self._came.clear()
            try:
                async with asyncio.timeout(_POLL_S):
                    await self._came.wait()
            except TimeoutError:
                continue
        sound = self._waiting.popleft()
        self._waiting_s -= len(sound.samples) / self._format.sample_rate
        return sound

    def _take(self, sound: Sound) -> None:
        """In the loop: keeps a sound for who iterates."""
        seconds = len(sound.samples) / self._format.sample_rate
        self._waiting.append(sound)
        self._waiting_s += seconds
        if self._silent:
            self._silent = not sound.samples.any()
            self.silent_s = self.silent_s + seconds if self._silent else 0.0
        while self._waiting_s > self._queue_s and len(self._waiting) > 1:
            lost_s = len(self._waiting.popleft().samples) / self._format.sample_rate
            self._waiting_s -= lost_s
            self.dropped_s += lost_s
        self._came.set()

    # ---- in a thread ----------------------------------------------------------------------------------------------

    def _open(self) -> None:
        """Find a way to open the device."""
        sounddevice = import_sounddevice("listening", _INSTEAD)
        try:
            info = sounddevice.query_devices(self._device, "input")
        except (ValueError, sounddevice.PortAudioError) as error:
            raise DeviceError(_not_found(sounddevice, self._device)) from error
        most = max(1, int(info["max_input_channels"]))
        rates = dict.fromkeys((int(info["default_samplerate"]), *_RATES))
        reason, unsteady = "", []
        for rate, channels in itertools.product(rates, dict.fromkeys((1, min(2, most), most))):
            try:
                self._open_as(sounddevice, rate, channels, _LATENCY_S)
            except sounddevice.PortAudioError as error:
                reason = str(error).replace("\n", " ")
                continue
            if self._steady():
                return
            self._close_stream()
            unsteady.append((rate, channels))
        if not unsteady:
            raise DeviceError(_refused(str(info["name"]), reason, tuple(rates)))
        self._open_as(sounddevice, *unsteady[0], _SAFE_LATENCY_S)

    def _open_as(self, sounddevice: Any, rate: int, channels: int, latency_s: float) -> None:
        def take(data: NDArray[np.float32], frames: int, times: Any, status: Any) -> None:
            # The times that PortAudio gives jump by up to 0.4 s where a sound server is behind it.
            self._heard_s = time.monotonic()
            self._frames += frames
            self._overflows += bool(status.input_overflow)
            mono = map_channels(data, 1) if channels > 1 else data[:, 0]
            self._hand_over(Sound(mono.copy(), self._heard_s - frames / rate))

        stream = sounddevice.InputStream(
            samplerate=rate,
            channels=channels,
            dtype="float32",
            device=self._device,
            latency=latency_s,
            callback=take,
            finished_callback=self._finish,
        )
        self._frames = self._overflows = 0
        self._ended = False
        self._heard_s = time.monotonic()
        self._format = AudioFormat(rate)
        try:
            stream.start()
        except sounddevice.PortAudioError:
            stream.close()
            raise
        self._stream = stream

    def _hand_over(self, sound: Sound) -> None:
        assert self._loop is not None
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._take, sound)

    def _finish(self) -> None:
        self._ended = True

    def _steady(self) -> bool:
        """The device gives sound at the speed of sound, without losing any.

        A sound server that resamples can fall into a storm, in which it gives buffers at many times their speed
        (PulseAudio through ALSA, at rates other than its own); at another rate the same device is fine.
        """
        time.sleep(_SETTLE_S)
        frames, overflows, began_s = self._frames, self._overflows, time.monotonic()
        time.sleep(_SETTLE_S)
        speed = (self._frames - frames) / self._format.sample_rate / (time.monotonic() - began_s)
        return self._overflows == overflows and speed < _MOST_SPEED

    def _close_stream(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            _end(stream)


def _end(stream: Any) -> None:
    try:
        stream.abort()
    finally:
        stream.close()


def _not_found(sounddevice: Any, device: int | str | None) -> str:
    inputs = [info["name"] for info in sounddevice.query_devices() if info["max_input_channels"] > 0]
    if not inputs:
        return f"there is no microphone: connect one, or {_ALLOW}"
    which = "no default microphone" if device is None else f"no single microphone that fits {device!r}"
    return f"{which}; choose one of: {', '.join(inputs)} with --input"


def _refused(name: str, reason: str, rates: tuple[int, ...]) -> str:
    """What PortAudio's last reason means, and what to do about it."""
    lower = reason.lower()
    if "permission" in lower or "access" in lower or "not allowed" in lower:
        return f"the microphone {name!r} may not be used ({reason}): {_ALLOW}"
    if "-9985" in reason or "busy" in lower or "unavailable" in lower:
        return f"the microphone {name!r} is in use by another program ({reason}): end that, {_INSTEAD}"
    if "-9997" in reason or "sample rate" in lower:
        tried = ", ".join(map(str, rates))
        return (
            f"the microphone {name!r} takes none of the sample rates {tried} Hz ({reason}): set it to one of them, {_INSTEAD}"
        )
    return f"the microphone {name!r} cannot be opened ({reason}): {_INSTEAD.removeprefix('or ')}"
