"""Compile the English lexicon: ``python -m tts_engine.training.build_lexicon misaki-0.9.4-py3-none-any.whl``.

The source is the Apache-2.0 data in PyPI's ``misaki`` wheel (``us_gold.json``, ``us_silver.json``), with our own
additions. Words that the rules of ``tts_engine.text.inflection_en`` derive from kept ones are left out.
"""

from __future__ import annotations

import hashlib
import json
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from tts_engine.text.inflection_en import inflected
from tts_engine.text.lexicon_en import LONGEST_WORD, Word, write_lexicon

WHEEL = "misaki-0.9.4-py3-none-any.whl"
WHEEL_SHA256 = "90e2eeb169786c014c429e5058d2ea6bcd02d651f2a24450ba6c9ffc0f8da15a"
SILVER, GOLD = "us_silver.json", "us_gold.json"
ADDITIONS = Path(__file__).parent / "lexicon_en.yaml"
TARGET = Path(__file__).parent.parent / "text" / "data" / "lexicon_en.bin"

_USES = {"NOUN": "N", "VERB": "V", "ADJ": "J", "ADV": "R", "DT": "D", "None": "F", "VBD": "P"}


def read_source(wheel: Path, files: Sequence[str] = (SILVER, GOLD)) -> dict[str, Word]:
    """The words of files of the wheel, in the voice's symbols; where several have a word the last one counts."""
    if hashlib.sha256(wheel.read_bytes()).hexdigest() != WHEEL_SHA256:
        raise SystemExit(f"{wheel} is not {WHEEL}: get it with `pip download --no-deps misaki==0.9.4`")
    words: dict[str, Word] = {}
    with zipfile.ZipFile(wheel) as archive:
        for name in files:
            raw: dict[str, Any] = json.loads(archive.read(f"misaki/data/{name}"))
            words |= {key: _word(value) for key, value in raw.items() if key.isascii() and len(key) <= LONGEST_WORD}
    return words


def read_additions(path: Path = ADDITIONS) -> dict[str, Word]:
    """Our own words, from YAML."""
    raw = yaml.safe_load(path.read_text(encoding="utf-8"))["words"]
    return {
        key: Word(value["default"], {use: sound for use, sound in value.items() if use != "default"})
        for key, value in raw.items()
    }


def without_derivable(words: dict[str, Word]) -> dict[str, Word]:
    """The words that the rules do not give, taken from the shortest on, so that stems come before what they yield."""
    kept: dict[str, Word] = {}

    def find(word: str) -> Word | None:
        return kept.get(word) or kept.get(word.capitalize())

    for key in sorted(words, key=lambda word: (len(word), word)):
        shadowed = key != key.lower() or key.capitalize() in words
        if shadowed or inflected(key, find) != words[key]:
            kept[key] = words[key]
    for key, word in words.items():
        if key not in kept and inflected(key, find) != word:
            raise AssertionError(f"{key} is derived otherwise once the lexicon is complete")
    return kept


def _word(value: str | dict[str, str | None]) -> Word:
    if isinstance(value, str):
        return Word(_symbols(value))
    default = _symbols(value["DEFAULT"] or "")
    if "NOUN" in value and value["NOUN"] is None:
        return Word(default, {"S": ""})
    forms = {_USES[use]: _symbols(sound or "") for use, sound in value.items() if use in _USES}
    return Word(default, {use: sound for use, sound in forms.items() if sound != default})


def _symbols(sound: str) -> str:
    """misaki's own last step: the flap is written T, the glottal stop t."""
    return sound.replace("ɾ", "T").replace("ʔ", "t")


def main() -> None:
    words = read_source(Path(sys.argv[1])) | read_additions()
    kept = without_derivable(words)
    size = write_lexicon(kept.items(), TARGET)
    print(f"{len(words)} words, {len(kept)} kept, {size} bytes: {TARGET}")


if __name__ == "__main__":
    main()
