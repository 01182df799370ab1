"""The microphone: on a stand-in for PortAudio every way in which a device refuses, on a real sound server what it hears."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from tests.voice_agent import portaudio
from tests.voice_agent.sinks import pulse
from voice_agent.errors import DeviceError
from voice_agent.microphone import Microphone


class Device(portaudio.Device):
    """A device that takes some formats, loses sound or hurries in others, and gives a rising count at the speed of sound."""

    kind = "input"
    rate_hz = 44_100.0

    def __init__(self, *, refuses=lambda rate, channels: "", loses=(), hurries=(), inputs=("Desk microphone",), channels=2):
        super().__init__(inputs, channels)
        self.refuses, self.loses, self.hurries = refuses, loses, hurries
        self.silent = False
        self.asleep = threading.Event()

    def InputStream(self, *, device, **options):  # noqa: N802
        return Stream(self, **options, refused=self.refuses(options["samplerate"], options["channels"]))


class Stream(portaudio.Stream):
    device: Device
    count = 0

    def buffer(self) -> None:
        way, frames = (self.rate, self.channels), self.rate // 100
        for _ in range(50 if way in self.device.hurries else 1):  # so many that a machine held up sees them hurry too
            if self.device.asleep.is_set():
                break
            counted = np.arange(self.count, self.count + frames, dtype=np.float32)
            data = np.repeat(counted[:, None], self.channels, axis=1)
            status = SimpleNamespace(input_overflow=way in self.device.loses and self.latency < 0.1)
            self.callback(0 * data if self.device.silent else data, frames, None, status)
            self.count += frames
        time.sleep(0.01)


def install(monkeypatch, device: Device) -> Device:
    device.install(monkeypatch)
    return device


async def refusal(device: int | str | None = None) -> str:
    with pytest.raises(DeviceError) as caught:
        await Microphone(device).start()
    return str(caught.value)


async def test_every_sample_comes_with_its_moment(monkeypatch):
    device = install(monkeypatch, Device())
    sounds = []
    async with Microphone() as microphone:
        assert microphone.format.sample_rate == 44_100
        assert microphone.format.channels == 1
        async for sound in microphone:
            assert time.monotonic() - sound.at_s >= 0.01  # a buffer
            sounds.append(sound)
            if len(sounds) == 50:
                break
    samples = np.concatenate([sound.samples for sound in sounds])
    assert np.array_equal(samples, np.arange(len(samples)))
    moments = np.array([sound.at_s for sound in sounds])
    assert (np.diff(moments) > 0).all()
    assert device.opened == [(44_100, 1, 0.03)]
    assert device.open == 0


async def test_an_iteration_ends_when_it_is_closed(monkeypatch):
    device = install(monkeypatch, Device())
    microphone = Microphone()
    await microphone.start()
    await microphone.start()
    device.asleep.set()
    listening = asyncio.create_task(_all_of(microphone))
    await asyncio.sleep(0.05)
    await microphone.aclose()
    await microphone.aclose()
    await asyncio.wait_for(listening, 30)
    assert len(device.opened) == 1


async def until(condition) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 — the device's thread makes it true
            await asyncio.sleep(0.01)


async def _all_of(microphone: Microphone) -> int:
    return len([sound async for sound in microphone])


async def test_a_refused_rate_and_mono_are_worked_around(monkeypatch):
    refused = "Error opening InputStream: Invalid sample rate [PaErrorCode -9997]"
    install(monkeypatch, Device(refuses=lambda rate, channels: refused if rate != 16_000 or channels == 1 else ""))
    async with Microphone() as microphone:
        assert microphone.format.sample_rate == 16_000
        sound = await anext(microphone)
        assert sound.samples.ndim == 1
        assert np.array_equal(sound.samples, sound.samples[0] + np.arange(len(sound.samples)))


@pytest.mark.parametrize("fault", ["loses", "hurries"])
async def test_a_rate_at_which_a_device_storms_is_left(monkeypatch, fault):
    device = install(monkeypatch, Device(**{fault: [(44_100, 1), (44_100, 2)]}))
    async with Microphone() as microphone:
        assert microphone.format.sample_rate == 48_000
    assert device.open == 0


async def test_a_device_that_storms_everywhere_gets_more_latency(monkeypatch):
    every = [(rate, channels) for rate in (44_100, 48_000, 16_000, 32_000, 24_000) for channels in (1, 2)]
    device = install(monkeypatch, Device(loses=every))
    async with Microphone():
        assert device.opened[-1] == (44_100, 1, 0.2)
    assert device.open == 0


async def test_what_nobody_takes_is_dropped_from_the_oldest(monkeypatch):
    install(monkeypatch, Device())
    async with Microphone(queue_s=0.2) as microphone:
        await until(lambda: microphone.dropped_s > 0.1)
        first = await anext(microphone)
        assert first.samples[0] > 0
        assert sum(len(sound.samples) for sound in microphone._waiting) <= 0.2 * 44_100


async def test_nothing_but_zeros_is_told(monkeypatch):
    device = install(monkeypatch, Device())
    device.silent = True
    async with Microphone() as microphone:
        await until(lambda: microphone.silent_s > 0.1)
        device.silent = False
        await until(lambda: microphone.silent_s == 0)


async def test_a_lost_device_is_told_after_what_it_gave(monkeypatch):
    device = install(monkeypatch, Device())
    async with Microphone() as microphone:
        await anext(microphone)
        device.broken.set()
        with pytest.raises(DeviceError, match=r"^the microphone went away; plug it in again or choose another with --input$"):
            await asyncio.wait_for(_all_of(microphone), 3)
    assert device.open == 0


async def test_a_device_that_falls_asleep_is_lost(monkeypatch):
    device = install(monkeypatch, Device())
    monkeypatch.setattr("voice_agent.microphone._LOST_S", 0.3)
    async with Microphone() as microphone:
        device.asleep.set()
        with pytest.raises(DeviceError, match="went away"):
            await asyncio.wait_for(_all_of(microphone), 3)


async def test_no_device_and_a_wrong_name(monkeypatch):
    install(monkeypatch, Device(inputs=()))
    assert (await refusal()).startswith("there is no microphone: connect one, or allow this program")
    install(monkeypatch, Device(inputs=("Desk microphone", "Headset")))
    assert await refusal("usb") == (
        "no single microphone that fits 'usb'; choose one of: Desk microphone, Headset with --input"
    )


@pytest.mark.parametrize(
    ("reason", "says"),
    [
        ("Error opening InputStream: Device unavailable [PaErrorCode -9985]", "is in use by another program"),
        ("Unanticipated host error [PaErrorCode -9999]: 'Permission denied'", "may not be used"),
        ("Error opening InputStream: Invalid sample rate [PaErrorCode -9997]", "takes none of the sample rates 44100"),
        ("Error opening InputStream: Internal PortAudio error [PaErrorCode -9986]", "cannot be opened (Error opening"),
    ],
)
async def test_a_refusal_says_what_to_do(monkeypatch, reason, says):
    device = install(monkeypatch, Device(refuses=lambda rate, channels: reason))
    message = await refusal()
    assert message.startswith("the microphone 'Desk microphone' ")
    assert says in message
    assert reason in message
    assert "choose another with --input" in message or "allow this program" in message
    assert device.open == 0


async def test_a_start_that_is_cancelled_gives_the_device_back(monkeypatch):
    device = install(monkeypatch, Device())
    starting = asyncio.ensure_future(Microphone().start())
    await asyncio.sleep(0.05)
    starting.cancel()
    await asyncio.wait([starting])
    assert starting.cancelled()
    assert device.open == 0


def test_a_missing_library_is_named(tmp_path):
    (tmp_path / "sounddevice.py").write_text("raise OSError('PortAudio library not found')")
    body = f"""
