"""``sayline listen``: replays a recording through the ears and shows what they decide, and when. The tool for tuning."""

from __future__ import annotations

import mmap
import os
import wave
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, cast, get_args

import numpy as np

from tts_engine.types import AudioFormat, Samples
from voice_agent.audio import Resampler, map_channels, pcm_to_samples
from voice_agent.cli.listen_plot import STEP_S, Curve, draw
from voice_agent.cli.running import print_json
from voice_agent.ears import Ears, EarsConfig
from voice_agent.ears.config import RATE, EchoMode
from voice_agent.ears.decisions import Decision, SpeechBegan, TurnEnded
from voice_agent.errors import InputError, MissingExtraError

_EXTENSIBLE, _PCM = b"\xfe\xff", b"\x01\x00"  # format tags of WAV
_BLOCK_S = 60  # read at a time: an hour-long recording needs little memory


def listen(file: Path, played: Path | None, echo: str, vad_mode: int, plot: Path | None, json: bool) -> None:
    """Replays ``file`` and prints one line a decision, or one object a line as JSON. See ``sayline listen --help``."""
    if echo not in get_args(EchoMode):
        raise InputError(f"--echo is {echo!r}: use one of {', '.join(get_args(EchoMode))}")
    ears = Ears(EarsConfig(echo=echo, vad_mode=vad_mode))  # type: ignore[arg-type]
    curve = Curve([], [], [])
    decisions: list[Decision] = []
    for decision in _decide(ears, _stretches(file, played), curve if plot else None):
        decisions.append(decision)
        if json:
            print_json(_facts(decision))
        else:
            print(_line(decision), flush=True)
    if not json:
        ended = sum(isinstance(decision, TurnEnded) for decision in decisions)
        print(f"{ears.heard_s:8.2f}  end of the recording, {ended} {'turn' if ended == 1 else 'turns'}")
    if plot:
        draw(plot, curve, decisions)


def _decide(ears: Ears, stretches: Iterator[tuple[Samples, Samples]], curve: Curve | None) -> Iterator[Decision]:
    format, step = AudioFormat(RATE), round(STEP_S * RATE)
    for microphone, played in stretches:
        for first in range(0, len(microphone), step):
            piece, reference = microphone[first : first + step], played[first : first + step]
            yield from ears.feed(piece, format, reference)
            if curve is not None:
                curve.microphone_db.append(_db(piece))
                curve.played_db.append(_db(reference))
                curve.heard_db.append(ears.level_db)
    yield from ears.flush()


def _db(samples: Samples) -> float:
    return float(10 * np.log10(np.mean(np.square(samples)) + 1e-9))


def _facts(decision: Decision) -> dict[str, object]:
    """A decision as plain data; a turn's samples become their length."""
    facts = asdict(decision)
    if "samples" in facts:
        facts["samples_s"] = len(facts.pop("samples")) / RATE
    seconds = {name: round(value, 3) if isinstance(value, float) else value for name, value in facts.items()}
    return {"decision": type(decision).__name__, **seconds}


_SHOWN = {
    "SpeechBegan": "speech began",
    "Duck": "duck",
    "Hold": "hold",
    "Resume": "resume",
    "Interrupt": "interrupt",
    "TurnEnded": "turn ended",
    "SpeechDropped": "dropped",
}


def _line(decision: Decision) -> str:
    about = ""
    if isinstance(decision, TurnEnded):
        about = f"  {decision.began_s:.2f} to {decision.ended_s:.2f} s"
    elif isinstance(decision, SpeechBegan):
        about = f"  at {decision.began_s:.2f} s"
    elif reason := getattr(decision, "reason", ""):
        about = f"  ({reason})"
    return f"{decision.at_s:8.2f}  {_SHOWN[type(decision).__name__]}{about}"


