"""Every format: the same bytes for any chunking, the last sample is there, the sound is what was put in."""

from __future__ import annotations

import io

import av
import numpy as np
import pytest

from tests.pitch import pitch_of
from voice_agent.audio import pcm_to_samples
from voice_agent.errors import InputError
from voice_agent.server.encoders import FORMATS, Container, Encoder, check_rate

RATE = 24_000
PADDING_S = {"mp3": 0.075, "aac": 0.1}
"""What a codec's frames may add at 24 kHz: neither MP3 nor ADTS can say where the sound ends."""


def buzz(seconds: float = 1.3, pitch_hz: float = 207.0) -> np.ndarray:
    t = np.arange(round(seconds * RATE)) / RATE
    return (0.2 * sum(np.sin(2 * np.pi * k * pitch_hz * t) / k for k in range(1, 8))).astype(np.float32)


def encoded(container: Container, samples: np.ndarray, sample_rate: int = RATE, chunk: int = 2400) -> bytes:
    encoder = Encoder(container, RATE, sample_rate)
    parts = [encoder.feed(samples[start : start + chunk]) for start in range(0, len(samples), chunk)]
    return b"".join([*parts, encoder.flush()])


def decoded(data: bytes, container: Container, sample_rate: int = RATE) -> tuple[np.ndarray, int]:
    """Mono float samples and their rate."""
    if container == "pcm":
        return pcm_to_samples(data), sample_rate
    with av.open(io.BytesIO(data)) as file:
        resampler = av.AudioResampler(format="flt", layout="mono")
        frames = [out for frame in file.decode(audio=0) for out in resampler.resample(frame)]
        return np.concatenate([frame.to_ndarray()[0] for frame in frames]), file.streams.audio[0].rate


@pytest.mark.parametrize("container", FORMATS)
def test_duration_pitch_and_level(container: Container) -> None:
    samples = buzz()
    out, rate = decoded(encoded(container, samples), container)
    extra_s = len(out) / rate - len(samples) / RATE
    assert -0.001 <= extra_s <= PADDING_S.get(container, 0.001)
    heard = out[:: rate // RATE] if rate != RATE else out  # Opus decodes at 48 kHz
    assert pitch_of(heard) == pytest.approx(207.0, rel=0.01)
    assert heard[4800:24000].std() == pytest.approx(samples[4800:24000].std(), rel=0.1)


@pytest.mark.parametrize("container", FORMATS)
@pytest.mark.parametrize("sample_rate", [24_000, 16_000])
def test_any_chunking_gives_the_same_bytes(container: Container, sample_rate: int) -> None:
    samples = buzz(0.7)
    whole = encoded(container, samples, sample_rate, len(samples))
    assert encoded(container, samples, sample_rate, 777) == whole
    assert encoded(container, samples, sample_rate, 4800) == whole


@pytest.mark.parametrize("container", FORMATS)
def test_the_last_samples_are_there(container: Container) -> None:
    """A click at the very end is heard: nothing is left in a codec."""
    samples = np.zeros(RATE // 2, np.float32)
    samples[-240:] = 0.5 * np.sin(np.arange(240) * 2 * np.pi * 1000 / RATE)
    out, rate = decoded(encoded(container, samples), container)
    assert np.abs(out[int(0.45 * rate) :]).max() > 0.25
    assert np.abs(out[: int(0.4 * rate)]).max() < 0.05


@pytest.mark.parametrize("container", FORMATS)
def test_bytes_come_while_samples_go_in(container: Container) -> None:
    """After 0.4 s of sound some bytes are out: no format keeps a second back."""
    encoder = Encoder(container, RATE, RATE)
    samples = buzz(0.4)
    given = sum(len(encoder.feed(part)) for part in np.split(samples, 4))
    assert given > 0.3 * len(encoded(container, samples))
    encoder.close()


OTHER_RATES = [("pcm", 8000), ("wav", 44_100), ("flac", 22_050), ("mp3", 48_000), ("aac", 8000), ("opus", 16_000)]
NO_RATES = [("pcm", 7999), ("wav", 48_001), ("opus", 22_050), ("mp3", 10_000), ("aac", 15_999), ("flac", -1)]


@pytest.mark.parametrize(("container", "sample_rate"), OTHER_RATES)
def test_other_rates(container: Container, sample_rate: int) -> None:
    samples = buzz()
    out, rate = decoded(encoded(container, samples, sample_rate), container, sample_rate)
    assert rate == (48_000 if container == "opus" else sample_rate)
    assert len(out) / rate == pytest.approx(1.3, abs=0.26 if container in PADDING_S else 0.001)


@pytest.mark.parametrize(("container", "sample_rate"), NO_RATES)
def test_rates_that_cannot_be(container: Container, sample_rate: int) -> None:
    with pytest.raises(InputError, match="Hz"):
        check_rate(container, sample_rate)
    with pytest.raises(InputError, match="Hz"):
        Encoder(container, RATE, sample_rate)


def test_players_take_the_wav_header() -> None:
    """The standard library, libsndfile and FFmpeg read a WAV file whose length was not known."""
    import wave

    import soundfile

    data = encoded("wav", buzz())
    with wave.open(io.BytesIO(data)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (RATE, 1, 2)
        assert len(file.readframes(10 * RATE)) == 2 * len(buzz())
    samples, rate = soundfile.read(io.BytesIO(data))
    assert (len(samples), rate) == (len(buzz()), RATE)


def test_a_file_that_is_left_is_freed() -> None:
    encoder = Encoder("opus", RATE, RATE)
    encoder.feed(buzz(0.2))
    encoder.close()
    encoder.close()
