"""Voice activity detection: how likely a short frame holds speech."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tts_engine.types import Samples
from voice_agent.audio import samples_to_pcm
from voice_agent.ears.config import RATE
from voice_agent.errors import InputError, MissingExtraError

__all__ = ["SileroVad", "Vad", "WebRtcVad"]


class Vad(Protocol):
    """A detector that is given one frame after another."""

    @property
    def frame_samples(self) -> int:
        """Samples of 16 kHz in a frame."""
        ...

    def feed(self, frame: Samples) -> float:
        """The probability, 0 to 1, that this frame is speech. ``frame``: [frame_samples] float32, 16 kHz mono."""
        ...

    def reset(self) -> None:
        """Forget what was heard."""
        ...


class WebRtcVad:
    """The Gaussian-mixture detector of WebRTC (webrtcvad): answers 0 or 1."""

    def __init__(self, mode: int = 2, frame_s: float = 0.01) -> None:
        """``mode``: 0 (lets most through) to 3 (strictest). ``frame_s``: 0.01, 0.02 or 0.03."""
        if mode not in (0, 1, 2, 3) or frame_s not in (0.01, 0.02, 0.03):
            raise InputError(f"webrtcvad has modes 0 to 3 and frames of 0.01, 0.02 or 0.03 s, not {mode!r} and {frame_s!r}")
        self._mode = mode
        self._frame_samples = round(frame_s * RATE)
        self.reset()

    @property
    def frame_samples(self) -> int:
        return self._frame_samples

    def feed(self, frame: Samples) -> float:
        return float(self._vad.is_speech(samples_to_pcm(frame), RATE))

    def reset(self) -> None:
        import webrtcvad

        self._vad: Any = webrtcvad.Vad(self._mode)


class SileroVad:
    """The recurrent network of snakers4/silero-vad (MIT), run by ONNX Runtime: better in noise, slower.

    The package ``silero-vad`` carries the model; torch is not used. A frame has 32 ms.
    """

    _CONTEXT = 64  # samples of the frame before that the network wants in front of each frame

    def __init__(self) -> None:
        self._session = _silero_session()
        self._context: Samples
        self._state: NDArray[np.float32]
        self.reset()

    @property
    def frame_samples(self) -> int:
        return 512

    def feed(self, frame: Samples) -> float:
        window = np.concatenate([self._context, frame]).astype(np.float32)[None]
        probability, self._state = self._session.run(
            None, {"input": window, "state": self._state, "sr": np.array(RATE, dtype=np.int64)}
        )
        self._context = window[0, -self._CONTEXT :]
        return float(probability[0, 0])

    def reset(self) -> None:
        self._context = np.zeros(self._CONTEXT, dtype=np.float32)
        self._state = np.zeros((2, 1, 128), dtype=np.float32)


def _silero_session() -> Any:
    """The model inside the installed package, found without importing it, which would import torch."""
    from importlib.util import find_spec
    from pathlib import Path

    import onnxruntime

    spec = find_spec("silero_vad")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError("SileroVad needs the package that carries its model: pip install --no-deps silero-vad")
    model = Path(spec.submodule_search_locations[0]) / "data" / "silero_vad.onnx"
    if not model.exists():
        raise MissingExtraError(f"{model} is missing: pip install --no-deps --force-reinstall silero-vad")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(str(model), sess_options=options, providers=["CPUExecutionProvider"])
