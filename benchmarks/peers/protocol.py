"""What every runner shares: it loads its engine, then answers each line of JSON with the times it took.

Standard library and numpy only, since each runner lives in the peer's own environment.

    → {"text": "Good morning."}
    ← {"first_audible_s": 0.021, "total_s": 0.1, "audio_s": 1.3}

*First audible*: from the call with the text until the piece with the first sample above -50 dBFS is there.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable

for _name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[_name] = "1"
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import numpy as np  # noqa: E402

AUDIBLE = 10 ** (-50 / 20)
Speak = Callable[[str], Iterable["tuple[np.ndarray, int]"]]


def serve(load: Callable[[], tuple[str, Speak]]) -> None:
    """``load`` gives a description and a function from a text to pieces of (float samples in [-1, 1], their rate)."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what the engine prints goes to the standard error
    started_s = time.perf_counter()
    about, speak = load()
    for text in ("A first sentence, to warm up.", "And a second one, a little longer than the first one was."):
        _measure(speak, text)
    answers.write(json.dumps({"about": about, "load_s": time.perf_counter() - started_s}) + "\n")
    for line in sys.stdin:
        answers.write(json.dumps(_measure(speak, json.loads(line)["text"])) + "\n")


def _measure(speak: Speak, text: str) -> dict[str, float]:
    started_s = time.perf_counter()
    first_s = audio_s = 0.0
    for samples, rate in speak(text):
        if not first_s and len(samples) and np.abs(samples).max() > AUDIBLE:
            first_s = time.perf_counter() - started_s
        audio_s += len(samples) / rate
    return {"first_audible_s": first_s, "total_s": time.perf_counter() - started_s, "audio_s": audio_s}
