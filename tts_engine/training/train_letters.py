"""Train the letter-to-sound model: ``python -m tts_engine.training.train_letters misaki-0.9.4-py3-none-any.whl``.

The model (computed by ``tts_engine.text.letters_en``) reads all letters of a word at once and gives two slots a letter
for symbols; connectionist temporal classification (Graves et al. 2006) aligns them. One word family in forty is held
out, chosen by hash: no word that shares its stem with a held-out word is trained on. The held-out model is the one that
ships, so its error is the one that is stated. About 12 minutes of one core; the seed is fixed.
"""

from __future__ import annotations

import hashlib
import random
import sys
import time
from collections.abc import Collection
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file
from torch import Tensor, nn
from torch.nn import functional

from tts_engine.text.inflection_en import inflected
from tts_engine.text.letters_en import (
    BOUNDARY,
    GOLD_STYLE,
    LETTERS,
    SILVER_STYLE,
    SLOTS,
    TOLD_EVERY,
    WINDOW,
    LetterToSound,
    letter_ids,
    symbols_of,
)
from tts_engine.text.lexicon_en import Word
from tts_engine.text.phonemes import PRIMARY, SECONDARY
from tts_engine.training.build_lexicon import GOLD, read_source

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "text" / "data" / "letters_en.safetensors"
SAMPLE = ROOT.parent / "tests" / "data" / "letters_held_out.tsv"

SEED = 20
HELD_OUT_ONE_IN = 40
SAMPLE_SIZE = 1000
WIDTH, TRIGRAM_WIDTH, BLOCKS = 128, 48, 6
EPOCHS, BATCH, RATE, DROPOUT = 9, 512, 4e-3, 0.08
TOLD_LOSS = 0.3
"""Weight of the loss of each reading on the way."""
DERIVED_SHARE = 0.2
"""Share of the words that an ending rule would give which each epoch sees; they are easy and many."""

_ENDINGS = (
    *("nesses", "ness", "ings", "ing", "ers", "er", "ed", "es", "s", "ly", "ally", "able", "ability", "isms", "ism"),
    *("ists", "ist", "izes", "ized", "izing", "ize", "ation", "ations", "ment", "ments", "y", "e"),
)


class Net(nn.Module):
    """The model of :class:`tts_engine.text.letters_en.LetterToSound`; the same names, batched and trainable."""

    def __init__(self, symbols: int) -> None:
        super().__init__()
        self.symbols = symbols
        self.window = nn.ModuleList(nn.Embedding(LETTERS, WIDTH) for _ in range(WINDOW))
        self.trigram = nn.Embedding(LETTERS**3, TRIGRAM_WIDTH)
        self.trigram_in = nn.Linear(TRIGRAM_WIDTH, WIDTH)
        self.norm = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(BLOCKS))
        self.near = nn.ModuleList(nn.Linear(3 * WIDTH, WIDTH) for _ in range(BLOCKS))
        self.back = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(BLOCKS))
        self.whole = nn.Linear(WIDTH, WIDTH)
        self.told = nn.Linear(SLOTS * symbols, WIDTH, bias=False)
        self.style = nn.Embedding(2, WIDTH)
        self.norm_out = nn.LayerNorm(WIDTH)
        self.out = nn.Linear(WIDTH, SLOTS * symbols)
        self.drop = nn.Dropout(DROPOUT)

    def forward(self, ids: Tensor, mask: Tensor, style: Tensor) -> list[Tensor]:
        """Scores [words, slots, symbols] of each reading, the last one final.

        ids [words, letters] with BOUNDARY beyond the end, mask [words, letters, 1], style [words] (GOLD or SILVER).
        """
        letters = ids.shape[1]
        side = WINDOW // 2
        padded = functional.pad(ids, (side, side), value=BOUNDARY)
        x = torch.stack([table(padded[:, k : k + letters]) for k, table in enumerate(self.window)]).sum(0)
        left, right = padded[:, side - 1 : side - 1 + letters], padded[:, side + 1 : side + 1 + letters]
        x = x + self.trigram_in(self.drop(self.trigram((left * LETTERS + ids) * LETTERS + right)))
        x = (x + self.style(style).unsqueeze(1)) * mask
        readings = []
        for block, (norm, near, back) in enumerate(zip(self.norm, self.near, self.back, strict=True)):
            if block and block % TOLD_EVERY == 0:
                readings.append(self._read(x))
                x = (x + self.told(readings[-1].softmax(-1).view(*ids.shape, -1))) * mask
            y = functional.pad(norm(x) * mask, (0, 0, 1, 1))
            y = functional.relu(near(torch.cat([y[:, :-2], y[:, 1:-1], y[:, 2:]], dim=-1)))
            if block == BLOCKS // 2:
                y = y + self.whole((x * mask).sum(1, keepdim=True) / mask.sum(1, keepdim=True))
            x = (x + self.drop(back(y))) * mask
        return [*readings, self._read(x)]

    def _read(self, x: Tensor) -> Tensor:
        scores: Tensor = self.out(self.norm_out(x))
        return scores.view(len(x), -1, self.symbols)


