"""Which arithmetic a voice is computed with: chosen by name, or the fastest that is there."""

from __future__ import annotations

import importlib.util
import logging
from typing import Literal, get_args

from tts_engine.errors import InputError, WeightsError
from tts_engine.models.base import SpeechModel
from tts_engine.weights import VoiceManifest

Precision = Literal["auto", "float32", "bfloat16", "int8"]
Compile = Literal["auto", "none", "onnx"]
FORMS = ("eager float32", "eager bfloat16", "onnx float32", "onnx int8")
"""All forms, the slowest first (benchmarks/precision.py)."""
_log = logging.getLogger(__name__)


def load_model(voice: VoiceManifest, precision: Precision = "auto", compile: Compile = "auto", threads: int = 1) -> SpeechModel:
    """The model of a voice.

    ``compile``: "onnx" runs exported graphs in ONNX Runtime and needs no torch, "none" is eager torch. ``precision``: "int8"
    quantises the products with weights (onnx, and the voice has to be compiled), "bfloat16" computes them in bfloat16 (eager
    only). "auto" is int8 in ONNX Runtime, the fastest wherever measured (benchmarks/precision.py); else float32 there; and
    eager float32 where ONNX Runtime is missing or the voice does not fit its graphs. Raises InputError for names that do not
    go together, and WeightsError.
    """
    for name, value, allowed in (("precision", precision, get_args(Precision)), ("compile", compile, get_args(Compile))):
        if value not in allowed:
            raise InputError(f"{name} must be one of {', '.join(allowed)}, not {value!r}")
    if compile == "onnx" and precision == "bfloat16":
        raise InputError("bfloat16 is computed by eager torch: use compile='none', or another precision")
    if compile == "none" and precision == "int8":
        raise InputError("int8 is computed by ONNX Runtime: use compile='onnx', or another precision")
    if importlib.util.find_spec("onnxruntime") is None and (compile == "onnx" or precision == "int8"):
        raise InputError("this needs ONNX Runtime: pip install onnxruntime")
    if compile == "none" or precision == "bfloat16" or importlib.util.find_spec("onnxruntime") is None:
        return _eager(voice, precision, threads)
    return _compiled(voice, precision, compile, threads)


def is_slower(form: str, than: str) -> bool:
    """Whether one form computes more slowly than the other; False for one that is not known."""
    return form in FORMS and than in FORMS and FORMS.index(form) < FORMS.index(than)


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
