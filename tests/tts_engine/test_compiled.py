"""The compiled path: equal to eager torch in float32, close to it in int8, independent of packets and batch, no torch."""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from tests.conftest import DATA
from tts_engine.engine import Engine, EngineConfig
from tts_engine.errors import EngineError, InputError, WeightsError
from tts_engine.expansion import frame_durations
from tts_engine.models.choice import load_model
from tts_engine.models.compiled import CompiledModel, compiled_path
from tts_engine.models.compiling import compile_voice
from tts_engine.models.eager import EagerModel
from tts_engine.models.graphs import constant, input_range
from tts_engine.types import Utterance
from tts_engine.weights import EMBEDDED_VOICE, VoiceManifest, seal

TEXTS = ["Your order has shipped, and it should arrive on Friday.", "您的包裹昨天晚上已经离开仓库。", "我用Python写API。"]


def spoken(engine: Engine, text: str) -> np.ndarray:
    return np.concatenate([chunk.samples for chunk in engine.speak(Utterance(text))])


def engine_with(**config: object) -> Engine:
    return Engine.load(config=EngineConfig(**config))


@pytest.fixture(scope="module")
def eager() -> Engine:
    return engine_with(compile="none")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EMBEDDED_VOICE, tmp_path / "voice"))


@pytest.mark.parametrize("name", ["en_short", "zh", "en_xiaobei_fast"])
def test_float32_reproduces_the_vectors(name: str) -> None:
    model = CompiledModel.load(VoiceManifest.load(), "float32")
    with np.load(DATA / "vectors" / f"{name}.npz") as vector:
        _, log_durations = model.encode(vector["ids"].tolist(), int(vector["speaker"]))
        assert np.abs(log_durations - vector["log_dur"]).max() <= 1e-4


@pytest.mark.parametrize("text", TEXTS)
def test_float32_equals_eager(eager: Engine, text: str) -> None:
    np.testing.assert_allclose(spoken(engine_with(compile="onnx", precision="float32"), text), spoken(eager, text), atol=1e-2)


@pytest.mark.parametrize("text", TEXTS)
def test_int8_packets_are_close_to_float32(text: str) -> None:
    """From the same phonemes, durations and pitch: what differs is far below the speech."""
    engine = engine_with(compile="onnx", precision="float32")
    expected = spoken(engine, text)
    assert isinstance(engine.model, CompiledModel)
    engine.model._sessions["packet"] = CompiledModel.load(engine.voice, "int8")._sessions["packet"]
    assert distance_db(spoken(engine, text), expected, relative_length=0.05) < -15


@pytest.mark.parametrize("name", ["en_long", "zh", "en_xiaobei_fast"])
def test_int8_durations_are_close_to_float32(name: str) -> None:
    with np.load(DATA / "vectors" / f"{name}.npz") as vector:
        ids, speaker, expected = vector["ids"].tolist(), int(vector["speaker"]), vector["log_dur"]
    _, got = CompiledModel.load(VoiceManifest.load(), "int8").encode(ids, speaker)
    difference = frame_durations(got) - frame_durations(expected)
    assert np.abs(difference).max() <= 1
    assert np.count_nonzero(difference) <= max(2, 0.04 * len(ids))
    assert np.abs(got - expected).mean() < 0.02


@pytest.mark.parametrize("text", TEXTS)
def test_bfloat16_says_the_same(eager: Engine, text: str) -> None:
    assert len(spoken(engine_with(precision="bfloat16"), text)) == pytest.approx(len(spoken(eager, text)), rel=0.05)


@pytest.mark.parametrize("count", [1, 2, 33, 150, 1000])
def test_sentences_of_any_length_encode_as_in_eager(eager: Engine, count: int) -> None:
    """Longer ones in pieces."""
    ids = np.random.default_rng(count).integers(1, 100, count).tolist()
    model = CompiledModel.load(eager.voice, "float32")
    for got, expected in zip(model.encode(ids, 1), eager.model.encode(ids, 1), strict=True):
        assert got.shape == expected.shape
        np.testing.assert_allclose(got, expected, atol=1e-4)


def distance_db(got: np.ndarray, expected: np.ndarray, relative_length: float = 0) -> float:
    """The power of the difference, relative to the signal; where the end is cut elsewhere, up to that of the shorter."""
    assert len(got) == pytest.approx(len(expected), rel=relative_length)
    shorter = min(len(got), len(expected))
    got, expected = got[:shorter], expected[:shorter]
    return float(10 * np.log10(np.mean((got - expected) ** 2) / np.mean(expected**2) + 1e-12))


