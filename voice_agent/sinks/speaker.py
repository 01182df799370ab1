"""The sink that is heard in the room: the system's sound device, through PortAudio."""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tts_engine.types import AudioFormat, Samples
from voice_agent.errors import DeviceError
from voice_agent.sinks.base import BaseSink
from voice_agent.sinks.feeder import Feeder
from voice_agent.sound_device import import_sounddevice

__all__ = ["SpeakerSink"]

_DEVICE_LATENCY_S = 0.03
_SAFE_LATENCY_S = 0.2  # for a device that misses buffers at every rate
_SETTLE_S = 0.1
_SLACK_S = 1.0  # a write, and what a resampler gives at the end, come on top of the buffer
_SLOW_BUFFER_S = 0.25  # a device that has not asked for its next buffer by now is asleep and plays nothing
_SILENT_DEVICE_S = 5.0  # a device that asks for nothing for this long is gone; one that wakes up may take 2 s
_WITHOUT = "or write to a file with --out file.wav"


class SpeakerSink(BaseSink):
    """Plays on a sound device. Nothing is imported or opened before ``start``.

    The device is opened with the format of the speech, or else with its own rate, or in stereo, whichever it takes
    first. ``playhead`` counts the latency that the device reports. ``clear`` takes effect with the device's next
    buffer and fades within 5 ms, ``hold`` likewise within 10 ms; what the device already holds is still heard, and
    counted.
    """

    _playing = True

    def __init__(self, device: int | str | None = None, *, format: AudioFormat | None = None) -> None:
        """``device``: a number or a part of a name as PortAudio lists them, None for the system's default."""
        super().__init__(format)
        self._device = device
        self._stream: Any = None
        self._feeder: Feeder | None = None
        self._reported_latency_s = 0.0

    async def _open(self, format: AudioFormat) -> AudioFormat:
        # PortAudio needs some 100 ms to look for devices.
        opening = asyncio.ensure_future(asyncio.to_thread(self._open_stream, format))
        try:
            return await asyncio.shield(opening)
        except asyncio.CancelledError:
            # A thread cannot be cancelled: let it finish, then give back the device.
            await asyncio.wait([opening])
            if not opening.cancelled():
                opening.exception()  # seen; the cancellation is what counts
            await self._release()
            raise

    async def _put(self, frames: Samples) -> None:
        assert self._feeder is not None
        self._feeder.speaking = True
        self._feeder.push(np.clip(frames, -1.0, 1.0))

    async def _end_stream(self) -> None:
        await super()._end_stream()
        if self._feeder is not None:
            self._feeder.speaking = False

    def _heard(self) -> int:
        if self._feeder is None:
            return 0
        if self._closed:
            return self._feeder.played
        return self._feeder.heard(time.monotonic())

    async def _cut(self) -> int:
        feeder = self._feeder
        assert feeder is not None
        feeder.speaking = False
        feeder.ask_to_drop()
        deadline_s = time.monotonic() + _SLOW_BUFFER_S
        # The audio thread must not wait for the loop, so it cannot wake it either.
        while not feeder.dropped and not feeder.finished and time.monotonic() < deadline_s:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        return feeder.played

    async def _pause(self) -> None:
        self._valve.hold()
        deadline_s = time.monotonic() + self._reported_latency_s + _SLOW_BUFFER_S
        while self._held and not self._still() and time.monotonic() < deadline_s:  # noqa: ASYNC110 — as in _cut
            await asyncio.sleep(0.001)

    def _go_on(self) -> None:
        self._valve.resume()

    def _still(self) -> bool:
        feeder = self._feeder
        assert feeder is not None
        return feeder.finished or (self._valve.held and feeder.heard(time.monotonic()) >= feeder.played)

    def _latency_s(self) -> float:
        return self._reported_latency_s

    def _underruns(self) -> int:
        return self._feeder.underruns if self._feeder is not None else 0

    def _check(self) -> None:
        if self._failure is None and not self._closed:
            self._failure = self._device_failure()
        super()._check()

    def _device_failure(self) -> DeviceError | None:
        if self._feeder is None:
            return None
        if not self._feeder.finished and time.monotonic() - self._feeder.filled_s < _SILENT_DEVICE_S:
            return None
        return DeviceError(f"the sound device went away while playing; plug it in again or choose another, {_WITHOUT}")

    async def _release(self) -> None:
        stream, self._stream = self._stream, None
        if stream is not None:
            await asyncio.shield(asyncio.to_thread(_end, stream, drained=self._failure is None))

    def _open_stream(self, wanted: AudioFormat) -> AudioFormat:
        """Find a way to open the device; runs in a thread of its own."""
        sounddevice = import_sounddevice("playing", _WITHOUT)
        try:
            info = sounddevice.query_devices(self._device, "output")
        except (ValueError, sounddevice.PortAudioError) as error:
            raise DeviceError(_not_found(sounddevice, self._device)) from error
        # What a sound server must convert may storm under load, steady though it was: the speech's own rate comes last.
        asked = () if self._wanted is None else (self._wanted.sample_rate,)
        rates = dict.fromkeys((*asked, int(info["default_samplerate"]), 48_000, 44_100, wanted.sample_rate))
        formats = [AudioFormat(*pair) for pair in itertools.product(rates, dict.fromkeys((wanted.channels, 2)))]
        reason, unsteady = "", []
        for format in formats:
            try:
                self._open_as(sounddevice, format, _DEVICE_LATENCY_S)
            except sounddevice.PortAudioError as error:
                reason = str(error).splitlines()[0]
                continue
            if self._steady():
                return format
            self._close_stream()
            unsteady.append(format)
        if not unsteady:
            raise DeviceError(f"the sound device {info['name']!r} cannot be opened: {reason}; choose another, {_WITHOUT}")
        self._open_as(sounddevice, unsteady[0], _SAFE_LATENCY_S)
        return unsteady[0]

    def _open_as(self, sounddevice: Any, format: AudioFormat, latency_s: float) -> None:
        feeder = Feeder(format, self.buffer_s + _SLACK_S, self._valve, self._tell)

        def fill(out: NDArray[np.float32], frames: int, times: Any, status: Any) -> None:
            ahead_s = times.outputBufferDacTime - times.currentTime
            # Some host APIs leave the times at zero.
            delay_s = ahead_s if times.currentTime and ahead_s > 0 else self._reported_latency_s
            feeder.fill(out, time.monotonic() + delay_s, late=status.output_underflow)

        stream = sounddevice.OutputStream(
            samplerate=format.sample_rate,
            channels=format.channels,
            dtype="float32",
            device=self._device,
            latency=latency_s,
            callback=fill,
            finished_callback=feeder.finish,
        )
        self._reported_latency_s = float(stream.latency)
        try:
            stream.start()
        except sounddevice.PortAudioError:
            stream.close()
            raise
        self._stream, self._feeder = stream, feeder

    def _steady(self) -> bool:
        """The device takes silence at the speed of sound.

        A sound server that resamples can fall into a storm of underruns, in which it swallows speech at many times
        its speed (PulseAudio through ALSA, at rates other than its own); at another rate the same device is fine.
        """
        assert self._feeder is not None
        time.sleep(_SETTLE_S)
        before = self._feeder.late
        time.sleep(_SETTLE_S)
        return self._feeder.late == before

    def _close_stream(self) -> None:
        stream, self._stream, self._feeder = self._stream, None, None
        if stream is not None:
            _end(stream, drained=False)


def _end(stream: Any, *, drained: bool) -> None:
    """Stop after what the device holds was heard, or at once; then give it back."""
    try:
        if drained:
            stream.stop()
        else:
            stream.abort()
    finally:
        stream.close()


def _not_found(sounddevice: Any, device: int | str | None) -> str:
    outputs = [info["name"] for info in sounddevice.query_devices() if info["max_output_channels"] > 0]
    if not outputs:
        return f"there is no sound device to play on; connect one, {_WITHOUT}"
    which = "no default sound device" if device is None else f"no single sound device that fits {device!r}"
    return f"{which}; choose one of: {', '.join(outputs)}; {_WITHOUT}"
