"""Pronunciation against the phonemes that the voice learnt from: symbol error rate, the worst sentences, and the speed.

python -m benchmarks.pronunciation [--worst 20] [--language en]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import Row, median, report
from tests.pronunciation_score import (
    STRESS,
    STRESS_AND_BLANKS,
    Reference,
    joined,
    read_references,
    score,
    symbol_error_rate,
)
from tts_engine.text.frontend import FrontEnd
from tts_engine.text.g2p_en import EnglishG2P
from tts_engine.text.normalize import normalize
from tts_engine.text.phonemes import symbol_ids
from tts_engine.types import Language

REFERENCE = Path(__file__).parent.parent / "tests" / "data" / "g2p_reference.jsonl"
TEN_WORDS = "I would like to record the whole meeting for you."
UNKNOWN_WORDS = ("blorpington", "zyntharix", "quendalor", "frimbulate", "snorvaque", "dromolux", "gulbraneth")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worst", type=int, default=10, help="how many of the worst sentences to list")
    parser.add_argument("--language", choices=("en", "zh"), help="only this language")
    options = parser.parse_args()
    front_end = FrontEnd(symbol_ids())
    references = read_references(REFERENCE)
    rows: list[Row] = []
    for language in ("en", "zh"):
        if options.language in (None, language):
            chosen = [reference for reference in references if reference.language == language]
            rows.append(_errors(language, chosen, front_end, options.worst))
    report("pronunciation", rows, threads=1, **_speed())


def _errors(language: Language, references: list[Reference], front_end: FrontEnd, worst: int) -> Row:
    """A language's error rates; prints the worst sentences."""
    scored = score(references, lambda text: joined(front_end.pronounce(text, language)))
    for item in sorted(scored, key=lambda item: -item.edits)[:worst]:
        if item.edits:
            print(f"{item.edits:3}  {item.reference.text}")
            print(f"     got  {item.phonemes}")
            print(f"     want {item.reference.phonemes}")
    rates = {
        "symbol errors": symbol_error_rate(scored),
        "without stress": symbol_error_rate(scored, STRESS),
        "sounds only": symbol_error_rate(scored, STRESS_AND_BLANKS),
        "sentences right": sum(item.edits == 0 for item in scored) / len(scored),
    }
    return {"language": language, "sentences": len(scored), **{name: round(rate, 5) for name, rate in rates.items()}}


def _speed() -> dict[str, float]:
    """Microseconds for a sentence of ten words, the first time and warm, and for a word that nobody knows."""
    g2p = EnglishG2P()
    tokens = normalize(TEN_WORDS, "en")
    first_us = _elapsed_us(lambda: g2p.pronounce(tokens))
    warm_us = min(_elapsed_us(lambda: g2p.pronounce(tokens)) for _ in range(300))
    g2p.word("zzyzxify")
    unknown_us = median([_elapsed_us(lambda word=word: g2p.word(word)) for word in UNKNOWN_WORDS])  # type: ignore[misc]
    print(f"ten words: first {first_us / 1e3:.2f} ms, warm {warm_us:.0f} µs; an unknown word {unknown_us:.0f} µs")
    return {"ten_words_first_us": first_us, "ten_words_warm_us": warm_us, "unknown_word_us": unknown_us}


def _elapsed_us(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1e6


if __name__ == "__main__":
    main()
