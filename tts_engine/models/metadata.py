"""What the weight files of this model say about themselves. A file that says otherwise is refused."""

from __future__ import annotations

from tts_engine.models.signal import FFT, HOP, MAX_HARMONIC_HZ, SAMPLE_RATE

ACOUSTIC_METADATA = {"format": "sayline-acoustic-1", "sample_rate": str(SAMPLE_RATE)}
VOCODER_METADATA = {
    "format": "sayline-vocoder-1",
    "fft": str(FFT),
    "hop": str(HOP),
    "max_harmonic_hz": f"{MAX_HARMONIC_HZ:.0f}",
    "look_ahead": "1,1,0,0,0,0,0,0",
    "noise": "steady,pitch-synchronous",
}