def _stretches(file: Path, played: Path | None) -> Iterator[tuple[Samples, Samples]]:
    """Microphone and playout at 16 kHz, equally long: two files, or the two channels of one (left, right)."""
    if played is None:
        for block in _blocks(file):
            stereo = block.ndim == 2
            yield (block[:, 0], block[:, 1]) if stereo else (block, np.zeros_like(block))
        return
    waiting = np.zeros(0, dtype=np.float32)
    references = (map_channels(block, 1) for block in _blocks(played))
    for block in _blocks(file):
        microphone = map_channels(block, 1)
        while len(waiting) < len(microphone) and (more := next(references, None)) is not None:
            waiting = np.concatenate([waiting, more])
        silence = np.zeros(max(len(microphone) - len(waiting), 0), dtype=np.float32)
        yield microphone, np.concatenate([waiting[: len(microphone)], silence])
        waiting = waiting[len(microphone) :]


def _blocks(file: Path) -> Iterator[Samples]:
    """A sound file as 16 kHz, a minute at a time: [samples], or [samples, 2] of two channels; more are averaged."""
    resampler: Resampler | None = None
    for samples, rate in _read(file):
        kept = samples if samples.ndim == 2 and samples.shape[1] == 2 else map_channels(samples, 1)
        if resampler is None:
            resampler = Resampler(rate, RATE, 1 if kept.ndim == 1 else 2)
        yield resampler.feed(kept)
    if resampler is None:
        raise InputError(f"{file} holds no audio")
    yield resampler.flush()


def _read(file: Path) -> Iterator[tuple[Samples, int]]:
    """PCM WAV by the standard library; every other format by soundfile or PyAV, whichever is installed."""
    if not file.is_file():
        raise InputError(f"{file} is not a file")
    sound = _open_wave(file)
    if sound is None:
        yield from _read_any(file)
        return
    with sound:
        rate, frame_bytes = sound.getframerate(), sound.getnchannels() * sound.getsampwidth()
        while data := sound.readframes(_BLOCK_S * rate):
            whole = data[: len(data) // frame_bytes * frame_bytes]
            yield pcm_to_samples(whole, sound.getsampwidth(), sound.getnchannels()), rate


def _open_wave(file: Path) -> wave.Wave_read | None:
    """The file, if the standard library reads it: WAV of 16 or 24 bits."""
    try:
        sound = wave.open(_as_plain_pcm(file), "rb")  # noqa: SIM115 (the caller closes it)
    except (wave.Error, EOFError):
        return None
    if sound.getsampwidth() in (2, 3):
        return sound
    sound.close()
    return None


def _as_plain_pcm(file: Path) -> IO[bytes]:
    """The file's bytes; the header of PCM in WAVE_FORMAT_EXTENSIBLE, which Python 3.11 refuses, says PCM."""
    with file.open("rb") as opened:
        if not os.fstat(opened.fileno()).st_size:
            raise EOFError
        data = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_COPY)
    place = 12  # behind RIFF, size, WAVE
    while place + 8 <= len(data) and data[place : place + 4] != b"fmt ":
        size = int.from_bytes(data[place + 4 : place + 8], "little")
        place += 8 + size + size % 2
    tag, kind = slice(place + 8, place + 10), slice(place + 32, place + 34)
    if data[tag] == _EXTENSIBLE and data[kind] == _PCM:
        data[tag] = _PCM
    return cast(IO[bytes], data)


def _read_any(file: Path) -> Iterator[tuple[Samples, int]]:
    try:
        import soundfile
    except ImportError:
        yield from _read_av(file)
        return
    try:
        with soundfile.SoundFile(file) as sound:
            while len(samples := sound.read(_BLOCK_S * sound.samplerate, dtype="float32")):
                yield samples, sound.samplerate
    except soundfile.LibsndfileError as error:
        raise InputError(f"{file} cannot be read as audio: {error}") from error


def _read_av(file: Path) -> Iterator[tuple[Samples, int]]:
    try:
        import av
    except ImportError as error:
        raise MissingExtraError(
            f"{file} is no 16 or 24 bit WAV file; for other formats: pip install soundfile (or the extra sayline[server])"
        ) from error
    try:
        with av.open(str(file)) as container:
            resampler: Any = av.AudioResampler(format="flt")
            for frame in container.decode(audio=0):
                for plain in resampler.resample(frame):
                    samples = plain.to_ndarray().reshape(-1, len(plain.layout.channels))
                    yield (samples if samples.shape[1] > 1 else samples[:, 0]), plain.sample_rate
    except (av.FFmpegError, IndexError) as error:
        raise InputError(f"{file} cannot be read as audio: {error}") from error
