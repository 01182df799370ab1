"""The sounds of the ears' recordings: users spoken by other engines, noise, coughs, typing, music, rooms, and our agent.

All at 16 kHz, made anew from seeds; espeak-ng, flite and sox are Debian packages.
"""

from __future__ import annotations

import io
import subprocess
import wave
from functools import cache

import numpy as np

from benchmarks.ears_casts import Voice
from tts_engine.types import Samples
from voice_agent.audio import Resampler, map_channels, pcm_to_samples

RATE = 16_000
USER_DB = -26.0
"""The level of a user's speech at the microphone, against full scale, where nothing else is said."""

ACTIVE_DB = -35.0  # below the loudest 10 ms of a clip: silence, not speech
NOISES = ("pink", "babble", "typing", "music")


@cache
def spoken(program: str, voice: str, text: str) -> Samples:
    """A text by another engine, without silence around it, at the users' level."""
    if program == "flite":
        command = ["flite", "-voice", voice, "-t", text, "-o", "/dev/stdout"]
    else:
        # espeak-ng's own rate is two syllables a second in Chinese, half of what people speak.
        command = ["espeak-ng", "-v", voice, "-s", "300" if voice.startswith("cmn") else "175", "--stdout", text]
    samples = read_wav(subprocess.run(command, capture_output=True, check=True).stdout)
    start, end = active(samples)
    return at_level(samples[round(start * RATE) : round(end * RATE)], USER_DB)


