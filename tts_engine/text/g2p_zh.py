"""Chinese tokens to the voice's symbols: words, readings by word and context, tone sandhi, 儿化, symbols.

Readings come from the word table, then from the context rules of `polyphones_zh.json` for characters with more than
one. The symbols of a syllable come from the voice's own table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from tts_engine.text import sandhi_zh
from tts_engine.text.sandhi_zh import Word
from tts_engine.text.tokens import Pronounced, Token
from tts_engine.text.words_zh import NO_WORD, words

SYMBOLS = Path(__file__).parents[1] / "voices" / "embedded" / "pinyin_phonemes.json"
RULES = Path(__file__).parent / "data" / "polyphones_zh.json"
CONTEXT = 8
"""Characters on each side that a rule may look at."""
TONES = {"1": "→", "2": "↗", "3": "↓", "4": "↘", "5": ""}
RARE = {"biang": "pja{}ŋ", "bong": "pʊ{}ŋ", "cei": "ʦʰei{}", "din": "ti{}n", "wong": "wʊ{}ŋ"}
"""Syllables of rare characters that the voice's table lacks."""
ARROWS = "→↗↓↘"
NON_SYLLABIC = "\u032f"
"""The mark of a glide in the table; it is no symbol of the voice."""
BLANK_BEFORE = "(（《«"
"""What is written so takes a blank before it."""
NO_BLANK_AFTER = ("(", "“", "”", '"')
ER_STEMS = re.compile(
    r"(?:[婴幼孤胎少健宠女男患产弃侄妻育生养孕托恋新早低弄混畸]|新生|低能|弄潮|混血|早产|小)儿$|儿[子童女歌科媳孙时戏化郎茶]"
)
"""Where 儿 is a word of its own sense and keeps its syllable."""


class ChineseG2P:
    """Pronounces Chinese tokens; holds no state."""

    def pronounce(self, tokens: Sequence[Token]) -> list[Pronounced]:
        """A Pronounced for each token, in order. A token whose ``phonemes`` are fixed keeps them.

        ``space`` is set where a word begins. The 儿 of 花儿 has no phonemes: it sounds in the syllable before.
        """
        out: list[Pronounced] = []
        run: list[Token] = []
        space = True
        for token in tokens:
            if token.kind == "word" and token.phonemes is None:
                run.append(token)
                continue
            out += _pronounce_run(run, space)
            space = space if not run else True
            run = []
            if token.kind == "mark":
                out.append(Pronounced(token, token.text, token.source in BLANK_BEFORE if token.source else token.text == "("))
                space = token.text not in NO_BLANK_AFTER or token.source == "》"
            else:
                out.append(Pronounced(token, token.phonemes or "", space))
                space = True
        return out + _pronounce_run(run, space)


def _pronounce_run(run: list[Token], space: bool) -> list[Pronounced]:
    """The characters between two marks."""
    if not run:
        return []
    text = "".join(token.text if len(token.text) == 1 else "\ufffd" for token in run)
    spoken = read(text)
    sandhi_zh.apply(spoken)
    out: list[Pronounced] = []
    for word in spoken:
        for place, syllable in enumerate(word.syllables):
            token = run[len(out)]
            phonemes = symbols(syllable)
            if word.text[place] == "儿" and out and _is_suffix(text, len(out)):
                previous = out[-1]
                out[-1] = Pronounced(previous.token, rhotic(previous.phonemes), previous.space)
                phonemes = ""
            out.append(Pronounced(token, phonemes, (space or bool(out)) and place == 0 and bool(phonemes)))
    return out


def read(text: str) -> list[Word]:
    """The words of a stretch of characters with their readings, before tone sandhi ("" for an unknown character)."""
    table = words()
    out = [Word(word, table.reading(word)) for word in table.segment(text)]
    _apply_rules(text, out)
    return out


@cache
def _rules() -> dict[str, list[list[Any]]]:
    loaded: dict[str, list[list[Any]]] = json.loads(RULES.read_text(encoding="utf-8"))
    return loaded


@cache
def _rules_of(char: str) -> tuple[tuple[re.Pattern[str], re.Pattern[str], str, bool], ...]:
    """The rules of a character: what stands before and after, its syllable, whether it counts inside a known word."""
    return tuple(
        (re.compile(f"(?:{before})$"), re.compile(after), syllable, bool(inside))
        for before, after, syllable, *inside in _rules().get(char, ())
    )


def _apply_rules(text: str, spoken: list[Word]) -> None:
    """Readings by what stands around a character: the first rule that fits wins.

    Inside a word that the table knows only the rules count that say so (their fourth field).
    """
    table = words()
    index = 0
    for word in spoken:
        known: bool | None = None
        for place, char in enumerate(word.text):
            here = index + place
            for left, right, syllable, inside in _rules_of(char):
                if known is None:
                    known = len(word.text) > 1 and table.cost(word.text) != NO_WORD
                if known and not inside:
                    continue
                before, after = text[max(0, here - CONTEXT) : here], text[here + 1 : here + 1 + CONTEXT]
                if left.search(before) and right.match(after):
                    word.syllables[place] = syllable
                    break
        index += len(word.text)


@cache
def _table() -> dict[str, str]:
    loaded: dict[str, str] = json.loads(SYMBOLS.read_text(encoding="utf-8"))
    return {syllable: symbols.replace(NON_SYLLABIC, "") for syllable, symbols in loaded.items()}


@cache
def symbols(syllable: str) -> str:
    """The voice's symbols of a syllable with tone digit; a tone that the table lacks is made from another of it."""
    if not syllable:
        return ""
    table = _table()
    if syllable in table:
        return table[syllable]
    base, tone = syllable[:-1], syllable[-1]
    for other in "12345":
        if (known := table.get(base + other)) is not None:
            if other == "5":
                continue
            return known.replace(TONES[other], TONES[tone])
    return RARE[base].format(TONES[tone]) if base in RARE else table.get(base + "5", "")


def _is_suffix(text: str, index: int) -> bool:
    """Whether the 儿 at ``index`` only colours the syllable before it."""
    return not ER_STEMS.search(text[max(0, index - 2) : index + 1]) and not ER_STEMS.match(text[index : index + 2])


def rhotic(phonemes: str) -> str:
    """A syllable with 儿 in it (Lin, The Sounds of Chinese, 2007, ch. 8).

    -n, -ng and the glide of ai, ei go; ɨ and the vowel of ən, ei merge with ɚ.
    """
    arrow = next((char for char in phonemes if char in ARROWS), "")
    plain = phonemes.replace(arrow, "") if arrow else phonemes
    if plain.endswith(("n", "ŋ", "ai", "ei")):
        plain = plain[:-1]
    if plain.endswith(("ɨ", "ə", "e")) and not plain.endswith(("je", "ɥe")):
        return plain[:-1] + "ɚ" + arrow
    if plain.endswith("ɛ"):
        plain = plain[:-1] + "a"
    return plain + arrow + "ɚ"
