"""The speaker on a real sound server whose output is recorded: nothing missing, right pitch, no gap."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.voice_agent.sinks import pulse
from tts_engine.types import AudioFormat
from voice_agent.errors import DeviceError
from voice_agent.sinks import FileSink, SpeakerSink
from voice_agent.testing.clicks import find_clicks
from voice_agent.testing.sink_conformance import CHECKS, Rig, chunk_of, chunks_of, tone

pytestmark = [pytest.mark.peer, pytest.mark.skipif(bool(pulse.missing()), reason=pulse.missing())]

VECTORS = Path(__file__).parents[2] / "data" / "vectors"


@pytest.fixture(scope="module", params=[44_100, 48_000], ids=lambda rate: f"{rate} Hz device")
def server(request, tmp_path_factory):
    with pulse.running(tmp_path_factory.mktemp("pulse"), request.param) as running:
        yield running


@pytest.fixture(scope="module")
def one_server(tmp_path_factory):
    with pulse.running(tmp_path_factory.mktemp("pulse"), 48_000) as running:
        yield running


def spoken() -> np.ndarray:
    """Speech that begins and ends with a tone at full swing, so that a missing edge shows."""
    speech = np.load(VECTORS / "en_short.npz")["samples"].astype(np.float32)
    edge = 0.3 * np.cos(2 * np.pi * 1000 * np.arange(480) / 24_000)
    return np.concatenate([edge, speech, edge]).astype(np.float32)


def found_in(heard: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """The stretch of ``heard`` that fits ``expected`` best, of the same length."""
    size = 1 << (len(heard) + len(expected)).bit_length()
    correlation = np.fft.irfft(np.fft.rfft(heard, size) * np.conj(np.fft.rfft(expected, size)), size)
    start = int(np.argmax(correlation[: len(heard)]))
    assert start + len(expected) <= len(heard), "the end is missing"
    return heard[start : start + len(expected)]


async def play(sink, samples: np.ndarray) -> None:
    async with sink:
        for chunk in chunks_of(samples, 480):
            await sink.write(chunk)


def unless_busy(test):
    """Runs a test again, up to five times: a busy machine loses buffers of the device, and PulseAudio does not always say so.

    What is wrong with the sink is wrong every time.
    """

    @functools.wraps(test)
    async def repeated(**fixtures):
        for _ in range(4):
            with contextlib.suppress(AssertionError):
                return await test(**fixtures)
        return await test(**fixtures)

    return repeated


async def recorded(server, samples: np.ndarray, format: AudioFormat | None = None) -> tuple[SpeakerSink, np.ndarray]:
    """The closed sink and the recording."""
    before, sink = len(server.heard()), SpeakerSink(format=format)
    await play(sink, samples)
    return sink, server.heard()[before:]


async def as_written(path: Path, samples: np.ndarray, rate: int) -> np.ndarray:
    await play(FileSink(path, format=AudioFormat(rate, 1, 4)), samples)
    return np.frombuffer(path.read_bytes(), "<f4")  # noqa: ASYNC240


@pytest.mark.parametrize("wanted", [None, "the device's"])
@unless_busy
async def test_every_sample_is_heard(server, tmp_path, wanted):
    sink, heard = await recorded(server, spoken(), AudioFormat(server.rate) if wanted else None)
    expected = await as_written(tmp_path / "expected.raw", spoken(), server.rate)
    got = found_in(heard, expected)
    if sink.format.sample_rate == server.rate:
        assert np.abs(got - expected).max() < 1e-4
        around = found_in(heard, np.concatenate([expected, np.zeros(round(0.05 * server.rate), np.float32)]))
        assert np.abs(around[len(expected) + round(0.011 * server.rate) :]).max() < 1e-4
    else:  # the server resamples, in its own quality, and rings at the hard edges in its own way
        assert np.abs(got - expected)[20:-20].max() < 0.05
        for stretch in (slice(None), slice(0, 400), slice(-400, None)):
            assert np.corrcoef(got[stretch], expected[stretch])[0, 1] > 0.98
    assert sink.format.sample_rate == (server.rate if wanted else 44_100)  # a usual rate, not the 24 kHz of the speech
    assert sink.playhead.underruns == 0
    assert sink.playhead.heard_samples == len(spoken())
    assert sink.playhead.latency_s > 0


@unless_busy
async def test_the_pitch_is_right(server):
    _, heard = await recorded(server, tone(1.0, 1000.0))
    middle = found_in(heard, tone(1.0, 1000.0, rate=server.rate))[server.rate // 4 : 3 * server.rate // 4]
    spectrum = np.abs(np.fft.rfft(middle * np.hanning(len(middle)), 8 * len(middle)))
    assert np.argmax(spectrum) / 8 * 2 == pytest.approx(1000.0, abs=0.5)
    assert find_clicks(heard, server.rate) == []


@unless_busy
async def test_clear_says_what_was_heard(one_server):
    before = len(one_server.heard())
    async with SpeakerSink(format=AudioFormat(48_000)) as sink:
        await sink.write(chunk_of(tone(1.5, 500.0)))
        await asyncio.sleep(0.4)
        cleared_s = time.monotonic()
        head = await sink.clear()
        took_s = time.monotonic() - cleared_s
    heard = one_server.heard()[before:]
    loud = np.flatnonzero(np.abs(heard) > 0.001)
    heard_s = (loud[-1] - loud[0]) / 48_000
    assert took_s < 0.3
    assert heard_s == pytest.approx(head.heard_s, abs=0.008)
    assert head.heard_samples + head.dropped_samples == 36_000
    assert find_clicks(heard, 48_000) == []


async def play_with_a_hold(samples: np.ndarray) -> tuple[int, list[np.ndarray]]:
    """The sample that it was held at, and what the monitor was told."""
    told: list[np.ndarray] = []
    sink = SpeakerSink(format=AudioFormat(48_000))
    sink.monitor = lambda frames, begins_s: told.append(frames[:, 0])
    async with sink:
        await sink.write(chunk_of(samples, 48_000))
        await asyncio.sleep(0.4)
        called_s = time.monotonic()
        head = await sink.hold()
        took_s = time.monotonic() - called_s
        await asyncio.sleep(0.4)
        assert sink.playhead.heard_samples == head.heard_samples
        await sink.resume()
        await sink.drain()
    assert took_s < 0.25  # a bound for a busy machine; benchmarks/stopping.py measures it
    assert sink.playhead.heard_samples == len(samples)
    return head.heard_samples, told


@unless_busy
async def test_a_hold_loses_no_sample_and_adds_none(one_server):
    times_s = np.arange(72_000, dtype=np.float32) / 48_000
    samples = np.sin(2 * np.pi * (200 + 400 * times_s) * times_s) * np.float32(0.5)  # no two stretches are alike
    samples[-480:] *= np.linspace(1, 0, 480, dtype=np.float32)
    before = len(one_server.heard())
    held, told = await play_with_a_hold(samples)
    first, second, fade = samples[:held].copy(), samples[held:].copy(), np.linspace(0, 1, 481, dtype=np.float32)[1:]
    first[-480:] *= 1 - fade
    second[:480] *= fade
    heard = one_server.heard()[before:]
    monitored = np.trim_zeros(np.concatenate(told))  # the silence of the hold included
    for part in (first, second, monitored):
        assert np.abs(found_in(heard, part) - part).max() < 1e-4
    loud = np.count_nonzero(np.abs(heard) > 1e-3)
    assert loud == pytest.approx(np.count_nonzero(np.abs(samples) > 1e-3), abs=40)


@unless_busy
async def test_ducking_is_heard(one_server):
    before, samples = len(one_server.heard()), tone(1.2, 300.0, 48_000)
    async with SpeakerSink(format=AudioFormat(48_000)) as sink:
        await sink.write(chunk_of(samples, 48_000))
        await asyncio.sleep(0.4)
        sink.set_gain(-12.0)
        await sink.drain()
    heard = one_server.heard()[before:]
    loud = np.flatnonzero(np.abs(heard) > 1e-3)
    assert loud[-1] - loud[0] == pytest.approx(len(samples), abs=400)
    quiet = heard[loud[-1] - 24_000 : loud[-1] - 4800]
    assert np.abs(quiet).max() == pytest.approx(0.5 * 10 ** (-12 / 20), rel=0.01)
    assert np.abs(heard).max() == pytest.approx(0.5, rel=0.01)
    assert find_clicks(heard, 48_000) == []


async def test_the_device_goes_away(tmp_path):
    with pulse.running(tmp_path, 48_000) as server:
        sink = SpeakerSink()
        await sink.start()
        writing = asyncio.ensure_future(sink.write(chunk_of(tone(30.0))))
        await asyncio.sleep(0.5)
        server.stop()
        with pytest.raises(DeviceError, match="went away while playing"):
            await asyncio.wait_for(writing, 10)
        head = await asyncio.wait_for(sink.clear(), 1)
        assert 0 < head.heard_s < 2
        await asyncio.wait_for(sink.close(), 5)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_conformance(one_server, check):
    await check(
        Rig(make=SpeakerSink, real_time=True, bound_s=2.1, reaction_s=0.4, is_open=lambda sink: sink._stream is not None)
    )


def test_no_device_gives_one_clear_line():
    body = """
import asyncio
from voice_agent.errors import DeviceError
from voice_agent.sinks import open_sink
try:
    asyncio.run(open_sink("speaker").start())
except DeviceError as error:
    print(error)
"""
    environment = {**os.environ, "PULSE_SERVER": "unix:/nowhere", "HOME": "/nowhere", "XDG_RUNTIME_DIR": "/nowhere"}
    done = subprocess.run([sys.executable, "-c", body], env=environment, capture_output=True, text=True, check=True)
    if done.stdout == "":
        pytest.skip("this machine has a sound device")
    assert done.stdout == "there is no sound device to play on; connect one, or write to a file with --out file.wav\n"
    assert done.stderr == ""
