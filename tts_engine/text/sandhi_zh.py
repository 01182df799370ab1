"""Tone changes of spoken Mandarin (tone sandhi) over the words of one stretch between two marks.

The rules are those of the textbooks (Lin, The Sounds of Chinese, 2007, ch. 9): 一 and 不 by the tone that follows, the
third tone before another third tone by word structure, the neutral tone of doubled verbs. Words come as lists of
syllables with a tone digit (5 = neutral) and are changed in place.
"""

from __future__ import annotations

from collections.abc import Sequence

from tts_engine.text.words_zh import words as word_table

NUMERALS = frozenset("零〇一二三四五六七八九十百千万亿两幺")
ORDINAL_BEFORE = frozenset("第周期初十百千零〇点幺拜")
ORDINAL_AFTER = (
    "月",
    "号",
    "楼",
    "级",
    "流",
    "等",
    "年级",
    "班",
    "线",
    "期",
    "审",
    "把手",
    "环",
    "战",
    "品",
    "栋",
    "单元",
    "区",
    "中",
)
LINKING = frozenset("这那另每有某任哪进前后上下再又同过")
"""Before a 一 that closes a word, these bind it to what follows (另一 + 方面)."""
DOUBLED_VERBS = frozenset("看想试走听说问坐玩聊尝摸查找读写谈算歇逛教学跑擦洗扫讲练改猜瞧比动翻闻补转")


class Word:
    """A word: its characters and their syllables."""

    __slots__ = ("syllables", "text")

    def __init__(self, text: str, syllables: list[str]) -> None:
        self.text = text
        self.syllables = syllables


def apply(words: Sequence[Word]) -> None:
    """Changes the tones of one stretch."""
    text = "".join(word.text for word in words)
    flat = [(word, place) for word in words for place in range(len(word.text))]
    for index, (word, place) in enumerate(flat):
        following = flat[index + 1][0].syllables[flat[index + 1][1]] if index + 1 < len(flat) else ""
        if word.text[place] == "一" and word.syllables[place][:-1] == "yi":
            word.syllables[place] = _yi(text, index, word, place, following)
        elif word.text[place] == "不" and word.syllables[place] in ("bu2", "bu4"):
            word.syllables[place] = _bu(text, index, following)
    for word in words:
        if len(word.text) == 2 and word.text[0] == word.text[1] and word.text[0] in DOUBLED_VERBS:
            first = word.syllables[0]
            word.syllables[:] = [first[:-1] + "2" if first.endswith("3") else first, first[:-1] + "5"]
    for word in words:
        _third_within(word)
    _third_across(words)


def _yi(text: str, index: int, word: Word, place: int, following: str) -> str:
    before, after = text[index - 1 : index], text[index + 1 : index + 2]
    if before and before == after and before not in NUMERALS:
        return "yi5"
    if not following or before in ORDINAL_BEFORE or before in NUMERALS or text[max(0, index - 2) : index] == "星期":
        return "yi1"
    if (after in NUMERALS and after not in "百千万亿两") or (after == "点" and text[index + 2 : index + 3] in NUMERALS):
        return "yi1"
    if place == len(word.text) - 1 and place and before not in LINKING:
        return "yi1"
    if _ordinal(text, index):
        return "yi1"
    if following[-1] == "4" or following == "ge5":
        return "yi2"
    return "yi4" if following[-1] in "123" else "yi1"


def _ordinal(text: str, index: int) -> bool:
    """Whether 一 is a number in a name: 一月, 一楼, 一年级; after 月 also the day 一日."""
    after = text[index + 1 : index + 3]
    if after.startswith("日"):
        return text[index - 1 : index] == "月"
    if after.startswith(("期", "等", "线", "区", "中", "班", "环")) and after not in ("等奖", "线城", "期工"):
        return after in ("等奖", "等座", "等功", "班的", "环路", "线城", "期工") or len(after) == 1
    return after.startswith(ORDINAL_AFTER)


def _bu(text: str, index: int, following: str) -> str:
    before, after = text[index - 1 : index], text[index + 1 : index + 2]
    if before and before == after:
        return "bu5"
    return "bu2" if following.endswith("4") else "bu4"


def _third_within(word: Word) -> None:
    """Third tones inside a word: pairs in its smaller parts first, then across the parts from right to left."""
    syllables = word.syllables
    if len(syllables) < 2 or sum(syllable.endswith("3") for syllable in syllables) < 2:
        return
    parts = _split(word.text) if len(syllables) > 2 else [word.text]
    start = 0
    starts = []
    for part in parts:
        starts.append(start)
        _right_to_left(syllables, start, start + len(part))
        start += len(part)
    for border in reversed(starts[1:]):
        if syllables[border].endswith("3") and syllables[border - 1].endswith("3"):
            syllables[border - 1] = syllables[border - 1][:-1] + "2"


def _split(word: str) -> list[str]:
    """A word as the words that it is made of: 展览馆 → 展览, 馆; 纸老虎 → 纸, 老虎; four characters in two pairs."""
    if len(word) == 3:
        head, tail = word_table().cost(word[:2]), word_table().cost(word[1:])
        return [word[0], word[1:]] if tail < head else [word[:2], word[2]]
    return [word[place : place + 2] for place in range(0, len(word), 2)]


def _right_to_left(syllables: list[str], start: int, end: int) -> None:
    for place in range(end - 2, start - 1, -1):
        if syllables[place].endswith("3") and syllables[place + 1].endswith("3"):
            syllables[place] = syllables[place][:-1] + "2"


def _third_across(words: Sequence[Word]) -> None:
    """Third tones that meet where two words join: the left one rises if one of the words is a single character."""
    for left, right in zip(reversed(words[:-1]), reversed(words[1:]), strict=True):
        if not left.syllables or not right.syllables:
            continue
        if left.syllables[-1].endswith("3") and right.syllables[0].endswith("3") and 1 in (len(left.text), len(right.text)):
            left.syllables[-1] = left.syllables[-1][:-1] + "2"