def family(word: str) -> str:
    """The word without its endings: what all its inflections and simple derivations share."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return family(word[: -len(ending)])
    return word


def is_held_out(word: str) -> bool:
    digest = hashlib.sha256(family(word).encode()).digest()
    return int.from_bytes(digest[:8], "big") % HELD_OUT_ONE_IN == 0


def word_list(words: dict[str, Word]) -> dict[str, str]:
    """What can be learnt from: words of three letters and more, no acronyms, in lower case, with the default sound."""
    return {
        word.lower(): entry.default
        for word, entry in words.items()
        if word.isalpha() and len(word) > 2 and word[1:] == word[1:].lower() and entry.default
    }


def train(words: dict[str, str], gold: Collection[str], derived: set[str]) -> tuple[Net, list[str]]:
    """The trained model and its symbols; symbol 0 is CTC's blank."""
    pairs = [(word, symbols_of(sound), GOLD_STYLE if word in gold else SILVER_STYLE) for word, sound in words.items()]
    pairs = [pair for pair in pairs if len(pair[1]) <= SLOTS * len(pair[0])]
    symbols = ["", *sorted({symbol for _, sound, _ in pairs for symbol in sound})]
    codes = {symbol: code for code, symbol in enumerate(symbols)}
    random.seed(SEED)
    torch.manual_seed(SEED)
    net = Net(len(symbols))
    optimizer = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=0.02, betas=(0.9, 0.98))
    base = sum(word not in derived for word, _, _ in pairs)
    steps = int(EPOCHS * (base + DERIVED_SHARE * (len(pairs) - base)) / BATCH) + EPOCHS
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps + 50, pct_start=0.12)
    start = time.monotonic()
    for epoch in range(EPOCHS):
        chosen = [pair for pair in pairs if pair[0] not in derived or random.random() < DERIVED_SHARE]
        chosen.sort(key=lambda pair: len(pair[0]) + 2 * random.random())
        batches = [chosen[first : first + BATCH] for first in range(0, len(chosen), BATCH)]
        random.shuffle(batches)
        total = 0.0
        for batch in batches:
            loss = _loss(net, batch, codes)
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            if schedule.last_epoch < steps + 49:
                schedule.step()
            total += loss.item()
        print(f"epoch {epoch + 1}: loss {total / len(batches):.4f}, {time.monotonic() - start:.0f} s", flush=True)
    return net, symbols


