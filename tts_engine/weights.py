"""Voice folders on disk: read with size and SHA-256 checked, mapped into memory, safetensors only (no pickle).

A voice is a folder with ``voice.yaml`` (the manifest), ``acoustic.safetensors``, ``vocoder.safetensors`` and the symbol
tables. ``python -m tts_engine.weights FOLDER`` writes sizes and hashes into the manifest after its files were replaced.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

import numpy as np
import yaml
from numpy.typing import NDArray

from tts_engine.errors import VoiceError, WeightsError
from tts_engine.types import AudioFormat, Language

EMBEDDED_VOICE = Path(__file__).parent / "voices" / "embedded"
MANIFEST = "voice.yaml"
NEEDED = ("acoustic.safetensors", "vocoder.safetensors", "phonemes.json")
"""Files that every voice has."""
DTYPES = {"F16": np.float16, "F32": np.float32, "I8": np.int8, "U8": np.uint8}
"""The number formats of safetensors that weights come in."""


@dataclass(frozen=True, slots=True)
class Speaker:
    """One speaker of a voice: its row in the speaker table and the languages it speaks, its own first."""

    name: str
    id: int
    languages: tuple[Language, ...]
    description: str = ""


@dataclass(frozen=True, slots=True)
class VoiceFile:
    """What the manifest says of a file: size in bytes and SHA-256."""

    size: int
    sha256: str


@dataclass(frozen=True)
class VoiceManifest:
    """A voice folder's ``voice.yaml``."""

    folder: Path
    name: str
    sample_rate: int
    speakers: Mapping[str, Speaker]
    auto: Mapping[Language, str]
    files: Mapping[str, VoiceFile]

    @staticmethod
    def load(folder: Path = EMBEDDED_VOICE) -> VoiceManifest:
        """Reads the manifest. Raises WeightsError that names the file and the key."""
        path = folder / MANIFEST
        try:
            data = yaml.safe_load(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise WeightsError(f"{folder} is no voice folder: it has no {MANIFEST}") from None
        except yaml.YAMLError as error:
            raise WeightsError(f"{path} is not valid YAML: {error}") from error
        allowed = {field.name for field in fields(VoiceManifest)} - {"folder"}
        if not isinstance(data, dict) or set(data) != allowed:
            found = sorted(data) if isinstance(data, dict) else type(data).__name__
            raise WeightsError(f"{path}: needs exactly the keys {sorted(allowed)}, found {found}")
        try:
            speakers = {
                name: Speaker(name, int(row["id"]), tuple(row["languages"]), str(row.get("description", "")))
                for name, row in data["speakers"].items()
            }
            files = {name: VoiceFile(int(row["size"]), str(row["sha256"])) for name, row in data["files"].items()}
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise WeightsError(f"{path}: speakers need id and languages, files need size and sha256 ({error!r})") from error
        for name in NEEDED:
            if name not in files:
                raise WeightsError(f"{path}: files lack {name}")
        if data["sample_rate"] != AudioFormat().sample_rate:
            raise WeightsError(
                f"{path}: sample_rate is {data['sample_rate']!r}: a voice is made for {AudioFormat().sample_rate}"
            )
        auto = data["auto"]
        if not isinstance(auto, dict) or not auto:
            raise WeightsError(f"{path}: auto needs the name of a speaker for each language")
        for language, name in auto.items():
            if language not in get_args(Language) or name not in speakers or language not in speakers[name].languages:
                raise WeightsError(f"{path}: auto names {name!r} for {language!r}, which is no speaker of that language")
        return VoiceManifest(folder, data["name"], data["sample_rate"], speakers, auto, files)

    def check(self, voice: str) -> None:
        """Raises VoiceError if no speaker is called ``voice`` ("auto" is always there)."""
        if voice != "auto" and voice not in self.speakers:
            raise VoiceError(f"unknown voice {voice!r}; there are: auto, {', '.join(self.speakers)}")

    def speaker(self, voice: str, language: Language) -> Speaker:
        """The speaker called ``voice`` ("auto": by language). Raises VoiceError if it is unknown or cannot speak it."""
        able = [other.name for other in self.speakers.values() if language in other.languages]
        named = {"en": "English", "zh": "Chinese"}[language]
        if voice == "auto" and language not in self.auto:
            raise VoiceError(f"{self.folder} has no voice for {named}" + (f"; use {' or '.join(able)}" if able else ""))
        self.check(voice)
        name = self.auto[language] if voice == "auto" else voice
        if name not in able:
            others = ["auto", *able] if language in self.auto else able
            raise VoiceError(f"voice {name!r} does not speak {named}" + (f"; use {' or '.join(others)}" if others else ""))
        return self.speakers[name]

    def check_speakers(self, rows: int) -> None:
        """Raises WeightsError for a speaker that is not among the ``rows`` of the speaker table."""
        for speaker in self.speakers.values():
            if not 0 <= speaker.id < rows:
                where = self.folder / MANIFEST
                raise WeightsError(f"{where}: speaker {speaker.name!r} has the id {speaker.id}, the weights 0 to {rows - 1}")

    def read(self, name: str) -> Path:
        """The path of a file of the voice, after its size and hash were checked. Raises WeightsError if they differ."""
        path = self.folder / name
        expected = self.files[name]
        try:
            size = path.stat().st_size
            if size != expected.size:
                state = "truncated" if size < expected.size else "too long"
                raise WeightsError(f"{path} is {state}: {size} bytes instead of {expected.size}; install Sayline again")
            found = _sha256(path)
        except OSError as error:
            raise WeightsError(f"cannot read {path}: {error.strerror}; install Sayline again") from error
        if found != expected.sha256:
            raise WeightsError(
                f"{path} was altered: SHA-256 {found[:12]}… instead of {expected.sha256[:12]}…; install Sayline again, or "
                f"run `python -m tts_engine.weights {self.folder}` if you replaced it on purpose"
            )
        return path

    @cached_property
    def symbols(self) -> dict[str, int]:
        """Phoneme symbol -> id."""
        table: dict[str, int] = json.loads(self.read("phonemes.json").read_text(encoding="utf-8"))
        return table


def load_arrays(path: Path, expected: Mapping[str, str] | None = None) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """All tensors of a safetensors file (name -> array), as views of a memory map, and its metadata.

    ``expected`` is metadata that the code is written for. Raises WeightsError if the file is of another format or damaged.
    """
    try:
        mapped = np.memmap(path, np.uint8, mode="r")
        size = int.from_bytes(mapped[:8].tobytes(), "little")
        header: dict[str, Any] = json.loads(mapped[8 : 8 + size].tobytes())
        metadata: dict[str, str] = header.pop("__metadata__", {})
        data = mapped[8 + size :]
        arrays = {
            name: data[slice(*entry["data_offsets"])].view(DTYPES[entry["dtype"]]).reshape(entry["shape"])
            for name, entry in header.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise WeightsError(f"{path} is no safetensors file, or one that is damaged ({error!r})") from error
    except OSError as error:
        raise WeightsError(f"cannot read {path}: {error.strerror}; install Sayline again") from error
    for key, value in (expected or {}).items():
        if metadata.get(key) != value:
            raise WeightsError(f"{path}: {key} is {metadata.get(key)!r}, this version of Sayline reads {value!r}")
    return arrays, metadata


def digest(arrays: Mapping[str, NDArray[Any]]) -> str:
    """SHA-256 over the names, types, shapes and bytes of arrays."""
    found = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        found.update(f"{name} {array.dtype.str} {array.shape};".encode())
        found.update(np.ascontiguousarray(array).data)
    return found.hexdigest()


def seal(folder: Path) -> None:
    """Writes the sizes and hashes of the files of a voice into its manifest."""
    path = folder / MANIFEST
    data: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    data["files"] = {
        name: {"size": (folder / name).stat().st_size, "sha256": _sha256(folder / name)} for name in sorted(data["files"])
    }
    path.write_text(yaml.safe_dump(data, sort_keys=False, allow_unicode=True), encoding="utf-8")


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    seal(Path(sys.argv[1]) if len(sys.argv) > 1 else EMBEDDED_VOICE)
