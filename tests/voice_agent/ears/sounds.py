"""Sounds that a microphone meets: speech of other engines (separate programs), noises that are no speech."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from functools import cache

import numpy as np
import soxr

RATE = 16_000


def missing() -> str:
    """Which programs are not installed; empty where all are."""
    absent = [name for name in ("espeak-ng", "flite", "sox") if shutil.which(name) is None]
    return f"not installed: {', '.join(absent)}" if absent else ""


@cache
def spoken(text: str, program: str = "flite") -> np.ndarray:
    """``text`` as flite (a woman, slt) or espeak-ng says it: 16 kHz mono float32."""
    command = ["flite", "-voice", "slt", "-t", text, "-o", "/dev/stdout"]
    if program == "espeak-ng":
        command = ["espeak-ng", "-v", "en-us", "--stdout", text]
    data = subprocess.run(command, capture_output=True, check=True).stdout
    start = data.index(b"data") + 8
    rate = int.from_bytes(data[24:28], "little")
    samples = np.frombuffer(data[start : start + (len(data) - start) // 2 * 2], "<i2").astype(np.float32) / 32768
    return soxr.resample(samples, rate, RATE)


def sox(seconds: float, *effect: str, level: float = 0.1) -> np.ndarray:
    """What sox synthesises, at an RMS of ``level``."""
    command = ["sox", "-R", "-n", "-t", "f32", "-r", str(RATE), "-c", "1", "-", "synth", str(seconds), *effect]
    return at_level(np.frombuffer(subprocess.run(command, capture_output=True, check=True).stdout, "<f4"), level)


def at_level(samples: np.ndarray, rms: float) -> np.ndarray:
    return (samples * (rms / np.sqrt(np.mean(np.square(samples))))).astype(np.float32)


def cough(seed: int = 0) -> np.ndarray:
    """One to three bursts of noise with the resonances of a throat, each decaying in about 0.1 s."""
    random = np.random.default_rng(seed)
    parts = [np.zeros(RATE // 5)]
    for _ in range(1 + seed % 3):
        length = int(RATE * random.uniform(0.15, 0.35))
        spectrum = np.fft.rfft(random.standard_normal(length))
        hertz = np.fft.rfftfreq(length, 1 / RATE)
        resonances = sum(
            gain * np.exp(-(((hertz - at) / (0.2 * at)) ** 2)) for at, gain in ((500, 1), (1400, 0.7), (2600, 0.4))
        )
        burst = np.fft.irfft(spectrum * resonances, length)
        envelope = np.exp(-np.arange(length) / RATE / random.uniform(0.04, 0.1)) * np.minimum(1, np.arange(length) / 80)
        burst *= envelope
        parts += [0.5 * burst / np.abs(burst).max(), np.zeros(int(RATE * random.uniform(0.05, 0.2)))]
    return np.concatenate([*parts, np.zeros(RATE * 3 // 10)]).astype(np.float32)


def typing(seconds: float = 4.0, seed: int = 0) -> np.ndarray:
    """Clicks of keys, about seven a second."""
    random = np.random.default_rng(seed)
    samples = np.zeros(int(RATE * seconds))
    for at in np.cumsum(random.exponential(0.15, int(seconds * 10))):
        first = int(at * RATE)
        if first + 400 < len(samples):
            samples[first : first + 400] += 0.3 * random.standard_normal(400) * np.exp(-np.arange(400) / 60)
    return samples.astype(np.float32)


def music(seconds: float = 5.0) -> np.ndarray:
    """Two plucked chords."""
    chords = (("220", "277", "330"), ("196", "247", "294"))
    return np.concatenate([sum(sox(seconds / 2, "pluck", note, level=0.05) for note in chord) for chord in chords])


def babble(speakers: int = 6) -> np.ndarray:
    """So many people talk at once that none can be understood."""
    said = (
        "The meeting was moved to the afternoon because of the weather.",
        "Put the boxes into the other room, will you.",
        "I told her that we would never make it in time.",
        "Did you see the game last night, it was amazing.",
        "There is nothing left in the fridge for tomorrow.",
        "My brother lives near the station in the old town.",
    )
    voices = [spoken(text, "espeak-ng" if number % 2 else "flite") for number, text in enumerate(said[:speakers])]
    longest = max(map(len, voices))
    together = sum(np.roll(np.pad(voice, (0, longest - len(voice))), 7000 * n) for n, voice in enumerate(voices))
    return at_level(together, 0.1)


NOISES: dict[str, Callable[[], np.ndarray]] = {
    "silence": lambda: np.zeros(2 * RATE, np.float32),
    "dither": lambda: 1e-4 * np.random.default_rng(0).standard_normal(3 * RATE).astype(np.float32),
    "white": lambda: sox(3, "whitenoise", level=0.05),
    "pink": lambda: sox(4, "pinknoise", level=0.02),
    "loud pink": lambda: sox(4, "pinknoise", level=0.2),
    "brown": lambda: sox(4, "brownnoise", level=0.1),
    "long pink": lambda: sox(28, "pinknoise", level=0.1),
    "typing": typing,
    "music": music,
    "hum": lambda: sox(3, "sine", "120"),
    "sweep": lambda: sox(2, "sine", "200-2000"),
    "babble": babble,
    **{f"cough {seed}": lambda seed=seed: cough(seed) for seed in range(6)},
}
