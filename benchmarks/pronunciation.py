"""Pronunciation against the phonemes that the voice learnt from: symbol error rate, the worst sentences, and the speed.

``python benchmarks/pronunciation.py [--worst 20] [--language en]``; a table for people, then one JSON line.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from tts_engine.text.frontend import FrontEnd
from tts_engine.text.g2p_en import EnglishG2P
from tts_engine.text.normalize import normalize
from tts_engine.text.phonemes import symbol_ids
from tts_engine.training.pronunciation_score import (
    STRESS,
    STRESS_AND_BLANKS,
    Reference,
    joined,
    read_references,
    score,
    symbol_error_rate,
)
from tts_engine.types import Language

REFERENCE = Path(__file__).parent.parent / "tests" / "data" / "g2p_reference.jsonl"
TEN_WORDS = "I would like to record the whole meeting for you."
UNKNOWN_WORDS = ("blorpington", "zyntharix", "quendalor", "frimbulate", "snorvaque", "dromolux", "gulbraneth")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worst", type=int, default=10, help="how many of the worst sentences to list")
    parser.add_argument("--language", choices=("en", "zh"), help="only this language")
    options = parser.parse_args()
    front_end = FrontEnd(symbol_ids())
    references = read_references(REFERENCE)
    result: dict[str, object] = {
        "benchmark": "pronunciation",
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "threads": 1,
    }
    print(f"{'language':10}{'sentences':>10}{'symbol errors':>15}{'no stress':>12}{'sounds only':>13}{'all right':>11}")
    for language in ("en", "zh"):
        if options.language in (None, language):
            chosen = [reference for reference in references if reference.language == language]
            result[language] = _report(language, chosen, front_end, options.worst)
    result |= _speed()
    print(json.dumps(result, ensure_ascii=False))


def _report(language: Language, references: list[Reference], front_end: FrontEnd, worst: int) -> dict[str, float]:
    scored = score(references, lambda text: joined(front_end.pronounce(text, language)))
    rates = [symbol_error_rate(scored, without) for without in (None, STRESS, STRESS_AND_BLANKS)]
    right = sum(item.edits == 0 for item in scored) / len(scored)
    print(
        f"{language:10}{len(scored):>10}"
        + "".join(f"{rate:>{width}.2%}" for rate, width in zip(rates, (15, 12, 13), strict=True))
        + f"{right:>11.1%}"
    )
    for item in sorted(scored, key=lambda item: -item.edits)[:worst]:
        if item.edits:
            print(f"  {item.edits:3}  {item.reference.text}")
            print(f"       got  {item.phonemes}")
            print(f"       want {item.reference.phonemes}")
    return {
        "symbol_error_rate": rates[0],
        "without_stress": rates[1],
        "sounds_only": rates[2],
        "sentences_right": right,
    }


def _speed() -> dict[str, float]:
    g2p = EnglishG2P()
    tokens = normalize(TEN_WORDS, "en")
    first_us = _elapsed_us(lambda: g2p.pronounce(tokens))
    warm_us = min(_elapsed_us(lambda: g2p.pronounce(tokens)) for _ in range(300))
    g2p.word("zzyzxify")
    unknown_us = statistics.median(_elapsed_us(lambda word=word: g2p.word(word)) for word in UNKNOWN_WORDS)
    print(f"ten words: first {first_us / 1e3:.2f} ms, warm {warm_us:.0f} µs; an unknown word {unknown_us:.0f} µs")
    return {"ten_words_first_us": first_us, "ten_words_warm_us": warm_us, "unknown_word_us": unknown_us}


def _elapsed_us(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1e6


if __name__ == "__main__":
    main()