def read_wav(data: bytes) -> Samples:
    """A WAV file's samples as 16 kHz mono; a header written to a pipe may promise more than there is."""
    with wave.open(io.BytesIO(data)) as file:
        rate, channels, width = file.getframerate(), file.getnchannels(), file.getsampwidth()
        raw = file.readframes((len(data) - 44) // (channels * width))
    samples = map_channels(pcm_to_samples(raw, width, channels), 1)
    return resampled(samples, rate)


def resampled(samples: Samples, rate: int) -> Samples:
    resampler = Resampler(rate, RATE)
    return np.concatenate([resampler.feed(samples), resampler.flush()])


def active(samples: Samples) -> tuple[float, float]:
    """Where a clean clip's sound begins and ends, in seconds, to 5 ms."""
    step = RATE // 200
    squares = np.square(samples[: len(samples) // step * step]).reshape(-1, step).mean(axis=1)
    smooth = np.convolve(squares, [0.5, 0.5], "same")
    loud = np.flatnonzero(smooth > smooth.max() * 10 ** (ACTIVE_DB / 10))
    return loud[0] * step / RATE, (loud[-1] + 1) * step / RATE


def at_level(samples: Samples, level_db: float) -> Samples:
    """Scaled so that the parts with sound have this level."""
    squares = np.square(samples[: len(samples) // 160 * 160]).reshape(-1, 160).mean(axis=1)
    loud = squares[squares > squares.max() * 10 ** (ACTIVE_DB / 10)]
    return (samples * (10 ** (level_db / 20) / np.sqrt(loud.mean()))).astype(np.float32)


def noise(kind: str, seconds: float, seed: int, crowd: tuple[Voice, ...]) -> Samples:
    """A noise at the users' level: subtract the SNR."""
    dice = np.random.default_rng(seed)
    count = round(seconds * RATE)
    if kind == "pink":
        made = _shaped(dice, count, lambda hz: 1 / np.sqrt(np.maximum(hz, 20)))
    elif kind == "babble":
        made = sum(_talker(voice, count, dice) for voice in crowd)
    elif kind == "typing":
        made = _typing(dice, count)
    else:
        made = np.resize(_music(seed), count)
    level = (
        np.sqrt(np.mean(np.square(made))) if kind != "typing" else np.sqrt(np.mean(np.sort(np.square(made))[-count // 10 :]))
    )
    return (made * (10 ** (USER_DB / 20) / level)).astype(np.float32)


def _shaped(dice: np.random.Generator, count: int, gain) -> Samples:  # type: ignore[no-untyped-def]
    spectrum = np.fft.rfft(dice.standard_normal(count)) * gain(np.fft.rfftfreq(count, 1 / RATE))
    return np.fft.irfft(spectrum, count).astype(np.float32)


CROWD_TEXTS = (
    "and then we went down to the river and had lunch under the big tree with all of the children",
    "it was far too expensive so in the end they bought the smaller one and painted it green",
    "my neighbour says that the road will be closed for another month which is hard to believe",
)


def _talker(voice: Voice, count: int, dice: np.random.Generator) -> Samples:
    clips = [spoken(*voice, CROWD_TEXTS[i]) for i in dice.permutation(len(CROWD_TEXTS))]
    return np.roll(np.resize(np.concatenate(clips), count), int(dice.integers(count)))


def _typing(dice: np.random.Generator, count: int) -> Samples:
    made = np.zeros(count + RATE, dtype=np.float32)
    place = 0.0
    while place < count:
        click = dice.standard_normal(480) * np.exp(-np.arange(480) / dice.uniform(30, 90))
        click[1:] -= 0.8 * click[:-1]
        made[int(place) : int(place) + 480] += click * dice.uniform(0.4, 1.0)
        place += RATE * dice.choice([dice.uniform(0.08, 0.25), dice.uniform(0.3, 1.0)], p=[0.85, 0.15])
    return made[:count]


@cache
def _music(seed: int) -> Samples:
    """Eight bars of plucked chords over a bass, by sox."""
    dice = np.random.default_rng(seed)
    root = int(dice.integers(-14, -6))
    bars = []
    for _ in range(8):
        chord = root + int(dice.choice([0, 5, 7, 9]))
        notes = [f"%{chord + step}" for step in (0, 4, 7, 12)]
        command = ["sox", "-R", "-n", "-r", str(RATE), "-b", "16", "-t", "wav", "-", "synth", f"{dice.uniform(0.5, 0.9):.2f}"]
        for note in notes:
            command += ["pluck", note]
        bars.append(read_wav(subprocess.run([*command, "remix", "-"], capture_output=True, check=True).stdout))
    return np.concatenate(bars)


def cough(seed: int) -> Samples:
    """One to three bursts of noise through a throat's resonances, some with a short voiced end, at the users' level."""
    dice = np.random.default_rng(seed)
    parts = []
    for _ in range(int(dice.integers(1, 4))):
        count = int(RATE * dice.uniform(0.12, 0.3))
        peaks = [(dice.uniform(500, 900), 200), (dice.uniform(1200, 1900), 350), (dice.uniform(2500, 3600), 600)]
        burst = _shaped(dice, count, lambda hz, p=tuple(peaks): sum(1 / (1 + ((hz - f) / w) ** 2) for f, w in p))
        time_s = np.arange(count) / RATE
        parts.append(burst / np.abs(burst).max() * np.minimum(time_s / 0.01, 1) * np.exp(-time_s / 0.09))
        if dice.random() < 0.4:
            length = int(RATE * dice.uniform(0.05, 0.12))
            pulses = np.zeros(length)
            pulses[:: int(RATE / dice.uniform(100, 220))] = 1
            parts.append(0.5 * np.convolve(pulses, np.exp(-np.arange(160) / 25) * np.sin(np.arange(160) * 0.25), "same"))
        parts.append(np.zeros(int(RATE * dice.uniform(0.05, 0.2))))
    return at_level(np.concatenate(parts[:-1]).astype(np.float32), USER_DB)


def room(delay_s: float, attenuation_db: float, seed: int, reverberation_s: float = 0.3) -> Samples:
    """An echo path: a direct sound after ``delay_s``, then a decaying tail; the echo of speech is so much quieter."""
    dice = np.random.default_rng(seed)
    count = round(min(reverberation_s, 0.35) * RATE)
    tail = dice.standard_normal(count) * 10 ** (-3 * np.arange(count) / RATE / reverberation_s)
    tail *= 0.7 / np.sqrt(np.sum(tail**2))
    tail[0] += 1.0
    response = np.concatenate([np.zeros(round(delay_s * RATE)), tail / np.sqrt(np.sum(tail**2))])
    return (response * 10 ** (-attenuation_db / 20)).astype(np.float32)


AGENT_TEXTS = (
    "Your package left the warehouse this morning, and it should arrive on Friday before noon.",
    "I found four restaurants within walking distance of your hotel, and two of them still have a table for tonight.",
    "The engineer will come between two and five in the afternoon, and she will call you half an hour before.",
    "您的包裹昨天晚上已经离开仓库，星期五之前就能送到，请您保持电话畅通。",
    "To reset the device, hold the button for ten seconds until the light turns blue, then open the app and follow the steps.",
    "工程师会在下午两点到五点之间上门，来之前会先给您打电话。",
    "The museum is open every day except Monday, and on Thursdays you can visit it until nine in the evening.",
)


@cache
def agent_speech() -> Samples:
    """Our own engine's replies, one after another: about a minute."""
    from tts_engine.engine import Engine
    from tts_engine.types import Utterance

    engine = Engine.load()
    chunks = [chunk for text in AGENT_TEXTS for chunk in engine.speak(Utterance(text, break_after_ms=250))]
    return resampled(np.concatenate([chunk.samples for chunk in chunks]), chunks[0].format.sample_rate)
