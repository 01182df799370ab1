"""Which language a text is in, and which scripts in it no voice can speak."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from tts_engine.types import Language

HAN = "\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af"
"""Chinese characters, as the inside of a regular expression's class."""
LATIN = "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff"
"""Latin letters, with and without accents, likewise."""
_HAN = re.compile(f"[{HAN}]")
_FOREIGN = re.compile(f"[^\\W\\d_{HAN}{LATIN}々\u00aa\u00b5\u00ba\u02b0-\u02ff\u2100-\u218b\uff21-\uff3a\uff41-\uff5a]")
_PUNCTUATION = re.compile("[\u3001\u3002\uff01\uff0c\uff1a\uff1b\uff1f]")
_WORDS = re.compile(f"[{LATIN}]{{2,}}[^{LATIN}]+[{LATIN}]{{2,}}")
_SPOKEN = re.compile(f"[\\d{HAN}{LATIN}\uff21-\uff3a\uff41-\uff5a]")


class Unspeakable(NamedTuple):
    """A stretch of a script that no voice can speak; ``start`` and ``end`` are text offsets."""

    script: str
    start: int
    end: int


def is_han(char: str) -> bool:
    """Whether it is a Chinese character (of any block), such as 中, 〇 or 㐂."""
    return "\u4e00" <= char <= "\u9fff" or (char >= "\u3007" and bool(_HAN.match(char)))


def detect_language(text: str) -> Language:
    """The language whose voice should speak a sentence: Chinese as soon as one Chinese character is in it.

    Without any, Chinese punctuation tells ("5-3=2。"), unless there are two English words.
    """
    if _HAN.search(text):
        return "zh"
    return "zh" if _PUNCTUATION.search(text) and not _WORDS.search(text) else "en"


def unspeakable(text: str) -> list[Unspeakable]:
    """The stretches of other scripts (Thai, Arabic, Cyrillic, Hiragana …), which are left out of speech.

    Marks and blanks between letters of one script belong to its stretch. A lone Greek letter is a symbol and is spoken.
    """
    out: list[Unspeakable] = []
    for match in _FOREIGN.finditer(text):
        if not match[0].isalpha():
            continue
        place = match.start()
        script = script_of(match[0])
        if script == "Latin":
            continue
        if out and out[-1].script == script and not _SPOKEN.search(text, out[-1].end, place):
            out[-1] = Unspeakable(script, out[-1].start, place + 1)
        else:
            out.append(Unspeakable(script, place, place + 1))
    return [stretch for stretch in out if stretch.script != "Greek" or stretch.end - stretch.start > 1]


def script_of(char: str) -> str:
    """The script of a letter by its Unicode name: "Cyrillic", "Hiragana", "Hangul" …; "Unknown" without a name."""
    if unicodedata.normalize("NFKC", char).isascii():
        return "Latin"
    words = unicodedata.name(char, "unknown").replace("-", " ").split()
    return words["HALFWIDTH" in words[0]].capitalize()
