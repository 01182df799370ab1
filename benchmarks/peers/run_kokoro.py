"""Kokoro 82M, int8, voice "af_heart", on one thread, with its own stream of batches."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from protocol import Speak, serve


def load() -> tuple[str, Speak]:
    import onnxruntime
    from kokoro_onnx import Kokoro

    folder = Path(sys.argv[1])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(folder / "kokoro.onnx"), options, providers=["CPUExecutionProvider"])
    engine = Kokoro.from_session(session, str(folder / "voices.npz"))
    loop = asyncio.new_event_loop()

    def speak(text: str) -> Iterator[tuple[np.ndarray, int]]:
        stream = engine.create_stream(text, "af_heart")
        while True:
            try:
                yield loop.run_until_complete(anext(stream))
            except StopAsyncIteration:
                return

    return "Kokoro 82M int8, af_heart", speak


serve(load)
