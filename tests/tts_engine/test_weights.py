"""A voice folder is checked before anything sounds."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tts_engine.errors import VoiceError, WeightsError
from tts_engine.models.compiled import CompiledModel
from tts_engine.models.eager import EagerModel
from tts_engine.weights import EMBEDDED_VOICE, VoiceManifest, seal


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(EMBEDDED_VOICE, tmp_path / "voice"))


def test_the_embedded_voice_is_whole() -> None:
    voice = VoiceManifest.load()
    for name in voice.files:
        voice.read(name)
    assert voice.symbols[" "] == 16


def test_truncated_file(folder: Path) -> None:
    path = folder / "acoustic.safetensors"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(WeightsError, match="truncated: 1000 bytes"):
        EagerModel.load(VoiceManifest.load(folder))


def test_altered_file(folder: Path) -> None:
    path = folder / "vocoder.safetensors"
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(WeightsError, match="was altered"):
        EagerModel.load(VoiceManifest.load(folder))


def test_missing_file(folder: Path) -> None:
    (folder / "vocoder.safetensors").unlink()
    with pytest.raises(WeightsError, match="cannot read"):
        EagerModel.load(VoiceManifest.load(folder))


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match=r"no voice folder"):
        VoiceManifest.load(tmp_path / "nothing")


@pytest.mark.parametrize("content", ["[", "just text", "name: x", "name: x\nsample_rate: 1\nspeakers: 3\nauto: {}\nfiles: {}"])
def test_bad_manifest_names_the_file(folder: Path, content: str) -> None:
    (folder / "voice.yaml").write_text(content)
    with pytest.raises(WeightsError, match=r"voice\.yaml"):
        VoiceManifest.load(folder)


@pytest.mark.parametrize("rate", ["22050", "fast"])
def test_a_manifest_with_another_sample_rate_is_refused(folder: Path, rate: str) -> None:
    manifest = folder / "voice.yaml"
    manifest.write_text(manifest.read_text().replace("sample_rate: 24000", f"sample_rate: {rate}"))
    with pytest.raises(WeightsError, match=rf"voice\.yaml: sample_rate is .*{rate}"):
        VoiceManifest.load(folder)


def test_weights_of_another_model_are_refused(folder: Path) -> None:
    shutil.copy(folder / "vocoder.safetensors", folder / "acoustic.safetensors")
    seal(folder)
    with pytest.raises(WeightsError, match="sayline-acoustic-1"):
        EagerModel.load(VoiceManifest.load(folder))


def test_not_a_safetensors_file(folder: Path) -> None:
    (folder / "acoustic.safetensors").write_bytes(b"x" * 500)
    seal(folder)
    with pytest.raises(WeightsError, match="no safetensors file"):
        EagerModel.load(VoiceManifest.load(folder))


def test_replaced_weights_are_accepted_after_sealing(folder: Path) -> None:
    """Other values of the same shapes load: nothing depends on values."""
    from safetensors.torch import load_file, save_file

    path = folder / "acoustic.safetensors"
    tensors = {name: tensor * 0.5 for name, tensor in load_file(path).items()}
    save_file(tensors, path, {"format": "sayline-acoustic-1", "speakers": "heart,xiaobei", "sample_rate": "24000"})
    seal(folder)
    assert EagerModel.load(VoiceManifest.load(folder)).acoustic.shape.mels == 100


def test_voices() -> None:
    voice = VoiceManifest.load()
    assert voice.speaker("auto", "en").name == "heart"
    assert voice.speaker("auto", "zh").name == "xiaobei"
    assert voice.speaker("xiaobei", "en").id == 1
    with pytest.raises(VoiceError, match="there are: auto, heart, xiaobei"):
        voice.speaker("bella", "en")
    with pytest.raises(VoiceError, match="does not speak Chinese; use auto or xiaobei"):
        voice.speaker("heart", "zh")


def with_manifest(folder: Path, change: Callable[[dict[str, Any]], object]) -> VoiceManifest:
    path = folder / "voice.yaml"
    data = yaml.safe_load(path.read_text())
    change(data)
    path.write_text(yaml.safe_dump(data))
    return VoiceManifest.load(folder)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda data: data["auto"].update(en="bob"), "auto names 'bob' for 'en'"),
        (lambda data: data["auto"].update(zh="heart"), "auto names 'heart' for 'zh'"),
        (lambda data: data["auto"].update(fr="heart"), "auto names 'heart' for 'fr'"),
        (lambda data: data.update(auto=[]), "a speaker for each language"),
        (lambda data: data["files"].pop("vocoder.safetensors"), "files lack vocoder"),
    ],
)
def test_a_manifest_that_does_not_fit_together_is_refused(
    folder: Path, change: Callable[[dict[str, Any]], object], says: str
) -> None:
    with pytest.raises(WeightsError, match=says):
        with_manifest(folder, change)


@pytest.mark.parametrize("speaker", [-1, 2])
@pytest.mark.parametrize("model", [EagerModel, CompiledModel])
def test_a_speaker_that_the_weights_do_not_have_is_refused(
    folder: Path, model: type[EagerModel | CompiledModel], speaker: int
) -> None:
    voice = with_manifest(folder, lambda data: data["speakers"]["heart"].update(id=speaker))
    with pytest.raises(WeightsError, match=f"'heart' has the id {speaker}, the weights 0 to 1"):
        model.load(voice)


def test_a_voice_of_one_language_says_so(folder: Path) -> None:
    voice = with_manifest(folder, lambda data: (data["auto"].pop("zh"), data["speakers"].pop("xiaobei")))
    assert voice.speaker("auto", "en").name == "heart"
    with pytest.raises(VoiceError, match=r"has no voice for Chinese$"):
        voice.speaker("auto", "zh")
    with pytest.raises(VoiceError, match=r"'heart' does not speak Chinese$"):
        voice.speaker("heart", "zh")
