"""PCM, resampling, channels and WAV headers."""

from __future__ import annotations

import io
import struct
import wave

import numpy as np
import pytest
import soundfile
import soxr
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tts_engine.errors import InputError
from tts_engine.types import AudioFormat
from voice_agent.audio import Resampler, map_channels, pcm_to_samples, samples_to_pcm, wav_header

NOISE = (np.random.default_rng(0).standard_normal(24_000) * 0.2).astype(np.float32)


class TestPcm:
    def test_full_scale_clips_and_never_wraps(self):
        loud = np.array([1.0, 0.99999, 1.5, 1e30, np.inf, -1.0, -1.5, -1e30, -np.inf, np.nan, 0.0], dtype=np.float32)
        values = np.frombuffer(samples_to_pcm(loud), "<i2").tolist()
        assert values == [32767, 32767, 32767, 32767, 32767, -32768, -32768, -32768, -32768, 0, 0]

    def test_24_bits_clip_too(self):
        loud = np.array([1.0, 2.0, -1.0, -2.0, np.nan, 0.5], dtype=np.float32)
        data = samples_to_pcm(loud, 3)
        values = [int.from_bytes(data[i : i + 3], "little", signed=True) for i in range(0, len(data), 3)]
        assert values == [2**23 - 1, 2**23 - 1, -(2**23), -(2**23), 0, 2**22]

    def test_rounds_to_the_nearest(self):
        samples = np.array([0.4, 0.6, -0.4, -0.6], dtype=np.float32) / 32768
        assert np.frombuffer(samples_to_pcm(samples), "<i2").tolist() == [0, 1, 0, -1]

    def test_every_16_bit_value_survives(self):
        values = np.arange(-32768, 32768, dtype="<i2")
        assert samples_to_pcm(pcm_to_samples(values.tobytes())) == values.tobytes()

    @given(st.lists(st.integers(-(2**23), 2**23 - 1), max_size=50))
    def test_24_bit_values_survive(self, values):
        data = b"".join(value.to_bytes(3, "little", signed=True) for value in values)
        assert samples_to_pcm(pcm_to_samples(data, 3), 3) == data

    @given(hnp.arrays(np.float32, st.integers(0, 40), elements=st.floats(-1, 1, width=32)), st.sampled_from([2, 3, 4]))
    def test_error_is_within_half_a_step(self, samples, width):
        step = {2: 2**-15, 3: 2**-23, 4: 0}[width]
        back = pcm_to_samples(samples_to_pcm(samples, width), width)
        # At +1 the largest integer is one step short.
        assert np.all(np.abs(back - samples) <= np.where(samples >= 1 - step, step, step / 2) + 1e-12)

    def test_stereo_is_interleaved(self):
        samples = np.array([[0.5, -0.5], [0.25, -0.25]], dtype=np.float32)
        assert np.frombuffer(samples_to_pcm(samples), "<i2").tolist() == [16384, -16384, 8192, -8192]
        assert np.array_equal(pcm_to_samples(samples_to_pcm(samples, 3), 3, 2), samples)

    def test_bad_widths_and_half_samples(self):
        with pytest.raises(InputError, match="2, 3 or 4"):
            samples_to_pcm(NOISE, 1)
        with pytest.raises(InputError, match="2, 3 or 4"):
            pcm_to_samples(b"", 8)
        with pytest.raises(InputError, match="whole samples"):
            pcm_to_samples(b"123")


class TestChannels:
    def test_all_ways(self):
        mono = np.array([0.5, -1.0], dtype=np.float32)
        stereo = np.array([[0.5, 0.0], [-1.0, 1.0]], dtype=np.float32)
        assert map_channels(mono, 1) is mono
        assert map_channels(stereo, 2) is stereo
        assert map_channels(stereo, 1).tolist() == [0.25, 0.0]
        assert map_channels(mono, 2).tolist() == [[0.5, 0.5], [-1.0, -1.0]]
        assert map_channels(mono[:, None], 1).tolist() == [0.5, -1.0]
        assert map_channels(stereo, 3).tolist() == [[0.25] * 3, [0.0] * 3]
        assert map_channels(stereo, 1).dtype == np.float32


