"""Chinese words: a mapped table of frequencies and readings, and the segmenter that finds the most probable words.

The segmentation is jieba's (Sun Junyi, MIT): the path of highest probability through all words of the table, and a
hidden Markov model over characters (states B, E, M, S) for what the table does not know. `build_words_zh` in `training`
compiles the table and describes its arrays.
"""

from __future__ import annotations

import json
import mmap
import struct
from bisect import bisect_left
from functools import cache
from pathlib import Path

TABLE = Path(__file__).parent / "data" / "words_zh.safetensors"
NO_WORD = 65_535
UNKNOWN_COST = 18_000
"""What a character costs that no word contains: about one occurrence in the corpus."""
LONGEST_UNKNOWN = 64
"""Characters that the hidden Markov model joins at a time; longer stretches are cut, so that time stays linear."""
NEVER = -3.14e100
BEFORE = ((1, 3), (0, 2), (0, 2), (3, 1))
"""The states that may come before B, E, M, S."""


class Words:
    """The table, mapped into memory; nothing of it is copied."""

    def __init__(self, path: Path = TABLE) -> None:
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        (size,) = struct.unpack("<Q", self._map[:8])
        header = json.loads(self._map[8 : 8 + size])
        metadata = header.pop("__metadata__")
        data = memoryview(self._map)[8 + size :]

        def raw(name: str) -> memoryview:
            low, high = header[name]["data_offsets"]
            return data[low:high]

        self._chars = raw("chars").cast("I")
        self._char_syllable = raw("char_syllable").cast("H")
        self._emit = raw("emit").cast("f")
        self._first = raw("first").cast("I")
        self._label = raw("label").cast("H")
        self._cost = raw("cost").cast("H")
        self._read_node = raw("read_node").cast("I")
        self._read_at = raw("read_at").cast("I")
        self._read_syllable = raw("read_syllable").cast("H")
        self.syllables: list[str] = metadata["syllables"].split()
        self._start: list[float] = json.loads(metadata["start"])
        self._trans: list[list[float]] = json.loads(metadata["trans"])

    def _index(self, char: str) -> int:
        """The place of a character in the table, or -1."""
        place = bisect_left(self._chars, ord(char))
        return place if place < len(self._chars) and self._chars[place] == ord(char) else -1

    def _child(self, node: int, index: int) -> int:
        """The node that the character ``index`` leads to, or 0."""
        end = self._first[node + 1]
        place = bisect_left(self._label, index, self._first[node], end)
        return place if place < end and self._label[place] == index else 0

    def syllable(self, char: str) -> str | None:
        """The usual reading of one character; None for a character without one."""
        index = self._index(char)
        return self.syllables[self._char_syllable[index]] if index >= 0 else None

    def cost(self, text: str) -> int:
        """−1000·ln(probability) of a word, or `NO_WORD`."""
        node = self._node([self._index(char) for char in text])
        return self._cost[node] if node else NO_WORD

    def reading(self, text: str) -> list[str]:
        """The syllables of a word, one a character ("" where a character has none).

        A word that the table does not know is read by the longest known parts, from left to right.
        """
        indices = [self._index(char) for char in text]
        out: list[str] = []
        while len(out) < len(text):
            low = len(out)
            node, best = 0, 0
            high = low
            for place in range(low, len(text)):
                node = self._child(node, indices[place]) if indices[place] >= 0 else 0
                if not node:
                    break
                if place > low and self._known(node):
                    best, high = node, place + 1
            if best:
                out.extend(self._node_reading(best) or map(self._usual, indices[low:high]))
            else:
                out.append(self._usual(indices[low]))
        return out

    def _usual(self, index: int) -> str:
        return self.syllables[self._char_syllable[index]] if index >= 0 else ""

    def _known(self, node: int) -> bool:
        if self._cost[node] != NO_WORD:
            return True
        place = bisect_left(self._read_node, node)
        return place < len(self._read_node) and self._read_node[place] == node

    def _node_reading(self, node: int) -> list[str]:
        place = bisect_left(self._read_node, node)
        if place == len(self._read_node) or self._read_node[place] != node:
            return []
        return [self.syllables[s] for s in self._read_syllable[self._read_at[place] : self._read_at[place + 1]]]

    def segment(self, text: str) -> list[str]:
        """The words of a stretch of Chinese characters."""
        size = len(text)
        indices = [self._index(char) for char in text]
        costs = [0] * (size + 1)
        ends = [0] * size
        for low in range(size - 1, -1, -1):
            node = self._child(0, indices[low]) if indices[low] >= 0 else 0
            own = self._cost[node] if node else UNKNOWN_COST
            best, end = (own if own != NO_WORD else UNKNOWN_COST) + costs[low + 1], low + 1
            place = low + 1
            while node and place < size and indices[place] >= 0:
                node = self._child(node, indices[place])
                place += 1
                if node and self._cost[node] != NO_WORD:
                    total = self._cost[node] + costs[place]
                    if total <= best:
                        best, end = total, place
            costs[low], ends[low] = best, end
        words: list[str] = []
        low = unknown = 0
        while low < size:
            end = ends[low]
            if end - low > 1:
                words += self._unknown(text[unknown:low], indices[unknown:low])
                words.append(text[low:end])
                unknown = end
            low = end
        return words + self._unknown(text[unknown:], indices[unknown:])

    def _unknown(self, text: str, indices: list[int]) -> list[str]:
        """Words out of single characters that no word of the table covers, by the hidden Markov model (Viterbi)."""
        if len(text) < 2:
            return [text] if text else []
        if (node := self._node(indices)) and self._cost[node] != NO_WORD:
            return list(text)
        out: list[str] = []
        for low in range(0, len(text), LONGEST_UNKNOWN):
            out += self._viterbi(text[low : low + LONGEST_UNKNOWN], indices[low : low + LONGEST_UNKNOWN])
        return out

    def _node(self, indices: list[int]) -> int:
        """The node of a prefix, or 0."""
        node = 0
        for index in indices:
            node = self._child(node, index) if index >= 0 else 0
            if not node:
                break
        return node

    def _viterbi(self, text: str, indices: list[int]) -> list[str]:
        def emissions(index: int) -> list[float]:
            return list(self._emit[4 * index : 4 * index + 4]) if index >= 0 else [NEVER] * 4

        scores = [start + emit for start, emit in zip(self._start, emissions(indices[0]), strict=True)]
        back: list[list[int]] = []
        for index in indices[1:]:
            emit = emissions(index)
            chosen = [max(BEFORE[s], key=lambda b, s=s: (scores[b] + self._trans[b][s], b)) for s in range(4)]  # type: ignore[misc]
            scores = [scores[b] + self._trans[b][s] + emit[s] for s, b in enumerate(chosen)]
            back.append(chosen)
        state = 1 if scores[1] > scores[3] else 3
        states = [state]
        for chosen in reversed(back):
            state = chosen[state]
            states.append(state)
        states.reverse()
        out: list[str] = []
        low = 0
        for place, state in enumerate(states):
            if state in (1, 3):
                out.append(text[low : place + 1])
                low = place + 1
        return out + ([text[low:]] if low < len(text) else [])


@cache
def words() -> Words:
    """The table of the package, opened when the first Chinese sentence needs it."""
    return Words()
