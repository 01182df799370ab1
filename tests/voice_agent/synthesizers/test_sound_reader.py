"""PCM and WAV, cut anywhere, and what only looks like them."""

from __future__ import annotations

import io
import struct
import wave

import numpy as np
import pytest

from tts_engine.types import AudioFormat
from voice_agent.audio import samples_to_pcm, wav_header
from voice_agent.errors import EngineError
from voice_agent.synthesizers.sound_reader import SoundReader

SAMPLES = np.linspace(-1, 0.99, 97 * 2, dtype=np.float32)


def read(data, cut, **options):
    reader = SoundReader(AudioFormat(), **options)
    sounds = [sound for at in range(0, len(data), cut) for sound in reader.feed(data[at : at + cut])]
    return [*sounds, *reader.flush()]


@pytest.mark.parametrize("cut", [1, 2, 3, 44, 10_000])
@pytest.mark.parametrize("width", [2, 3, 4])
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("channels", [1, 2])
def test_wav(cut, width, known, channels):
    format = AudioFormat(16_000, channels, width)
    samples = SAMPLES if channels == 1 else SAMPLES.reshape(-1, 2)
    data = wav_header(format, len(samples) if known else None) + samples_to_pcm(samples, width)
    sounds = read(data + (b"LIST\2\0\0\0xx" if known else b""), cut)
    assert {sound.format for sound in sounds} == {format}
    np.testing.assert_allclose(np.concatenate([sound.samples for sound in sounds]), samples, atol=2**-15)


def test_wav_of_the_standard_library():
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(22_050)
        file.writeframes(samples_to_pcm(SAMPLES))
    sounds = read(buffer.getvalue(), 7)
    assert sounds[0].format == AudioFormat(22_050)
    assert sum(len(sound.samples) for sound in sounds) == len(SAMPLES)


@pytest.mark.parametrize("cut", [1, 5, 1000])
@pytest.mark.parametrize("encoding", ["pcm", "auto"])
@pytest.mark.parametrize("count", [0, 1, 5, 6, 97])
def test_pcm(cut, encoding, count):
    data = samples_to_pcm(SAMPLES[:count])
    assert sum(len(sound.samples) for sound in read(data, cut, encoding=encoding)) == count


def test_pcm_that_begins_like_a_header():
    assert sum(len(sound.samples) for sound in read(b"RIFFxxxxWAVEfmt ", 3, encoding="pcm")) == 8


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"RIFF\0\0\0\0WAVEdata\0\0\0\0\1\0", "without a format"),
        (b"RIFF\0\0\0\0WAVE" + struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, 8000, 8000, 1, 8), "with 8 bits"),
        (b"RIFF\0\0\0\0WAVE" + struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 0, 8000, 8000, 1, 16), "0 channels"),
        (b"RIFF\0\0\0\0WAVEfmt \2\0\0\0xx", "broken WAV header"),
        (b"RIFF\0\0\0\0WAVEjunk\xff\xff\xff\x7f" + bytes(1 << 17), "without samples"),
        (b"ID3\4" + bytes(20), "is MP3"),
        (b"RIFF\0\0\0\0WAVE", "inside the WAV header"),
    ],
)
def test_what_is_no_audio(data, said):
    with pytest.raises(EngineError, match=said):
        read(data, 4096)