RATES = [(24_000, 48_000), (24_000, 44_100), (24_000, 16_000), (24_000, 8_000), (48_000, 24_000), (22_050, 24_000)]


class TestResampler:
    @pytest.mark.parametrize("size", [1, 7, 160, 480, 1000, 24_000])
    @pytest.mark.parametrize("rates", RATES, ids=str)
    def test_chunked_equals_the_one_shot_result(self, rates, size):
        samples = NOISE if size > 1 else NOISE[:3000]
        resampler = Resampler(*rates)
        parts = [resampler.feed(samples[i : i + size]) for i in range(0, len(samples), size)]
        got = np.concatenate([*parts, resampler.flush()])
        assert np.array_equal(got, soxr.resample(samples, *rates))

    def test_a_new_stream_after_flush_and_reset(self):
        resampler = Resampler(24_000, 44_100)
        first = np.concatenate([resampler.feed(NOISE), resampler.flush()])
        assert np.array_equal(np.concatenate([resampler.feed(NOISE), resampler.flush()]), first)
        resampler.feed(NOISE)
        resampler.reset()
        assert len(resampler.flush()) == 0
        assert np.array_equal(np.concatenate([resampler.feed(NOISE), resampler.flush()]), first)

    def test_stereo_keeps_its_shape(self):
        resampler = Resampler(24_000, 48_000, 2)
        stereo = np.stack([NOISE, -NOISE], axis=1)
        got = np.concatenate([resampler.feed(stereo), resampler.flush()])
        assert got.shape == (48_000, 2)
        assert np.allclose(got[:, 0], -got[:, 1], atol=1e-6)

    def test_equal_rates_are_untouched(self):
        resampler = Resampler(24_000, 24_000)
        assert resampler.feed(NOISE) is NOISE
        assert len(resampler.flush()) == 0

    def test_keeps_the_pitch(self):
        tone = np.sin(2 * np.pi * 1000 * np.arange(24_000) / 24_000).astype(np.float32)
        resampler = Resampler(24_000, 44_100)
        got = np.concatenate([resampler.feed(tone), resampler.flush()])
        assert np.argmax(np.abs(np.fft.rfft(got))) == 1000

    @pytest.mark.parametrize("rates", [(0, 8000), (8000, -1)])
    def test_impossible_rates(self, rates):
        with pytest.raises(InputError, match="positive"):
            Resampler(*rates)


class TestWavHeader:
    @pytest.mark.parametrize(("width", "channels"), [(2, 1), (2, 2), (3, 1), (3, 2), (4, 1)])
    def test_readers_agree(self, width, channels):
        samples = NOISE[:1001] if channels == 1 else np.stack([NOISE[:1001]] * channels, axis=1)
        data = wav_header(AudioFormat(22_050, channels, width), 1001) + samples_to_pcm(samples, width)
        got, rate = soundfile.read(io.BytesIO(data), dtype="float32")
        assert rate == 22_050
        assert np.abs(got - samples).max() <= (0 if width == 4 else 2.0 ** -(8 * width - 1))
        if width < 4:
            with wave.open(io.BytesIO(data)) as reader:
                assert reader.getparams()[:4] == (channels, width, 22_050, 1001)

    def test_unknown_and_huge_lengths_say_until_the_end(self):
        for frames in (None, 2**31):
            header = wav_header(AudioFormat(), frames)
            assert struct.unpack("<I", header[4:8]) == struct.unpack("<I", header[40:44]) == (0xFFFFFFFF,)
        data = wav_header(AudioFormat(), None) + samples_to_pcm(NOISE)
        assert len(soundfile.read(io.BytesIO(data))[0]) == len(NOISE)

    def test_odd_lengths_count_the_padding_outside(self):
        header = wav_header(AudioFormat(width=3), 3)
        assert struct.unpack("<I", header[40:44]) == (9,)
        assert struct.unpack("<I", header[4:8]) == (36 + 10,)

    def test_unknown_widths(self):
        with pytest.raises(InputError, match="2, 3 or 4"):
            wav_header(AudioFormat(width=1), 0)