@pytest.mark.parametrize(("precision", "most_db"), [("float32", -60), ("int8", -30)])
def test_packets_and_batches_do_not_change_what_is_heard(precision: str, most_db: float) -> None:
    """The ranges of int8 are fixed, so a frame's result depends neither on its packet nor on the rows beside it: what is
    left is rounding, which may move a value to the next byte."""
    whole = engine_with(precision=precision, chunk_frames=(50,))
    cut = engine_with(precision=precision, chunk_frames=(3, 7, 64))
    for text in TEXTS:
        assert distance_db(spoken(cut, text), spoken(whole, text)) < most_db
    speeches = [whole.begin(Utterance(text)) for text in TEXTS]
    parts: list[list[np.ndarray]] = [[] for _ in speeches]
    while any(not speech.done for speech in speeches):
        going = [i for i, speech in enumerate(speeches) if not speech.done]
        count = min(9, *(whole.wanted_frames(speeches[i]) for i in going))
        for i, chunk in zip(going, whole.step_together([speeches[i] for i in going], count), strict=True):
            parts[i].append(chunk.samples)
    for text, got in zip(TEXTS, parts, strict=True):
        assert distance_db(np.concatenate(got), spoken(whole, text)) < most_db


def test_auto_is_int8_and_needs_no_torch() -> None:
    code = (
        "import sys\n"
        "from tts_engine.engine import Engine\n"
        "from tts_engine.types import Utterance\n"
        "engine = Engine.load()\n"
        "assert engine.model.precision == 'int8'\n"
        "assert sum(len(c.samples) for c in engine.speak(Utterance('Hello. 你好。'))) > 20000\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_eager_speaks_without_the_compiler_of_torch() -> None:
    """Which torch imports, for a second and more, as soon as something is made at random or by a formula without data."""
    code = (
        "import sys\n"
        "from tts_engine.engine import Engine, EngineConfig\n"
        "from tts_engine.types import Utterance\n"
        "engine = Engine.load(config=EngineConfig(compile='none'))\n"
        "assert sum(len(c.samples) for c in engine.speak(Utterance('Hello.'))) > 5000\n"
        "assert 'torch._dynamo' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_a_voice_with_other_weights_is_compiled_anew(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Replaced weights: auto falls back and says what to run; compiling again brings int8 back."""
    path = folder / "vocoder.safetensors"
    metadata = {
        "format": "sayline-vocoder-1",
        "fft": "600",
        "hop": "150",
        "max_harmonic_hz": "5000",
        "look_ahead": "1,1,0,0,0,0,0,0",
        "noise": "steady,pitch-synchronous",
    }
    save_file({name: (array * 0.99).astype(array.dtype) for name, array in load_file(path).items()}, path, metadata)
    seal(folder)
    voice = VoiceManifest.load(folder)
    with pytest.raises(WeightsError, match="sayline compile"):
        load_model(voice, precision="int8")
    with caplog.at_level(logging.WARNING):
        model = load_model(voice)
    assert isinstance(model, CompiledModel)
    assert model.precision == "float32"
    assert "sayline compile" in caplog.text
    assert Engine.compile(folder) == compiled_path(voice)
    again = load_model(VoiceManifest.load(folder))
    assert isinstance(again, CompiledModel)
    assert again.precision == "int8"


def test_a_compiled_file_of_another_version_is_refused(folder: Path) -> None:
    path = compiled_path(VoiceManifest.load(folder))
    save_file(load_file(path), path, {"format": "sayline-compiled-0", "weights": "x"})
    with pytest.raises(WeightsError, match=r"format 'sayline-compiled-0'.*run `sayline compile` again"):
        CompiledModel.load(VoiceManifest.load(folder), "int8")


def test_a_compiled_file_with_another_byte_is_refused(folder: Path) -> None:
    path = compiled_path(VoiceManifest.load(folder))
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(WeightsError, match="altered or is damaged: run `sayline compile` again"):
        CompiledModel.load(VoiceManifest.load(folder), "int8")


@pytest.mark.parametrize("content", [b"", b"x" * 100, b'\x10\x00\x00\x00\x00\x00\x00\x00{"a": 1}        '])
def test_a_damaged_compiled_file_is_refused(folder: Path, content: bytes) -> None:
    compiled_path(VoiceManifest.load(folder)).write_bytes(content)
    with pytest.raises(WeightsError, match=r"compiled\.int8\.safetensors"):
        CompiledModel.load(VoiceManifest.load(folder), "int8")


def test_weights_of_other_shapes_are_refused_by_the_graphs_and_run_in_eager(folder: Path) -> None:
    voice = VoiceManifest.load(folder)
    weights = EagerModel.load(voice).acoustic.state_dict()
    assert weights  # the shapes below belong to this model
    smaller = {name: np.ascontiguousarray(tensor.half()) for name, tensor in weights.items() if not name.startswith("dec.5.")}
    metadata = {"format": "sayline-acoustic-1", "speakers": "heart,xiaobei", "sample_rate": "24000"}
    save_file(smaller, folder / "acoustic.safetensors", metadata)
    seal(folder)
    voice = VoiceManifest.load(folder)
    with pytest.raises(WeightsError, match=r"dec\.5"):
        load_model(voice, precision="float32", compile="onnx")
    assert isinstance(load_model(voice), EagerModel)


@pytest.mark.parametrize(("part", "stack"), [("acoustic", "enc"), ("acoustic", "dec"), ("vocoder", "blocks")])
def test_a_layer_that_the_graphs_do_not_know_is_never_left_out(folder: Path, part: str, stack: str) -> None:
    path = folder / f"{part}.safetensors"
    with safe_open(path, framework="np") as file:
        metadata = file.metadata()
    weights = load_file(path)
    more = {name.replace(f"{stack}.0.", f"{stack}.99."): array for name, array in weights.items()}
    save_file(weights | more, path, metadata)
    seal(folder)
    voice = VoiceManifest.load(folder)
    with pytest.raises(WeightsError, match=rf"{part}\.{stack}\.99.*do not know"):
        load_model(voice, precision="float32", compile="onnx")


def test_a_voice_is_calibrated_with_its_own_speakers(folder: Path) -> None:
    path = folder / "voice.yaml"
    data = yaml.safe_load(path.read_text())
    data["speakers"] = {
        "amy": {"id": 0, "languages": ["en"]},
        "ben": {"id": 1, "languages": ["en"]},
        "wei": {"id": 1, "languages": ["zh", "en"]},
    }
    data["auto"] = {"en": "amy", "zh": "wei"}
    path.write_text(yaml.safe_dump(data))
    spoken: list[tuple[str, bool]] = []
    voice = VoiceManifest.load(folder)
    compile_voice(voice, lambda model, text, name, speed: spoken.append((name, text.isascii())), folder / "other.safetensors")
    assert {name for name, _ in spoken} == {"amy", "ben", "wei"}
    assert all(name == "wei" for name, english in spoken if not english)


@pytest.mark.parametrize(
    ("names", "says"),
    [
        ({"precision": "float16"}, "one of auto, float32, bfloat16, int8"),
        ({"compile": "jit"}, "one of auto, none, onnx, cuda"),
        ({"precision": "int8", "compile": "none"}, "compile='onnx'"),
        ({"precision": "bfloat16", "compile": "onnx"}, "compile='none'"),
        ({"precision": "int8", "compile": "cuda"}, "compile='onnx'"),
    ],
)
def test_names_that_do_not_go_together(names: dict[str, str], says: str) -> None:
    with pytest.raises(InputError, match=says):
        load_model(VoiceManifest.load(), **names)


def test_a_folder_that_cannot_be_written(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="--out"):
        compile_voice(VoiceManifest.load(folder), lambda *_: None, tmp_path / "nowhere" / "x.safetensors")


def test_quantised_constants_stand_for_the_weight() -> None:
    weight = np.random.default_rng(0).standard_normal((5, 7)).astype(np.float32)
    scale = constant("w:scale", weight)
    np.testing.assert_allclose(constant("w:int8", weight).T * scale[:, None], weight, atol=float(scale.max()) / 2 + 1e-6)
    made = input_range(-0.2, 3.0)
    assert -float(made["input_zero"]) * float(made["input_scale"]) == pytest.approx(-0.2, abs=float(made["input_scale"]))
    assert constant("w:transposed", weight).shape == (7, 5)
    assert constant("w:5x1x7", weight).shape == (5, 1, 7)
    taps = np.arange(24, dtype=np.float32).reshape(2, 3, 4)  # [outputs, inputs, width]
    assert constant("w:taps", taps)[2 * 3 + 1, 1] == taps[1, 1, 2]
