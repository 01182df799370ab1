"""The GPU path: its buffers, padding and float16 on the CPU too, where they must change nothing; graphs where a GPU is."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tts_engine.engine import Engine, EngineConfig
from tts_engine.errors import InputError
from tts_engine.models import choice
from tts_engine.models.choice import gpu_is_there, load_model
from tts_engine.models.cuda import CudaModel, Replayed, padded
from tts_engine.models.eager import EagerModel
from tts_engine.text.frontend import FrontEnd
from tts_engine.types import Utterance
from tts_engine.weights import VoiceManifest

TEXTS = ["The engineer will arrive between two and five this afternoon, and she will call you.", "您好。", "Good morning."]
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")


def engine_of(model: Any) -> Engine:
    voice = VoiceManifest.load()
    return Engine(voice, model, FrontEnd(voice.symbols))


def together(engine: Engine, frames: int = 40) -> list[np.ndarray]:
    """All texts side by side, in steps of ``frames``."""
    speeches = [engine.begin(Utterance(text)) for text in TEXTS]
    parts: list[list[np.ndarray]] = [[] for _ in speeches]
    while going := [i for i, speech in enumerate(speeches) if not speech.done]:
        for i, chunk in zip(going, engine.step_together([speeches[i] for i in going], frames), strict=True):
            parts[i].append(chunk.samples)
    return [np.concatenate(part) for part in parts]


def distance_db(got: np.ndarray, expected: np.ndarray) -> float:
    """The power of the difference, relative to the signal."""
    count = min(len(got), len(expected))
    assert abs(len(got) - len(expected)) <= 2400
    got, expected = got[:count], expected[:count]
    return float(10 * np.log10(np.mean((got - expected) ** 2) / np.mean(expected**2) + 1e-12))


@pytest.fixture(scope="module")
def expected(models: EagerModel) -> list[np.ndarray]:
    return together(engine_of(models))


def test_buffers_and_padding_change_nothing(models: EagerModel, expected: list[np.ndarray]) -> None:
    model = CudaModel(models, "cpu", half=False)
    engine = engine_of(model)
    for _ in range(2):  # the second time all shapes are known
        for samples, wanted in zip(together(engine), expected, strict=True):
            np.testing.assert_allclose(samples, wanted, atol=1e-3)
    assert any(call is not None for call in model._packet.calls.values())
    assert {shapes[0][0] for shapes in model._packet.calls} <= {1, 2, 4}  # rows: sizes of batches


def test_only_the_vocoder_is_in_float16(models: EagerModel, expected: list[np.ndarray]) -> None:
    model = CudaModel(models, "cpu")
    for samples, wanted in zip(together(engine_of(model)), expected, strict=True):
        assert distance_db(samples, wanted) < -30
    assert {parameter.dtype for parameter in models.vocoder.parameters()} == {torch.float32}  # it is a copy
    assert {parameter.dtype for parameter in model._packet._function.acoustic.parameters()} == {torch.float32}
    assert {parameter.dtype for parameter in model._packet._function.vocoder.parameters()} == {torch.float16}


def test_padding_hides_what_it_adds(models: EagerModel) -> None:
    rows = [models.start() for _ in range(3)]
    for row in rows:
        row.frame = 64 * 6  # six blocks are kept
    x = np.zeros((3, 5, models.acoustic.shape.channels + 10), np.float32)
    inputs = models._inputs(rows, x, np.zeros((3, 10), np.float32), [500] * 3)
    made = padded(inputs, models.row_shape.anchors)
    anchors = models.row_shape.anchors
    assert made["x"].shape[0] == 4
    assert (made["anchors"].shape[1], made["anchors"].shape[3]) == (4, 32 * anchors)
    assert (made["mask"][:3, ..., 6 * anchors : 32 * anchors] == -np.inf).all()
    np.testing.assert_array_equal(made["mask"][:3, ..., : 6 * anchors], inputs["mask"][..., : 6 * anchors])
    np.testing.assert_array_equal(made["mask"][:3, ..., 32 * anchors :], inputs["mask"][..., 6 * anchors :])
    assert len(made["closing"]) == 4


def test_few_shapes_are_kept() -> None:
    replayed = Replayed(lambda x: (x * 2,), torch.device("cpu"), most=3)
    for size in (1, 2, 3, 1, 4, 1):
        array = np.arange(size, dtype=np.float32)
        np.testing.assert_array_equal(replayed({"x": array})[0], 2 * array)
    assert [key[0][0] for key in replayed.calls] == [3, 4, 1]
    assert replayed.calls[((1,),)] is not None  # came again
    assert replayed.calls[((4,),)] is None


def test_what_one_call_gives_the_next_does_not_overwrite(models: EagerModel) -> None:
    model = CudaModel(models, "cpu", half=False)
    first = [model.encode([1, 2, 3], 0)[0] for _ in range(3)][-1]
    kept = first.copy()
    model.encode([4, 5, 6], 1)
    np.testing.assert_array_equal(first, kept)


def test_several_threads_may_call_it(models: EagerModel, expected: list[np.ndarray]) -> None:
    engine = engine_of(CudaModel(models, "cpu", half=False))
    spoken: dict[int, list[np.ndarray]] = {}
    threads = [threading.Thread(target=lambda i=i: spoken.setdefault(i, together(engine))) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for samples in (spoken[0], spoken[1]):
        for got, wanted in zip(samples, expected, strict=True):
            np.testing.assert_allclose(got, wanted, atol=1e-3)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_it_says_so() -> None:
    with pytest.raises(InputError, match=r"no CUDA device.*use compile='auto'"):
        load_model(VoiceManifest.load(), compile="cuda")


def test_without_torch_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="needs PyTorch with CUDA"):
        load_model(VoiceManifest.load(), compile="cuda")


@pytest.mark.skipif(sys.platform == "win32", reason="looks for device files")
def test_a_gpu_is_seen_by_its_device(tmp_path: Path) -> None:
    assert not gpu_is_there(tmp_path)
    (tmp_path / "nvidiactl").touch()
    assert not gpu_is_there(tmp_path)
    (tmp_path / "nvidia0").touch()
    assert gpu_is_there(tmp_path)


@pytest.mark.parametrize(("gpu_s", "takes"), [(0.001, "gpu"), (0.1, "cpu"), (None, "cpu")])
def test_auto_takes_the_faster(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, gpu_s: float | None, takes: str
) -> None:
    """A GPU that cannot be used, or is slower, leaves the model on the CPU."""

    def on_gpu(*_: Any) -> str:
        if gpu_s is None:
            raise InputError("torch finds no CUDA device")
        return "gpu"

    monkeypatch.setattr(choice, "gpu_is_there", lambda: True)
    monkeypatch.setattr(choice, "_cuda", on_gpu)
    monkeypatch.setattr(choice, "_compiled", lambda *_: "cpu")
    monkeypatch.setattr(choice, "_packet_s", lambda model: gpu_s if model == "gpu" else 0.01)
    assert load_model(VoiceManifest.load()) == takes
    assert ("the GPU is not used" in caplog.text) == (gpu_s is None)


def test_a_packet_is_timed(models: EagerModel) -> None:
    assert 0 < choice._packet_s(models) < 10


@needs_gpu
@pytest.mark.parametrize(("precision", "most_db"), [("float32", -40), ("auto", -30)])
def test_on_a_gpu_it_equals_the_cpu(expected: list[np.ndarray], precision: Any, most_db: float) -> None:
    engine = Engine.load(config=EngineConfig(precision=precision, compile="cuda"))
    for _ in range(3):  # eager, captured, replayed
        for samples, wanted in zip(together(engine), expected, strict=True):
            assert distance_db(samples, wanted) < most_db
    assert any(call is not None and call._graph is not None for call in engine.model._packet.calls.values())
