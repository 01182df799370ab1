"""What the faster arithmetic costs in quality: each engine against eager float32 on the evaluation sentences.

    pip install --no-deps distillmos xls-r-sqa
    python -m benchmarks.quality [--engines NAME ...] [--sentences N] [--no-recogniser] [--plot FILE]

*Log-mel*: mean difference in dB of 80 bands, within 60 dB of the loudest, of the same sentence with the same noise, aligned in
time (durations may differ by a frame); the row "other noise" says what a difference that nobody minds looks like. *Other
length*: sentences in which a duration differs or whose silence at the end was cut elsewhere. *DistillMOS*: predicted opinion
score from 1 to 5, and the mean paired difference to the reference with its 95 % interval. *Errors*: words (English) and
characters (Chinese) that whisper base gets wrong.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import types
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soxr
import yaml

from benchmarks.measure import Row, report
from benchmarks.plots import add_plot_option, bars
from tests.edits import edits
from tests.recogniser import chinese_characters, english_words, transcribe
from tts_engine.engine import Engine, EngineConfig
from tts_engine.planning import SAMPLE_RATE
from tts_engine.types import Samples, Utterance

SENTENCES = Path(__file__).parent.parent / "tests" / "data" / "eval.yaml"
UNITS: dict[str, Callable[[str], list[str]]] = {"en": english_words, "zh": chinese_characters}
REFERENCE = "eager float32"
FFT, HOP, BANDS = 1024, 256, 80
FLOOR_DB = -60.0


def engines() -> dict[str, Callable[[], Engine]]:
    """What is compared, by name; the first is the reference."""

    def load(**options: object) -> Callable[[], Engine]:
        return lambda: Engine.load(config=EngineConfig(**options))  # type: ignore[arg-type]

    return {
        REFERENCE: load(compile="none", precision="float32"),
        "eager float32, other noise": load(compile="none", precision="float32", seed=1),
        "eager bfloat16": load(compile="none", precision="bfloat16"),
        "ONNX Runtime float32": load(compile="onnx", precision="float32"),
        "ONNX Runtime int8": load(compile="onnx", precision="int8"),
    }


@dataclass(frozen=True, slots=True)
class Said:
    """One sentence of one engine."""

    language: str
    text: str
    samples: Samples


def speak(engine: Engine, count: int | None) -> list[Said]:
    sentences = yaml.safe_load(SENTENCES.read_text(encoding="utf-8"))
    return [
        Said(language, text, np.concatenate([chunk.samples for chunk in engine.speak(Utterance(text))]))
        for language in UNITS
        for text in sentences[language][:count]
    ]


def log_mel(samples: Samples) -> np.ndarray:
    """[frames, BANDS] in dB; a Hann window, triangles on the mel scale of HTK (O'Shaughnessy 1987)."""
    frames = np.lib.stride_tricks.sliding_window_view(np.pad(samples, (FFT // 2, FFT // 2)), FFT)[::HOP]
    power = np.abs(np.fft.rfft(frames * np.hanning(FFT))) ** 2
    mel = np.linspace(0, 2595 * np.log10(1 + SAMPLE_RATE / 2 / 700), BANDS + 2)
    edges_hz = 700 * (10 ** (mel / 2595) - 1)
    bins_hz = np.arange(FFT // 2 + 1) * SAMPLE_RATE / FFT
    rising = (bins_hz - edges_hz[:-2, None]) / (edges_hz[1:-1] - edges_hz[:-2])[:, None]
    falling = (edges_hz[2:, None] - bins_hz) / (edges_hz[2:] - edges_hz[1:-1])[:, None]
    return 10 * np.log10(power @ np.maximum(0, np.minimum(rising, falling)).T + 1e-10)


def warped(cost: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cheapest way through ``cost`` [frames, frames], pairs of frames (dynamic time warping, Sakoe and Chiba 1978)."""
    rows, columns = cost.shape
    total = np.full((rows + 1, columns + 1), np.inf)
    total[0, 0] = 0
    for diagonal in range(2, rows + columns + 1):
        i = np.arange(max(1, diagonal - columns), min(rows, diagonal - 1) + 1)
        j = diagonal - i
        before = np.minimum(total[i - 1, j - 1], np.minimum(total[i - 1, j], total[i, j - 1]))
        total[i, j] = cost[i - 1, j - 1] + before
    i, j = rows, columns
    pairs = []
    while i and j:
        pairs.append((i - 1, j - 1))
        i, j = min(((i - 1, j - 1), (i - 1, j), (i, j - 1)), key=lambda at: total[at])
    ours, theirs = np.array(pairs[::-1]).T
    return ours, theirs


def distance_db(ours: Samples, reference: Samples) -> float:
    """Mean difference of the log-mels, aligned in time, where the reference is within 60 dB of its loudest."""
    a, b = log_mel(ours), log_mel(reference)
    floor = b.max() + FLOOR_DB
    a, b = np.maximum(a, floor).astype(np.float32), np.maximum(b, floor).astype(np.float32)
    i, j = warped(np.stack([np.abs(b - frame).mean(axis=1) for frame in a]))
    return float(np.abs(a[i] - b[j])[b[j] > floor].mean())


def opinion_scorer() -> Callable[[Samples], float]:
    """DistillMOS (Stahl and Gamper, 2025): samples to a score from 1 to 5."""
    sys.modules.setdefault("torchaudio", types.ModuleType("torchaudio"))  # only its command line needs it
    import torch
    from distillmos import ConvTransformerSQAModel

    model = ConvTransformerSQAModel().eval()

    @torch.inference_mode()
    def score(samples: Samples) -> float:
        return float(model(torch.from_numpy(soxr.resample(samples, SAMPLE_RATE, 16_000))[None])[0])

    return score


def error_rates(said: Sequence[Said]) -> dict[str, float]:
    """The share of words or characters that the recogniser gets wrong, by language."""
    wrong: dict[str, int] = defaultdict(int)
    total: dict[str, int] = defaultdict(int)
    for sentence in said:
        units = UNITS[sentence.language]
        expected = units(sentence.text)
        wrong[sentence.language] += edits(units(transcribe(sentence.samples, sentence.language)), expected)
        total[sentence.language] += len(expected)
    return {language: wrong[language] / total[language] for language in total}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", nargs="+", choices=engines(), default=list(engines()), metavar="NAME")
    parser.add_argument("--sentences", type=int, help="of each language; default all")
    parser.add_argument("--no-recogniser", action="store_true", help="leave the error rates out, which take longest")
    add_plot_option(parser)
    options = parser.parse_args()
    names = [REFERENCE, *(name for name in options.engines if name != REFERENCE)]
    said = {name: speak(engines()[name](), options.sentences) for name in names}
    score = opinion_scorer()
    scores = {name: [score(sentence.samples) for sentence in said[name]] for name in names}
    rows: list[Row] = []
    for name in names:
        pairs = list(zip(said[name], said[REFERENCE], strict=True))
        distances = [distance_db(ours.samples, theirs.samples) for ours, theirs in pairs]
        drops = [a - b for a, b in zip(scores[name], scores[REFERENCE], strict=True)]
        row: Row = {
            "engine": name,
            "log-mel dB": round(statistics.mean(distances), 3),
            "other length": sum(len(ours.samples) != len(theirs.samples) for ours, theirs in pairs),
            "DistillMOS": round(statistics.mean(scores[name]), 3),
            "against float32": round(statistics.mean(drops), 3),
            "±": round(1.96 * statistics.pstdev(drops) / math.sqrt(len(drops)), 3),
        }
        if not options.no_recogniser:
            rates = error_rates(said[name])
            row |= {f"errors {language}": round(rate, 4) for language, rate in rates.items()}
        rows.append(row)
    report("quality", rows, threads=1, sentences=len(said[REFERENCE]))
    bars(
        options.plot,
        {
            "log-mel distance, dB": {str(row["engine"]): float(str(row["log-mel dB"])) or 1e-3 for row in rows[1:]},
            "DistillMOS": {str(row["engine"]): float(str(row["DistillMOS"])) for row in rows},
        },
        "",
    )


if __name__ == "__main__":
    main()
