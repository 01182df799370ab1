"""Compiles a voice: measures what ranges its int8 products need, and writes the compiled file."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from tts_engine.errors import EngineError
from tts_engine.expansion import Floats
from tts_engine.models.base import SpeechModel
from tts_engine.models.compiled import (
    FORMAT,
    PRECISIONS,
    CompiledModel,
    compiled_path,
    fingerprint,
    named_weights,
    references_of,
)
from tts_engine.models.graphs import INPUT_FORMS, WEIGHT_FORMS, constant, input_range
from tts_engine.models.rows import PacketInputs
from tts_engine.weights import VoiceManifest, digest

SPEEDS = (1.0, 0.8, 1.25)
SENTENCES = Path(__file__).with_name("calibration.yaml")

Speak = Callable[[SpeechModel, str, str, float], None]
"""Speaks a text with a voice's name at a speed, through a model."""


class CalibratingModel(CompiledModel):
    """Float32, and keeps the least and the greatest input that each quantised product has seen."""

    ranges: dict[str, tuple[float, float]]

    def _network(self, inputs: PacketInputs) -> Mapping[str, Floats]:
        session = self._sessions["packet"]
        names = [output.name for output in session.get_outputs()]
        values = session.run(None, inputs)
        for output, value in zip(names, values, strict=True):
            base, _, side = output.partition(":")
            low, high = self.ranges.get(base, (0.0, 0.0))
            if side == "low":
                self.ranges[base] = (min(low, float(value)), high)
            elif side == "high":
                self.ranges[base] = (low, max(high, float(value)))
        return self._named([v for name, v in zip(names, values, strict=True) if ":" not in name], len(inputs["x"]))


def compile_voice(voice: VoiceManifest, speak: Speak, path: Path | None = None) -> Path:
    """Writes the compiled file of a voice; gives its path. It appears whole, under its name, or not at all.

    Speaks the calibration sentences with ``speak``. Raises WeightsError for damaged weights and EngineError if the file cannot
    be written.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    path = path or compiled_path(voice)
    weights = named_weights(voice)
    model = CalibratingModel(weights, "calibrate")
    model.ranges = {}
    for language, texts in yaml.safe_load(SENTENCES.read_text(encoding="utf-8")).items():
        # speakers take turns, those whose own language it is if there are any
        able = [speaker for speaker in voice.speakers.values() if language in speaker.languages]
        names = [speaker.name for speaker in able if speaker.languages[0] == language] or [speaker.name for speaker in able]
        for i, text in enumerate(texts if names else ()):
            speak(model, text, names[i % len(names)], SPEEDS[i % len(SPEEDS)])
    made: dict[str, NDArray[Any]] = {}
    for reference in sorted({reference for graph in PRECISIONS for reference in references_of(graph, "int8")}):
        name, _, form = reference.partition(":")
        if form in INPUT_FORMS:
            made[reference] = input_range(*model.ranges.get(name, (0.0, 0.0)))[form]
        elif form in WEIGHT_FORMS:
            made[reference] = constant(reference, weights[name].astype(np.float32))
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        save_file(made, unfinished, {"format": FORMAT, "weights": fingerprint(voice), "content": digest(made)})
        unfinished.chmod(0o644)
        unfinished.replace(path)
    except (OSError, SafetensorError) as error:
        raise EngineError(f"cannot write {path}: {error}; name another place with --out") from error
    finally:
        unfinished.unlink(missing_ok=True)
    return path