def _loss(net: Net, batch: list[tuple[str, list[str], int]], codes: dict[str, int]) -> Tensor:
    longest = max(len(word) for word, _, _ in batch)
    ids = torch.full((len(batch), longest), BOUNDARY)
    for row, (word, _, _) in enumerate(batch):
        ids[row, : len(word)] = torch.tensor(letter_ids(word))
    mask = (ids != BOUNDARY).float().unsqueeze(-1)
    targets = torch.tensor([codes[symbol] for _, sound, _ in batch for symbol in sound])
    sizes = torch.tensor([len(sound) for _, sound, _ in batch])
    slots = torch.tensor([SLOTS * len(word) for word, _, _ in batch])

    def loss(scores: Tensor) -> Tensor:
        return functional.ctc_loss(scores.log_softmax(-1).transpose(0, 1), targets, slots, sizes, zero_infinity=True)

    *told, final = map(loss, net(ids, mask, torch.tensor([style for _, _, style in batch])))
    return final + TOLD_LOSS * torch.stack(told).sum()


def save(net: Net, symbols: list[str], path: Path) -> None:
    """Matrices as int8 with one scale a column, vectors and styles as float32."""
    state = {name: tensor.detach().numpy() for name, tensor in net.state_dict().items()}
    tables = {
        "window": np.concatenate([state[f"window.{k}.weight"] for k in range(WINDOW)]),
        "trigram": state["trigram.weight"],
    }
    for name in state:
        if name.endswith(".weight") and not name.startswith(("window", "trigram.", "norm", "style")):
            tables[name.removesuffix(".weight")] = state[name].T
    tensors: dict[str, np.ndarray] = {}
    for name, table in tables.items():
        scale = np.maximum(np.abs(table).max(0), 1e-8) / 127
        tensors[name] = np.ascontiguousarray(np.round(table / scale).astype(np.int8))
        tensors[name + ".scale"] = scale.astype(np.float32)
    tensors |= {name: state[name] for name in state if name.endswith(".bias") or "norm" in name}
    tensors["style"] = state["style.weight"]
    save_file(tensors, path, metadata={"symbols": " ".join(symbols[1:])})


def word_errors(model: LetterToSound, words: dict[str, str]) -> tuple[float, float]:
    """Share of wrong words: stress ignored, and with stress."""
    loose = strict = 0
    for word, sound in words.items():
        got = model.pronounce(word)
        strict += got != sound
        loose += _plain(got) != _plain(sound)
    return loose / len(words), strict / len(words)


def _plain(sound: str) -> str:
    return sound.replace(PRIMARY, "").replace(SECONDARY, "")


def main() -> None:
    wheel = Path(sys.argv[1])
    words, gold = word_list(read_source(wheel)), word_list(read_source(wheel, [GOLD]))
    held_out = {word: sound for word, sound in sorted(words.items()) if is_held_out(word)}
    taught = {word: sound for word, sound in words.items() if word not in held_out}
    entries = {word: Word(sound) for word, sound in taught.items()}
    derived = {word for word, sound in taught.items() if inflected(word, entries.get) == Word(sound)}
    print(f"{len(taught)} words to learn from ({len(derived)} with an ending), {len(held_out)} held out", flush=True)
    net, symbols = train(taught, gold, derived)
    save(net, symbols, TARGET)
    styles = {word: GOLD_STYLE if word in gold else SILVER_STYLE for word in held_out}
    sample = sorted(random.Random(SEED).sample(sorted(held_out), SAMPLE_SIZE))
    SAMPLE.write_text("".join(f"{word}\t{held_out[word]}\t{styles[word]}\n" for word in sample), encoding="utf-8")
    wrong = 0.0
    for style, name in ((GOLD_STYLE, "gold"), (SILVER_STYLE, "silver")):
        part = {word: sound for word, sound in held_out.items() if styles[word] == style}
        loose, strict = word_errors(LetterToSound(TARGET, style), part)
        wrong += loose * len(part)
        print(f"{len(part)} {name} words: {loose:.2%} wrong without stress, {strict:.2%} with stress")
    print(f"all {len(held_out)}: {wrong / len(held_out):.2%} wrong without stress")


if __name__ == "__main__":
    main()
