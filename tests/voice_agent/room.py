"""A room for real audio paths: a sound server with a loudspeaker and a microphone, a user, noise, and an echo between them.

User and noise are played by programs of their own (pacat). The microphone hears them, and what the loudspeaker plays on
several ways: direct and by reflections.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from tests.voice_agent.sinks import pulse

RATE = 48_000
_MICROPHONE = (
    "load-module module-null-sink sink_name=mouth format=float32le rate=48000 channels=1\n"
    "load-module module-remap-source master=mouth.monitor source_name=microphone\n"
    "set-default-sink ear\n"
    "set-default-source microphone\n"
)


class Room:
    """``say`` plays to the microphone."""

    def __init__(self, server: pulse.Pulse) -> None:
        self.server = server
        self.environment = {**os.environ, **server.environment}

    def reflect(self, delay_s: float, attenuation_db: float) -> None:
        """What the loudspeaker plays comes to the microphone, so much later and weaker; within the server, which keeps
        time better than programs do.
        """
        options = f"source=ear.monitor sink=mouth latency_msec={round(1000 * delay_s)} adjust_time=0 channels=1"
        module = self._control("load-module", "module-loopback", *options.split(), "remix=yes").strip()
        inputs = self._control("list", "sink-inputs")
        number = re.search(rf"Sink Input #(\d+)(?:(?!Sink Input).)*?Owner Module: {module}\n", inputs, re.DOTALL)
        assert number is not None
        self._control("set-sink-input-volume", number[1], f"-{attenuation_db}dB")

    def _control(self, *command: str) -> str:
        done = subprocess.run(["pactl", *command], env=self.environment, capture_output=True, text=True, check=True)
        return done.stdout

    async def say(self, samples: np.ndarray) -> None:
        """``samples`` (16 kHz mono) sound at the microphone; returns when they are over."""
        player = await asyncio.create_subprocess_exec(
            *_play("mouth", 16_000, 100), stdin=asyncio.subprocess.PIPE, env=self.environment
        )
        await player.communicate(samples.astype("<f4").tobytes())


def _hurry(pid: int) -> None:
    """The room must keep time while the rest of the machine works; only root may ask for that."""
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, pid, -15)


def _play(sink: str, rate: int, latency_ms: int) -> list[str]:
    return f"pacat --device={sink} --raw --format=float32le --channels=1 --rate={rate} --latency-msec={latency_ms}".split()


@contextlib.contextmanager
def running(folder: Path, *, echo: Sequence[tuple[float, float]] = (), noise: np.ndarray | None = None) -> Iterator[Room]:
    """``echo``: the ways of sound from the loudspeaker to the microphone, seconds of delay and dB of attenuation each;
    ``noise``: 16 kHz mono, played over and over.
    """
    with pulse.running(folder, RATE, _MICROPHONE) as server, contextlib.ExitStack() as stack:
        room = Room(server)

        def start(command: list[str], **options) -> subprocess.Popen:
            process = subprocess.Popen(command, env=room.environment, **{"stderr": subprocess.DEVNULL, **options})
            stack.callback(process.wait)
            stack.callback(process.kill)
            _hurry(process.pid)
            return process

        _hurry(server.daemon.pid)
        _hurry(server.recorder.pid)

        for delay_s, attenuation_db in echo:
            room.reflect(delay_s, attenuation_db)
        if noise is not None:
            looped = folder / "noise.raw"
            looped.write_bytes(np.tile(noise, max(1, 180 * 16_000 // len(noise))).astype("<f4").tobytes())
            with looped.open("rb") as file:
                start(_play("mouth", 16_000, 100), stdin=file)
        yield room
