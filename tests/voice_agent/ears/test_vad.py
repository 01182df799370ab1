"""Detectors: what they take for speech, and how they fail."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from voice_agent.ears import SileroVad, WebRtcVad
from voice_agent.errors import InputError, MissingExtraError


def vowel(seconds: float) -> np.ndarray:
    """Pulses of 120 Hz through two resonances."""
    count = round(seconds * 16_000)
    pulses = np.zeros(count)
    pulses[:: 16_000 // 120] = 1.0
    time_s = np.arange(400) / 16_000
    response = sum(np.exp(-time_s * 400) * np.sin(2 * np.pi * hz * time_s) for hz in (600, 1100))
    return (0.3 * np.convolve(pulses, response)[:count]).astype(np.float32)


@pytest.mark.parametrize("mode", [0, 1, 2, 3])
@pytest.mark.parametrize("frame_s", [0.01, 0.02, 0.03])
def test_webrtc_tells_a_voice_from_silence(mode: int, frame_s: float) -> None:
    vad = WebRtcVad(mode, frame_s)
    count = vad.frame_samples
    assert count == round(16_000 * frame_s)
    voice = vowel(0.6)
    frames = [voice[i : i + count] for i in range(0, len(voice) - count, count)]
    assert sum(map(vad.feed, frames)) > 0.8 * len(frames)
    vad.reset()
    assert not any(vad.feed(np.zeros(count, dtype=np.float32)) for _ in range(20))


def test_settings_that_do_not_exist() -> None:
    with pytest.raises(InputError, match="modes 0 to 3"):
        WebRtcVad(4)
    with pytest.raises(InputError, match="frames of"):
        WebRtcVad(1, 0.05)


def test_silero_names_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "silero_vad", None)
    with pytest.raises(MissingExtraError, match="pip install --no-deps silero-vad"):
        SileroVad()


def test_silero_tells_a_voice_from_silence() -> None:
    pytest.importorskip("silero_vad", reason="the package silero-vad is not installed", exc_type=ImportError)
    from tests.voice_agent.ears.sounds import missing, spoken

    vad = SileroVad()
    if missing():
        pytest.skip(missing())
    voice = spoken("How long does it take to get there?")
    frames = [voice[i : i + 512] for i in range(0, len(voice) - 512, 512)]
    assert np.mean([vad.feed(frame) for frame in frames]) > 0.5
    vad.reset()
    assert max(vad.feed(np.zeros(512, dtype=np.float32)) for _ in range(20)) < 0.3
