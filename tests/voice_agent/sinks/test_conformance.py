"""Every sink of our own keeps every promise of the contract."""

from __future__ import annotations

import asyncio
import inspect
import io
import os
from pathlib import Path

import numpy as np
import pytest

from tests.voice_agent.sinks.playing_client import PlayingClient
from tts_engine.types import AudioFormat
from voice_agent.audio import pcm_to_samples
from voice_agent.sinks import CallbackSink, FileSink, MemorySink, TeeSink, TelephoneSink, WebSocketSink, open_sink
from voice_agent.sinks.g711 import decode
from voice_agent.testing.clock import LoopClock, run_virtual
from voice_agent.testing.sink_conformance import CHECKS, Rig, cutting, holding, losing, loudness, playing
from voice_agent.testing.sink_conformance.losing import nothing_is_opened_before_the_start


def memory(**options) -> Rig:
    real_time = "clock" in options
    return Rig(
        make=lambda: MemorySink(**options),
        output=lambda sink: (sink.samples, sink.format.sample_rate),
        real_time=real_time,
        tolerance=1e-6,
    )


def file(encoding: str, format: AudioFormat | None = None) -> Rig:
    files: dict[int, io.BytesIO] = {}

    def make() -> FileSink:
        buffer = io.BytesIO()
        sink = FileSink(buffer, encoding=encoding, format=format)
        files[id(sink)] = buffer
        return sink

    def output(sink):
        header = 0 if encoding == "pcm" else 58 if sink.format.width == 4 else 44
        samples = pcm_to_samples(files[id(sink)].getvalue()[header:], sink.format.width, sink.format.channels)
        return samples if samples.ndim == 1 else samples[:, 0], sink.format.sample_rate

    return Rig(make=make, output=output, lose=lambda sink: files[id(sink)].close())


def callback(samples: str, *, is_async: bool) -> Rig:
    collected: dict[int, list | None] = {}

    def make() -> CallbackSink:
        calls: list = []

        def take(data) -> None:
            if collected[id(sink)] is None:
                raise ConnectionResetError("gone")
            calls.append(data)

        async def take_slowly(data) -> None:
            await asyncio.sleep(0)
            take(data)

        sink = CallbackSink(take_slowly if is_async else take, samples=samples)
        collected[id(sink)] = calls
        return sink

    def output(sink):
        calls = collected[id(sink)]
        parts = [pcm_to_samples(data) if samples == "pcm16" else data for data in calls]
        return np.concatenate([np.zeros(0, np.float32), *parts]), sink.format.sample_rate

    def lose(sink) -> None:
        collected[id(sink)] = None

    return Rig(make=make, output=output, lose=lose)


def tee() -> Rig:
    def make() -> TeeSink:
        return TeeSink([MemorySink(clock=LoopClock()), FileSink(io.BytesIO()), MemorySink(AudioFormat(8_000))])

    def output(sink):
        listener = sink._listener
        return listener.samples, listener.format.sample_rate

    return Rig(make=make, output=output, real_time=True, tolerance=1e-6)


def telephone(law: str, **options) -> Rig:
    class Line(TelephoneSink):
        """Remembers what was sent, without the silence that fills the last frame before a pause."""

        def __init__(self) -> None:
            super().__init__(self._take_frame, law=law, clock=LoopClock(), **options)
            self.heard = [np.zeros(0, np.float32)]
            self.length = 0
            self.cut = False

        def _sent(self, frames) -> None:
            super()._sent(frames)
            self.length = len(frames)

        async def _take_frame(self, frame: bytes) -> None:
            if self.cut:
                raise ConnectionResetError("the line is cut")
            assert len(frame) == 160
            samples = decode(frame, law)
            assert not np.abs(samples[self.length :]).max(initial=0.0) > 0.001
            self.heard.append(samples[: self.length])

    def make() -> TelephoneSink:
        return Line()

    def output(sink):
        return np.concatenate(sink.heard), 8_000

    def lose(sink) -> None:
        sink.cut = True

    hold_s = 0.06 + options.get("latency_s", 0.0)
    return Rig(make=make, output=output, real_time=True, tolerance=0.02, hold_s=hold_s, lose=lose, is_open=has_a_sender)


def has_a_sender(sink) -> bool:
    return sink._sender is not None and not sink._sender.done()


def web_socket(*, reports: bool, format: AudioFormat | None = None) -> Rig:
    clients: dict[int, PlayingClient] = {}

    def make() -> WebSocketSink:
        client = PlayingClient()
        sink = WebSocketSink(client, format=format, reports=reports, clock=LoopClock())
        if reports:
            client.report_to = sink.receive
        clients[id(sink)] = client
        return sink

    return Rig(
        make=make,
        output=lambda sink: (clients[id(sink)].heard(), sink.format.sample_rate),
        real_time=True,
        remote=True,
        lose=lambda sink: setattr(clients[id(sink)], "fail", ConnectionResetError("gone")),
        is_open=has_a_sender,
    )


RIGS = {
    "memory": memory(),
    "memory 48 kHz": memory(format=AudioFormat(48_000)),
    "memory playing": memory(clock=LoopClock()),
    "memory playing late at 8 kHz": memory(clock=LoopClock(), latency_s=0.12, format=AudioFormat(8_000)),
    "memory playing at 44.1 kHz": memory(clock=LoopClock(), latency_s=0.03, format=AudioFormat(44_100)),
    "null": Rig(make=lambda: open_sink("null")),
    "wav": file("wav"),
    "wav 44.1 kHz stereo 24 bit": file("wav", AudioFormat(44_100, 2, 3)),
    "wav float": file("wav", AudioFormat(24_000, 1, 4)),
    "pcm": file("pcm"),
    "callback": callback("pcm16", is_async=False),
    "async callback": callback("float32", is_async=True),
    "tee": tee(),
    "telephone, µ-law": telephone("ulaw"),
    "telephone, A-law, late": telephone("alaw", latency_s=0.1),
    "web socket": web_socket(reports=False),
    "web socket that reports": web_socket(reports=True),
    "web socket that reports, 48 kHz float": web_socket(reports=True, format=AudioFormat(48_000, 1, 4)),
}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("rig", RIGS.values(), ids=RIGS.keys())
def test_conformance(rig, check):
    run_virtual(check(rig))


def test_a_file_is_open_between_start_and_close_only(tmp_path):
    path = tmp_path / "out.wav"

    def is_open(sink) -> bool:
        return any(os.path.realpath(link) == str(path) for link in Path("/proc/self/fd").iterdir())

    run_virtual(nothing_is_opened_before_the_start(Rig(make=lambda: FileSink(path), is_open=is_open)))


def test_every_check_is_run():
    """The modules of the kit hold no check that is not among them."""
    modules = (playing, cutting, holding, loudness, losing)
    written = {
        name for module in modules for name, function in vars(module).items() if inspect.iscoroutinefunction(function)
    } - {"write_all"}
    assert {check.__name__ for check in CHECKS} == written
