"""A PulseAudio of a test's own: a daemon with one null sink, and a recorder on what that sink hears."""

from __future__ import annotations

import contextlib
import ctypes.util
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

RECORDER_LATENCY_MS = 20  # keeps the null sink awake: alone it wakes up every two seconds


def missing() -> str:
    """Why the speaker cannot be tested here, empty where it can."""
    absent = [name for name in ("pulseaudio", "parec", "pactl") if shutil.which(name) is None]
    if ctypes.util.find_library("portaudio") is None:
        absent.append("libportaudio2")
    return f"not installed: {', '.join(absent)}" if absent else ""


class Pulse:
    """``rate`` of its sink in Hz; ``more``: lines for its script. ``environment`` makes a program use it."""

    def __init__(self, folder: Path, rate: int, more: str = "") -> None:
        self.rate = rate
        self.socket = folder / "native"
        self.recording = folder / "heard.raw"
        self.environment = {"PULSE_SERVER": f"unix:{self.socket}", "PULSE_COOKIE": str(folder / "cookie")}
        home = {"HOME": str(folder), "XDG_RUNTIME_DIR": str(folder), "PULSE_RUNTIME_PATH": str(folder / "run")}
        script = folder / "daemon.pa"
        script.write_text(
            f"load-module module-native-protocol-unix socket={self.socket} auth-anonymous=1 auth-cookie-enabled=0\n"
            f"load-module module-null-sink sink_name=ear format=float32le rate={rate} channels=2\n{more}"
        )
        command = ["pulseaudio", "-n", "-F", str(script), "--daemonize=no", "--exit-idle-time=-1", "--use-pid-file=no"]
        self.daemon = subprocess.Popen(
            command, env={**os.environ, **home}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._wait_until_there()
        record = f"--device=ear.monitor --latency-msec={RECORDER_LATENCY_MS} --raw --format=float32le --channels=1"
        with open(self.recording, "wb") as file:
            self.recorder = subprocess.Popen(
                ["parec", *record.split(), f"--rate={rate}"],
                env={**os.environ, **self.environment},
                stdout=file,
                stderr=subprocess.DEVNULL,
            )
        self._wait_until_steady()

    def heard(self) -> np.ndarray:
        """What the sink has played since the start, [frames] float32; waits for what is still on its way."""
        time.sleep(0.3)
        data = self.recording.read_bytes()
        return np.frombuffer(data[: len(data) // 4 * 4], "<f4")

    def recorded_s(self) -> float:
        return self.recording.stat().st_size / 4 / self.rate

    def stop(self) -> None:
        for process in (self.recorder, self.daemon):
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()

    def _wait_until_there(self) -> None:
        deadline_s = time.monotonic() + 10
        while subprocess.run(
            ["pactl", "list", "short", "sinks"],
            env={**os.environ, **self.environment},
            capture_output=True,
            check=False,
        ).returncode:
            assert time.monotonic() < deadline_s, "the daemon does not answer"
            assert self.daemon.poll() is None, "the daemon has ended"
            time.sleep(0.05)

    def _wait_until_steady(self) -> None:
        deadline_s = time.monotonic() + 10
        steps = 0
        while steps < 5:
            before_s = self.recorded_s()
            time.sleep(0.1)
            steps = steps + 1 if 0.03 < self.recorded_s() - before_s < 0.3 else 0
            assert time.monotonic() < deadline_s, "the recorder gets nothing"


@contextlib.contextmanager
def running(folder: Path, rate: int, more: str = "") -> Iterator[Pulse]:
    """A daemon that this process's PortAudio sees, ended at the end."""
    import sounddevice

    pulse = Pulse(folder, rate, more)
    before = {name: os.environ.get(name) for name in pulse.environment}
    os.environ.update(pulse.environment)
    # PortAudio looks for devices once, when it is initialised.
    sounddevice._terminate()
    sounddevice._initialize()
    try:
        yield pulse
    finally:
        pulse.stop()
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
