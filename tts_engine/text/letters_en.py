"""Letter to sound: a small convolutional network, in numpy, for English words that neither lexicon nor rules know.

All letters are read at once. Each begins as the sum of seven embeddings (itself and three neighbours to each side) and
one of its trigram; six residual blocks look one letter further to each side, one of them also at the mean of the word;
each letter then has two slots for symbols. Reading off the best symbol of each slot, repeats and blanks dropped, gives
the sound (connectionist temporal classification, Graves et al. 2006). Half-way the network is told what it would
say so far (self-conditioning, Nozaki and Komatsu 2021), so that the slots agree with one another.
``tts_engine.training.train_letters`` makes the weights.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from safetensors import safe_open

from tts_engine.text.phonemes import PRIMARY, SECONDARY, VOWELS

LETTERS: Final = 28
"""Letter ids: 0 unused, 1 beyond the word, 2 to 27 a to z."""
BOUNDARY: Final = 1
WINDOW: Final = 7
SLOTS: Final = 2
TOLD_EVERY: Final = 3
"""After how many blocks the network is told its own reading."""
GOLD_STYLE: Final = 0
SILVER_STYLE: Final = 1
"""The two parts of the lexicon write reduced vowels differently; the voice speaks the gold part."""
_PATH = Path(__file__).parent / "data" / "letters_en.safetensors"
_SIDE = WINDOW // 2
_EPSILON = 1e-5

Array = NDArray[np.float32]


def letter_ids(word: str) -> list[int]:
    """The ids of the letters a to z in ``word``; other characters are left out."""
    return [ord(letter) - 95 for letter in word if "a" <= letter <= "z"]


def symbols_of(sound: str) -> list[str]:
    """Phonemes as the model's symbols: a stress mark belongs to the vowel after it."""
    symbols: list[str] = []
    stress = ""
    for symbol in sound:
        if symbol in (PRIMARY, SECONDARY):
            stress = symbol
        elif symbol in VOWELS:
            symbols.append(stress + symbol)
            stress = ""
        else:
            symbols.append(symbol)
    return symbols


class LetterToSound:
    """The model, read once (1.6 MB on disk)."""

    def __init__(self, path: Path = _PATH, style: int = GOLD_STYLE) -> None:
        with safe_open(path, framework="numpy") as file:
            self._symbols = ["", *file.metadata()["symbols"].split(" ")]
            raw = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        raw["trigram_in.bias"] = raw["trigram_in.bias"] + raw.pop("style")[style]
        self._trigram: NDArray[np.int8] = raw.pop("trigram")
        self._trigram_scale: Array = raw.pop("trigram.scale")
        self._weights: dict[str, Array] = {
            name: tensor if tensor.dtype == np.float32 else tensor.astype(np.float32) * raw[name + ".scale"]
            for name, tensor in raw.items()
            if not name.endswith(".scale")
        }
        self._blocks = sum(name.startswith("near.") and name.endswith(".bias") for name in raw)

    def pronounce(self, word: str) -> str:
        """The sound of ``word`` (lower case a to z): one main stress where there is a vowel; empty without a letter."""
        ids = letter_ids(word)
        if not ids:
            return ""
        scores = self._scores(ids)
        best = scores.argmax(-1)
        slots = [slot for slot, symbol in enumerate(best) if symbol and (slot == 0 or symbol != best[slot - 1])]
        return self._with_one_stress([(self._symbols[best[slot]], float(scores[slot, best[slot]])) for slot in slots])

    def _scores(self, ids: list[int]) -> Array:
        """[2 · letters, symbols] float32."""
        weights, letters = self._weights, len(ids)
        padded = np.array([BOUNDARY] * _SIDE + ids + [BOUNDARY] * _SIDE)
        near = padded[np.arange(letters)[:, None] + np.arange(WINDOW)] + LETTERS * np.arange(WINDOW)
        trigrams = (padded[_SIDE - 1 : -_SIDE - 1] * LETTERS + padded[_SIDE:-_SIDE]) * LETTERS + padded[
            _SIDE + 1 : letters + _SIDE + 1
        ]
        x = weights["window"][near].sum(1)  # [letters, width]
        x += (self._trigram[trigrams] * self._trigram_scale) @ weights["trigram_in"] + weights["trigram_in.bias"]
        width = x.shape[1]
        joined = np.zeros((letters + 2, width), np.float32)
        for block in range(self._blocks):
            if block and block % TOLD_EVERY == 0:
                x += _softmax(self._out(x)).reshape(letters, -1) @ weights["told"]
            joined[1:-1] = _normed(x, weights[f"norm.{block}.weight"], weights[f"norm.{block}.bias"])
            three = np.concatenate([joined[:-2], joined[1:-1], joined[2:]], axis=1)
            y = three @ weights[f"near.{block}"] + weights[f"near.{block}.bias"]
            np.maximum(y, 0, out=y)
            if block == self._blocks // 2:
                y += x.mean(0) @ weights["whole"] + weights["whole.bias"]
            x += y @ weights[f"back.{block}"] + weights[f"back.{block}.bias"]
        return self._out(x)

    def _out(self, x: Array) -> Array:
        """[letters, width] to the scores of each slot, [2 · letters, symbols]."""
        weights = self._weights
        y = _normed(x, weights["norm_out.weight"], weights["norm_out.bias"]) @ weights["out"] + weights["out.bias"]
        return y.reshape(SLOTS * len(x), len(self._symbols))

    @staticmethod
    def _with_one_stress(symbols: list[tuple[str, float]]) -> str:
        """The symbols as phonemes; of several main stresses the surest stays, without one another place gets it."""
        stressed = [index for index, (symbol, _) in enumerate(symbols) if symbol[0] == PRIMARY]
        if not stressed:
            stressed = [index for index, (symbol, _) in enumerate(symbols) if symbol[0] == SECONDARY][-1:]
            stressed = (
                stressed or [index for index, (symbol, _) in enumerate(symbols) if symbol in VOWELS and symbol not in "əᵊᵻ"][:1]
            )
        main = max(stressed, key=lambda index: symbols[index][1], default=-1)
        out = []
        for index, (symbol, _) in enumerate(symbols):
            if index == main:
                out.append(PRIMARY + symbol.lstrip(PRIMARY + SECONDARY))
            else:
                out.append(symbol.replace(PRIMARY, SECONDARY))
        return "".join(out)


def _softmax(scores: Array) -> Array:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    shares: Array = powers / powers.sum(-1, keepdims=True)
    return shares


def _normed(x: Array, weight: Array, bias: Array) -> Array:
    centred = x - x.mean(-1, keepdims=True)
    scale: Array = weight / np.sqrt((centred * centred).mean(-1, keepdims=True) + _EPSILON)
    normed: Array = centred * scale + bias
    return normed
