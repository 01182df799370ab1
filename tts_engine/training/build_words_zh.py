"""Compiles the Chinese word table (`tts_engine/text/data/words_zh.safetensors`) from jieba, pypinyin and our readings.

Needs `jieba` (word frequencies and the hidden Markov model for unknown words, MIT) and `pypinyin` (readings, MIT), both
only here. `readings_zh.yaml` beside this file holds our readings of words and phrases; they win over pypinyin's.

    python -m tts_engine.training.build_words_zh

The table is a trie in breadth-first order: node *n* has the children `first[n]` … `first[n + 1]`, sorted by `label`
(an index into the sorted code points `chars`); node 0 is the root. `cost` is −1000·ln(probability) of the word that
ends at a node, 65535 where none does. Words whose reading is not that of their characters one by one have their node
in `read_node` (sorted) and their syllables at `read_at[i]` … `read_at[i + 1]` of `read_syllable`. `char_syllable` is
each character's usual reading and `emit` its four HMM emissions (states B, E, M, S), both by index into `chars`.
"""

from __future__ import annotations

import importlib
import json
import math
import struct
from array import array
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

TARGET = Path(__file__).parents[1] / "text" / "data" / "words_zh.safetensors"
READINGS = Path(__file__).with_name("readings_zh.yaml")
DTYPES = {"H": "U16", "I": "U32", "f": "F32"}
STATES = "BEMS"
NO_WORD = 65_535
NEVER = -1e30
"""The logarithm of a probability of zero."""


def jieba_frequencies() -> dict[str, int]:
    """Word → count, as jieba loads it."""
    module = importlib.import_module("jieba")
    lines = (Path(module.__file__ or "").parent / "dict.txt").read_text(encoding="utf-8").splitlines()
    rows = (line.split(" ") for line in lines)
    return {row[0]: int(row[1]) for row in rows if int(row[1]) > 0}


def pinyin(word: str) -> list[str]:
    """pypinyin's reading, one syllable with tone digit (5 = neutral) a character; empty where it has none."""
    pypinyin = importlib.import_module("pypinyin")
    syllables = pypinyin.lazy_pinyin(word, style=pypinyin.Style.TONE3, neutral_tone_with_five=True, errors="ignore")
    return list(syllables) if len(syllables) == len(word) else []


def own_readings() -> dict[str, list[str]]:
    """Our readings: word → syllables."""
    data = yaml.safe_load(READINGS.read_text(encoding="utf-8"))
    readings = {word: str(spelled).split() for group in data.values() for word, spelled in group.items()}
    for word, syllables in readings.items():
        if len(word) != len(syllables):
            raise SystemExit(f"{READINGS.name}: {word} has {len(word)} characters, but {len(syllables)} syllables")
    return readings


def build() -> tuple[dict[str, array[Any]], dict[str, Any]]:
    """The arrays of the table and its metadata."""
    frequencies = jieba_frequencies()
    own = own_readings()
    pypinyin = importlib.import_module("pypinyin")
    phrases = importlib.import_module("pypinyin.phrases_dict").phrases_dict
    total = sum(frequencies.values())

    singles = {chr(code) for code in pypinyin.pinyin_dict.pinyin_dict} | {word for word in frequencies if len(word) == 1}
    usual = {char: own.get(char, pinyin(char)) for char in singles if not char.isascii()}
    usual = {char: syllables for char, syllables in usual.items() if syllables}
    words = {word for word in frequencies if len(word) > 1 and all(char in usual for char in word)}

    readings: dict[str, list[str]] = {}
    for word in words | {phrase for phrase in phrases if len(phrase) > 1} | own.keys():
        if len(word) < 2 or not all(char in usual for char in word):
            continue
        syllables = own.get(word) or pinyin(word)
        if word in own or (syllables and syllables != [usual[char][0] for char in word]):
            readings[word] = syllables

    chars = sorted(usual)
    index = {char: position for position, char in enumerate(chars)}
    syllable_list = sorted({s for each in usual.values() for s in each} | {s for each in readings.values() for s in each})
    syllable_id = {syllable: position for position, syllable in enumerate(syllable_list)}

    nodes = breadth_first(sorted(words | readings.keys() | set(chars), key=lambda word: [index[char] for char in word]), index)
    first, label, keys = nodes
    cost = array("H", [NO_WORD])
    read_node, read_at, read_syllable = array("I"), array("I"), array("H")
    for number, key in enumerate(keys):
        if number == 0:
            continue
        count = frequencies.get(key, 1 if len(key) == 1 else 0)
        cost.append(round(1000 * (math.log(total) - math.log(count))) if count else NO_WORD)
        if key in readings:
            read_node.append(number)
            read_at.append(len(read_syllable))
            read_syllable.extend(syllable_id[syllable] for syllable in readings[key])
    read_at.append(len(read_syllable))

    emissions = importlib.import_module("jieba.finalseg.prob_emit").P
    emit = array("f", (emissions[state].get(char, NEVER) for char in chars for state in STATES))
    start = importlib.import_module("jieba.finalseg.prob_start").P
    trans = importlib.import_module("jieba.finalseg.prob_trans").P
    arrays = {
        "chars": array("I", map(ord, chars)),
        "char_syllable": array("H", (syllable_id[usual[char][0]] for char in chars)),
        "emit": emit,
        "first": first,
        "label": label,
        "cost": cost,
        "read_node": read_node,
        "read_at": read_at,
        "read_syllable": read_syllable,
    }
    metadata = {
        "syllables": " ".join(syllable_list),
        "start": json.dumps([max(start[state], NEVER) for state in STATES]),
        "trans": json.dumps([[max(trans[a].get(b, NEVER), NEVER) for b in STATES] for a in STATES]),
    }
    return arrays, metadata


def breadth_first(words: list[str], index: dict[str, int]) -> tuple[array[int], array[int], list[str]]:
    """The trie of sorted words: first child of each node (one more than nodes), label of each node, and its prefix."""
    level = {word[:1]: None for word in words}
    keys = [""]
    first, label = array("I", [1]), array("H", [0])
    children: dict[str, list[str]] = {"": list(level)}
    for word in words:
        for size in range(1, len(word)):
            longer = children.setdefault(word[:size], [])
            if not longer or longer[-1] != word[: size + 1]:
                longer.append(word[: size + 1])
    position = 0
    while position < len(keys):
        below = children.get(keys[position], [])
        keys.extend(below)
        label.extend(index[key[-1]] for key in below)
        first.append(len(keys))
        position += 1
    return first, label, keys


def write(path: Path, arrays: dict[str, array[Any]], metadata: dict[str, Any]) -> None:
    """The safetensors container: length of the header, header, data."""
    header: dict[str, Any] = {"__metadata__": metadata}
    offset = 0
    for name, values in arrays.items():
        size = len(values) * values.itemsize
        shape = [len(values)]
        header[name] = {"dtype": DTYPES[values.typecode], "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        for values in little_endian(arrays.values()):
            file.write(values.tobytes())


def little_endian(arrays: Iterable[array[Any]]) -> Iterable[array[Any]]:
    """The arrays in little-endian byte order, which the container asks for."""
    for values in arrays:
        if struct.pack("=H", 1) != struct.pack("<H", 1):
            values.byteswap()
        yield values


def main() -> None:
    arrays, metadata = build()
    TARGET.parent.mkdir(exist_ok=True)
    write(TARGET, arrays, metadata)
    nodes, readings = len(arrays["label"]), len(arrays["read_node"])
    print(f"{TARGET.name}: {nodes:,} nodes, {readings:,} readings, {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
