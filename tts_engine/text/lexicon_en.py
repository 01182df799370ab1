"""The English lexicon: word to phonemes, looked up in a mapped file of hash buckets without loading it.

File layout (little endian): ``SLEX1``, u8 length and UTF-8 of the symbol alphabet, u32 bucket count *n* (a power of
two), n + 1 u32 offsets from the start of the file, then the buckets. A bucket holds records of a line feed, the word, a
tab and its phonemes; for a word that sounds differently by use, each further use follows as a tab, its class and its
phonemes. Bytes from 128 up are symbols of the alphabet. A word lies in bucket ``crc32(word) mod n``.
``tts_engine.training.build_lexicon`` writes it.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from zlib import crc32

MAGIC = b"SLEX1"
LONGEST_WORD = 64
"""Words of more characters are in no lexicon; it bounds the work that a word can cause."""
_PATH = Path(__file__).parent / "data" / "lexicon_en.bin"


@dataclass(frozen=True, slots=True)
class Word:
    """How a word sounds: ``default``, and by use in ``forms``.

    Keys of ``forms``: ``N`` noun, ``V`` verb, ``P`` past or participle, ``J`` adjective, ``R`` adverb, ``D`` pointing
    word, ``F`` before a pause, ``X`` the rarer sense, ``A`` written with accents, ``S`` spelled in capitals (an empty
    sound: letter by letter).
    """

    default: str
    forms: Mapping[str, str] = field(default_factory=dict)


@cache
def lexicon() -> Lexicon:
    """The embedded lexicon, mapped once."""
    return Lexicon()


class Lexicon:
    """Read access to a compiled lexicon; opening it maps the file and reads nothing else."""

    def __init__(self, path: Path = _PATH) -> None:
        with path.open("rb") as file:
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if self._data[: len(MAGIC)] != MAGIC:
            raise ValueError(f"{path} is not a lexicon of this version; build it with tts_engine.training.build_lexicon")
        start = len(MAGIC) + 1
        length = self._data[start - 1]
        alphabet = self._data[start : start + length].decode("utf-8")
        self._symbols = {128 + index: symbol for index, symbol in enumerate(alphabet)}
        (self._buckets,) = struct.unpack_from("<I", self._data, start + length)
        self._table = start + length + 4

    def find(self, word: str) -> Word | None:
        """The word as it is written, case and all; None where it is unknown."""
        if len(word) > LONGEST_WORD or not (word.isascii() and word.isprintable()):
            return None
        key = word.encode("ascii")
        bucket = crc32(key) & (self._buckets - 1)
        start, end = struct.unpack_from("<II", self._data, self._table + 4 * bucket)
        records = self._data[start:end]
        at = records.find(b"\n" + key + b"\t")
        if at < 0:
            return None
        at += len(key) + 2
        stop = records.find(b"\n", at)
        default, *forms = (
            records[at : stop if stop >= 0 else len(records)].decode("latin-1").translate(self._symbols).split("\t")
        )
        return Word(default, {form[0]: form[1:] for form in forms})


def write_lexicon(words: Iterable[tuple[str, Word]], path: Path) -> int:
    """Compile ``words`` (unique, ASCII) to ``path``; gives the number of bytes written."""
    entries = sorted(words, key=lambda item: item[0])
    alphabet = "".join(
        sorted({symbol for _, word in entries for text in (word.default, *word.forms.values()) for symbol in text})
    )
    codes = {ord(symbol): 128 + index for index, symbol in enumerate(alphabet)}
    count = 1 << max(len(entries) // 4, 1).bit_length()
    buckets: list[list[bytes]] = [[] for _ in range(count)]
    for key, word in entries:
        fields = [word.default, *(use + sound for use, sound in sorted(word.forms.items()))]
        record = "\t".join([key, *(field.translate(codes) for field in fields)])
        encoded = key.encode("ascii")
        buckets[crc32(encoded) & (count - 1)].append(b"\n" + record.encode("latin-1"))
    symbols = alphabet.encode("utf-8")
    head = MAGIC + bytes([len(symbols)]) + symbols + struct.pack("<I", count)
    offsets = [len(head) + 4 * (count + 1)]
    for bucket in buckets:
        offsets.append(offsets[-1] + sum(map(len, bucket)))
    data = head + struct.pack(f"<{count + 1}I", *offsets) + b"".join(record for bucket in buckets for record in bucket)
    path.write_bytes(data)
    return len(data)
