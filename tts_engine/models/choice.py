"""Which arithmetic a voice is computed with: chosen by name, or the fastest that is there."""

from __future__ import annotations

import importlib.util
import logging
import sys
import time
from ctypes.util import find_library
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from tts_engine.errors import InputError, WeightsError
from tts_engine.expansion import MELS_PER_FRAME
from tts_engine.models.base import SpeechModel
from tts_engine.models.signal import MEL_HOP
from tts_engine.weights import VoiceManifest

Precision = Literal["auto", "float32", "bfloat16", "int8"]
Compile = Literal["auto", "none", "onnx", "cuda"]
CPU_FORMS = ("eager float32", "eager bfloat16", "onnx float32", "onnx int8")
"""The slowest first (benchmarks/precision.py). GPU forms have no place among them: which is faster is timed."""
_TRIALS = 5
_TRIAL_FRAMES = 20
_log = logging.getLogger(__name__)


def load_model(voice: VoiceManifest, precision: Precision = "auto", compile: Compile = "auto", threads: int = 1) -> SpeechModel:
    """The model of a voice.

    ``compile``: "onnx" runs exported graphs in ONNX Runtime and needs no torch, "none" is eager torch, "cuda" runs on an NVIDIA
    GPU. ``precision``: "int8" quantises the products with weights (onnx, and the voice has to be compiled), "bfloat16" computes
    them in bfloat16 (eager only); on a GPU "auto" computes the vocoder's body in float16. "auto" is int8 in ONNX Runtime, the
    fastest on a CPU wherever measured (benchmarks/precision.py); else float32 there; and eager float32 where ONNX Runtime is
    missing or the voice does not fit its graphs. Where there is a GPU both are timed, and the faster one is kept. Raises
    InputError for names that do not go together or a GPU that is not there, and WeightsError.
    """
    check_names(precision, compile)
    if compile == "cuda":
        return _cuda(voice, precision)
    if importlib.util.find_spec("onnxruntime") is None and (compile == "onnx" or precision == "int8"):
        raise InputError("this needs ONNX Runtime: pip install onnxruntime")
    if compile == "none" or precision == "bfloat16" or importlib.util.find_spec("onnxruntime") is None:
        model = _eager(voice, precision, threads)
    else:
        model = _compiled(voice, precision, compile, threads)
    if compile == "auto" and precision in ("auto", "float32") and gpu_is_there():
        return _faster(model, voice, precision)
    return model


def check_names(precision: str, compile: str) -> None:
    """Raises InputError for names that there are not, or that do not go together."""
    for name, value, allowed in (("precision", precision, get_args(Precision)), ("compile", compile, get_args(Compile))):
        if value not in allowed:
            raise InputError(f"{name} must be one of {', '.join(allowed)}, not {value!r}")
    if compile in ("onnx", "cuda") and precision == "bfloat16":
        raise InputError("bfloat16 is computed by eager torch: use compile='none', or another precision")
    if compile in ("none", "cuda") and precision == "int8":
        raise InputError("int8 is computed by ONNX Runtime: use compile='onnx', or another precision")


def is_slower(form: str, than: str) -> bool:
    """Whether one form computes more slowly than the other on the CPU; False where one of them runs elsewhere."""
    return form in CPU_FORMS and than in CPU_FORMS and CPU_FORMS.index(form) < CPU_FORMS.index(than)


def gpu_is_there(devices: Path = Path("/dev")) -> bool:
    """Whether the system has an NVIDIA GPU and torch is installed; imports nothing, so it says little about either."""
    if importlib.util.find_spec("torch") is None:
        return False
    return any(devices.glob("nvidia[0-9]*")) or (sys.platform == "win32" and find_library("nvcuda") is not None)


def _faster(model: SpeechModel, voice: VoiceManifest, precision: Precision) -> SpeechModel:
    """The model itself, or the voice on the GPU if it makes a packet of one row in less time there."""
    try:
        other = _cuda(voice, precision)
        return other if _packet_s(other) < _packet_s(model) else model
    except (InputError, RuntimeError) as error:
        _log.warning("the GPU is not used: %s", error)
        return model


def _packet_s(model: SpeechModel) -> float:
    """The least seconds that a packet of one row takes."""
    frames = _TRIAL_FRAMES
    encoded, _ = model.encode([1] * 8, 0)
    x = np.zeros((1, frames, encoded.shape[1] + 10), np.float32)
    f0 = np.zeros((1, MELS_PER_FRAME * frames), np.float32)
    noise = np.zeros((1, MEL_HOP * MELS_PER_FRAME * frames), np.float32)
    took_s = []
    for _ in range(_TRIALS):
        started_s = time.perf_counter()
        model.packet([model.start()], x, f0, noise, [frames])
        took_s.append(time.perf_counter() - started_s)
    return min(took_s)


def _cuda(voice: VoiceManifest, precision: Precision) -> SpeechModel:
    if importlib.util.find_spec("torch") is None:
        raise InputError("compile='cuda' needs PyTorch with CUDA: see https://pytorch.org for how to install it")
    from tts_engine.models.cuda import CudaModel

    return CudaModel.load(voice, half=precision == "auto")


def _compiled(voice: VoiceManifest, precision: Precision, compile: Compile, threads: int) -> SpeechModel:
    from tts_engine.models.compiled import CompiledModel

    try:
        if precision != "float32":
            return CompiledModel.load(voice, "int8", threads)
    except WeightsError as error:
        if precision == "int8":
            raise
        _log.warning("computing in float32, which is slower: %s", error)
    try:
        return CompiledModel.load(voice, "float32", threads)
    except WeightsError as error:
        if compile == "onnx":
            raise
        model = _eager(voice, precision, threads)  # its error, if the weights themselves are bad, says more
        _log.warning("using eager torch, which is slower: %s", error)
        return model


def _eager(voice: VoiceManifest, precision: Precision, threads: int) -> SpeechModel:
    from tts_engine.models.eager import EagerModel

    return EagerModel.load(voice, threads, bfloat16=precision == "bfloat16")
