"""How the speaker finds a way to open a device, on a stand-in for PortAudio; and what it says when there is none."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest

from tests.voice_agent import portaudio
from tts_engine.types import AudioFormat
from voice_agent.errors import DeviceError
from voice_agent.sinks import SpeakerSink
from voice_agent.testing.sink_conformance import chunk_of, tone


class Device(portaudio.Device):
    """A device that takes some formats, misses buffers in others, and plays at the speed of sound."""

    kind = "output"
    rate_hz = 48_000.0

    def __init__(self, *, refuses=(), misses=(), outputs=("Loudspeaker",)) -> None:
        super().__init__(outputs)
        self.refuses, self.misses = refuses, misses
        self.ended: list[str] = []
        self.played: list[np.ndarray] = []

    def OutputStream(self, *, device, **options):  # noqa: N802
        assert device is None
        refused = (options["samplerate"], options["channels"]) in self.refuses
        reason = "Error opening OutputStream: Invalid sample rate [PaErrorCode -9997]\nmore"
        return Stream(self, **options, refused=reason if refused else "")


class Stream(portaudio.Stream):
    device: Device

    def buffer(self) -> None:
        missing = (self.rate, self.channels) in self.device.misses and self.latency < 0.1
        frames = self.rate // 100
        out = np.full((frames, self.channels), 7.0, dtype=np.float32)
        now_s = time.monotonic()
        times = SimpleNamespace(currentTime=now_s, outputBufferDacTime=now_s + self.latency)
        self.callback(out, frames, times, SimpleNamespace(output_underflow=missing))
        self.device.played.append(out)
        time.sleep(0.01)

    def stop(self) -> None:
        self.device.ended.append("stop")
        super().abort()

    def abort(self) -> None:
        self.device.ended.append("abort")
        super().abort()


def install(monkeypatch, device: Device) -> Device:
    device.install(monkeypatch)
    return device


async def test_the_format_that_was_asked_for_comes_first(monkeypatch):
    device = install(monkeypatch, Device())
    async with SpeakerSink(format=AudioFormat(24_000)) as sink:
        await sink.write(chunk_of(tone(0.2)))
    assert device.opened == [(24_000, 1, 0.03)]
    assert device.ended == ["stop"]
    assert device.open == 0
    played = np.concatenate(device.played)[:, 0]
    start = int(np.flatnonzero(played)[0]) - 1
    assert np.array_equal(played[start : start + 4800], tone(0.2))


async def test_the_device_s_own_rate_comes_before_that_of_the_speech(monkeypatch):
    device = install(monkeypatch, Device())
    async with SpeakerSink() as sink:
        await sink.write(chunk_of(tone(0.2)))
    assert device.opened == [(48_000, 1, 0.03)]
    assert sink.playhead.heard_samples == 4800


async def test_a_refused_rate_and_mono_are_worked_around(monkeypatch):
    device = install(monkeypatch, Device(refuses=[(48_000, 1)]))
    async with SpeakerSink() as sink:
        await sink.write(chunk_of(tone(0.2)))
    assert sink.format == AudioFormat(48_000, 2)
    assert device.open == 0
    played = np.concatenate(device.played)
    assert np.array_equal(played[:, 0], played[:, 1])
    assert np.count_nonzero(np.abs(played[:, 0]) > 0.001) == pytest.approx(9600, abs=200)


async def test_a_rate_at_which_buffers_are_missed_is_left(monkeypatch):
    device = install(monkeypatch, Device(misses=[(48_000, 1), (48_000, 2)]))
    async with SpeakerSink() as sink:
        assert sink.format == AudioFormat(44_100, 1)
    assert device.open == 0


async def test_a_device_that_misses_buffers_everywhere_gets_more_latency(monkeypatch):
    every = [(rate, channels) for rate in (24_000, 48_000, 44_100) for channels in (1, 2)]
    device = install(monkeypatch, Device(misses=every))
    async with SpeakerSink() as sink:
        assert sink.format == AudioFormat(48_000, 1)
        assert sink.playhead.latency_s == 0.2
    assert device.open == 0


async def test_a_device_that_takes_nothing(monkeypatch):
    every = [(rate, channels) for rate in (24_000, 48_000, 44_100) for channels in (1, 2)]
    install(monkeypatch, Device(refuses=every))
    with pytest.raises(
        DeviceError, match=r"^the sound device 'Loudspeaker' cannot be opened: .*\[PaErrorCode -9997\]; .*--out"
    ):
        await SpeakerSink().start()


async def test_no_device_and_a_wrong_name(monkeypatch):
    install(monkeypatch, Device(outputs=()))
    with pytest.raises(DeviceError, match=r"^there is no sound device to play on; connect one, or .* --out file\.wav$"):
        await SpeakerSink().start()
    install(monkeypatch, Device(outputs=("Loudspeaker", "Headphones")))
    with pytest.raises(DeviceError, match=r"fits 'usb'; choose one of: Loudspeaker, Headphones; or"):
        await SpeakerSink("usb").start()


async def test_a_start_that_is_cancelled_gives_the_device_back(monkeypatch):
    device = install(monkeypatch, Device())
    starting = asyncio.ensure_future(SpeakerSink().start())
    await asyncio.sleep(0.05)
    starting.cancel()
    await asyncio.wait([starting])
    assert starting.cancelled()
    assert device.open == 0


async def test_a_device_that_ends_fails_the_next_call_and_closes(monkeypatch):
    device = install(monkeypatch, Device())
    sink = SpeakerSink()
    await sink.write(chunk_of(tone(1.0)))
    device.broken.set()
    with pytest.raises(DeviceError, match="went away"):
        await asyncio.wait_for(sink.drain(), 1)
    assert (await sink.clear()).pending_s == 0.0
    await sink.close()
    assert device.open == 0
    assert device.ended == ["abort"]


async def test_close_tells_of_a_loss_that_nobody_saw(monkeypatch):
    device = install(monkeypatch, Device())
    sink = SpeakerSink()
    await sink.write(chunk_of(tone(1.0)))
    device.broken.set()
    await asyncio.sleep(0.05)
    with pytest.raises(DeviceError, match="went away"):
        await sink.close()
    await sink.close()
    assert device.open == 0


@pytest.mark.parametrize(
    ("stub", "says"),
    [
        (
            "raise OSError('PortAudio library not found')",
            "apt install libportaudio2; macOS: brew install portaudio), or",
        ),
        ("raise ImportError('no')", "pip install sounddevice, or"),
    ],
)
def test_missing_libraries_are_named_in_one_line(tmp_path, stub, says):
    (tmp_path / "sounddevice.py").write_text(stub)
    body = f"""
import asyncio, sys
from voice_agent.errors import DeviceError
from voice_agent.sinks import open_sink
sys.path.insert(0, {str(tmp_path)!r})
sink = open_sink("speaker")
assert "sounddevice" not in sys.modules
try:
    asyncio.run(sink.start())
except DeviceError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", body], capture_output=True, text=True, check=True)
    assert done.stdout.count("\n") == 1
    assert says in done.stdout
    assert "--out file.wav" in done.stdout
    assert done.stderr == ""