import asyncio, sys
from voice_agent.errors import DeviceError
from voice_agent.microphone import Microphone
sys.path.insert(0, {str(tmp_path)!r})
assert "sounddevice" not in sys.modules
try:
    asyncio.run(Microphone().start())
except DeviceError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", body], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("listening needs the PortAudio library: install it (Debian, Ubuntu: apt install")
    assert done.stderr == ""


# ---- a real sound server ------------------------------------------------------------------------------------------


@pytest.mark.peer
@pytest.mark.skipif(bool(pulse.missing()), reason=pulse.missing() or "there is a PulseAudio")
@pytest.mark.parametrize("rate", [44_100, 48_000])
async def test_a_tone_is_heard_at_its_pitch_and_in_time(tmp_path, rate):
    tone = (0.3 * np.sin(2 * np.pi * 1000 * np.arange(rate) / rate)).astype("<f4")
    with pulse.running(tmp_path, rate) as server:
        async with Microphone() as microphone:
            player = await asyncio.create_subprocess_exec(
                *f"pacat --device=ear --raw --format=float32le --channels=1 --rate={rate} --latency-msec=100".split(),
                stdin=asyncio.subprocess.PIPE,
                env={**os.environ, **server.environment},
            )
            sounds, began_s = [], time.monotonic()
            await player.communicate(tone.tobytes())
            async for sound in microphone:
                sounds.append(sound)
                if time.monotonic() - began_s > 2.5:
                    break
            assert microphone.dropped_s == 0
        recorded = np.flatnonzero(np.abs(server.heard()) > 0.05)
    heard = np.concatenate([sound.samples for sound in sounds])
    own = microphone.format.sample_rate
    loud = np.flatnonzero(np.abs(heard) > 0.05)
    # The player may stumble on a busy machine; what the server has played is heard.
    assert (loud[-1] - loud[0]) / own == pytest.approx((recorded[-1] - recorded[0]) / rate, abs=0.005)
    middle = heard[loud[0] + own // 4 : loud[0] + 3 * own // 4]
    spectrum = np.abs(np.fft.rfft(middle * np.hanning(len(middle)), 8 * len(middle)))
    assert np.argmax(spectrum) / 8 / len(middle) * own == pytest.approx(1000.0, abs=0.5)
    # The moments follow the samples: no gap, no drift.
    counted = np.cumsum([0, *(len(sound.samples) for sound in sounds[:-1])]) / own
    off = np.array([sound.at_s for sound in sounds]) - counted
    assert np.percentile(off, 95) - np.percentile(off, 5) < 0.1
