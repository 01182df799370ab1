"""Compares Sayline's sentence splitter with those of other projects: a table for people, then one JSON line.

    python -m venv peers
    peers/bin/pip install numpy pyyaml stream2sentence pysbd sentencex pipecat-ai livekit-agents
    peers/bin/python -m benchmarks.splitters

Splitters that are not installed are skipped. Every peer gets what helps it: the language of each case, no minimum
length, and its streaming form if it has one. Answers are compared without regard to whitespace.

* right: cases where all pieces are as they should be, fed four characters at a time.
* steady: cases where the pieces are the same for the whole text at once, and for 1, 2, 3 and 7 characters at a time.
* lag: characters after the end of a piece that have to be seen before it is given, mean and worst, fed one at a time,
  over the pieces of the right cases that more text follows.
* speed: characters per second of processor time, one thread, over running English and Chinese sentences, fed four
  characters at a time (all at once to a splitter without a streaming form).
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import os
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import yaml

from benchmarks.measure import Row, report
from voice_agent.text.sentences import SentenceSplitter

TESTS = Path(__file__).parents[1] / "tests"
FILES = {"given": TESTS / "cases" / "sentences.yaml", "own": TESTS / "cases_more" / "sentences.yaml"}
SPEED_CHARS = 20_000

Streaming = Callable[[Iterable[str], str], Iterator[str]]
"""Text chunks and a language to pieces, each given as soon as the splitter gives it."""


def sayline(chunks: Iterable[str], language: str) -> Iterator[str]:
    splitter = SentenceSplitter()
    for chunk in chunks:
        for piece in splitter.feed(chunk):
            yield piece.text
    for piece in splitter.flush():
        yield piece.text


def stream2sentence() -> Streaming:
    from stream2sentence import generate_sentences

    def stream(chunks: Iterable[str], language: str) -> Iterator[str]:
        yield from generate_sentences(
            iter(chunks),
            minimum_sentence_length=1,
            minimum_first_fragment_length=1,
            language=language,
            auto_context=True,
        )

    return stream


def pipecat() -> Streaming:
    os.environ.setdefault("LOGURU_LEVEL", "ERROR")
    from pipecat.utils.text.simple_text_aggregator import SimpleTextAggregator

    def stream(chunks: Iterable[str], language: str) -> Iterator[str]:
        aggregator = SimpleTextAggregator()

        async def add(chunk: str) -> list[str]:
            return [found.text async for found in aggregator.aggregate(chunk)]

        loop = asyncio.new_event_loop()
        try:
            for chunk in chunks:
                yield from loop.run_until_complete(add(chunk))
            rest = loop.run_until_complete(aggregator.flush())
            if rest:
                yield rest.text
        finally:
            loop.close()

    return stream


def livekit(module: str) -> Callable[[], Streaming]:
    def load() -> Streaming:
        tokenizer = importlib.import_module(f"livekit.agents.tokenize.{module}").SentenceTokenizer(min_sentence_len=1)

        def stream(chunks: Iterable[str], language: str) -> Iterator[str]:
            loop = asyncio.new_event_loop()
            asyncio.set_event_loop(loop)
            try:
                sentences = loop.run_until_complete(opened())

                def ready() -> Iterator[str]:
                    while not sentences._event_ch.empty():
                        yield sentences._event_ch.recv_nowait().token

                for chunk in chunks:
                    sentences.push_text(chunk)
                    yield from ready()
                sentences.end_input()
                yield from ready()
            finally:
                loop.close()

        async def opened() -> Any:
            return tokenizer.stream()

        return stream

    return load


def whole_text(split: Callable[[str, str], list[str]]) -> Streaming:
    return lambda chunks, language: iter(split("".join(chunks), language))


def pysbd() -> Streaming:
    import pysbd as package

    segmenters = {language: package.Segmenter(language=language, clean=False) for language in ("en", "zh")}
    return whole_text(lambda text, language: segmenters[language].segment(text))


def sentencex() -> Streaming:
    import sentencex as package

    return whole_text(lambda text, language: list(package.segment(language, text)))


SPLITTERS: dict[str, tuple[str, bool, Callable[[], Streaming]]] = {
    "Sayline": ("", True, lambda: sayline),
    "stream2sentence": ("stream2sentence", True, stream2sentence),
    "Pipecat": ("pipecat-ai", True, pipecat),
    "LiveKit (blingfire)": ("livekit-agents", True, livekit("blingfire")),
    "LiveKit (basic)": ("livekit-agents", True, livekit("basic")),
    "pysbd": ("pysbd", False, pysbd),
    "sentencex": ("sentencex", False, sentencex),
}
"""Name: (distribution, whether it takes a stream, how to load it)."""


def chunked(text: str, size: int) -> list[str]:
    return [text[i : i + size] for i in range(0, len(text), size)]


def squeezed(pieces: Iterable[str]) -> list[str]:
    return [found for piece in pieces if (found := "".join(piece.split()))]


def language_of(case: dict[str, Any]) -> str:
    return "zh" if case["lang"] == "zh" else "en"


def lags(stream: Streaming, case: dict[str, Any]) -> list[int]:
    """For each piece but the last: characters seen beyond its end when it was given."""
    text, seen = case["text"], 0

    def characters() -> Iterator[str]:
        nonlocal seen
        for char in text:
            seen += 1
            yield char

    found = []
    ends = []
    position = 0
    for piece in case["pieces"]:
        for char in "".join(piece.split()):
            position = text.index(char, position) + 1
        ends.append(position)
    for end, _ in zip(ends, stream(characters(), language_of(case)), strict=False):
        found.append(max(seen - end, 0))
    return found[: len(ends) - 1]


def measure(name: str) -> Row | None:
    """One splitter's row, None where it is not installed."""
    package, streams, load = SPLITTERS[name]
    try:
        stream = load()
    except ImportError:
        return None
    version = importlib.metadata.version(package) if package else "this tree"
    row: Row = {"splitter": name, "version": version}
    all_lags: list[int] = []
    steady = total = 0
    for label, path in FILES.items():
        cases = yaml.safe_load(path.read_text(encoding="utf-8"))
        right = 0
        for case in cases:
            language = language_of(case)
            pieces = squeezed(stream(chunked(case["text"], 4), language))
            is_right = pieces == squeezed(case["pieces"])
            right += is_right
            total += 1
            sizes = (1, 2, 3, 7, len(case["text"])) if streams else ()
            steady += all(squeezed(stream(chunked(case["text"], size), language)) == pieces for size in sizes)
            if is_right and streams and squeezed(stream(list(case["text"]), language)) == pieces:
                all_lags += lags(stream, case)
        row[f"right, {label} cases"] = f"{right} / {len(cases)}"
    return row | {
        "steady": f"{steady} / {total}" if streams else "–",
        "lag, mean": round(sum(all_lags) / len(all_lags), 2) if all_lags else "whole text",
        "lag, worst": max(all_lags, default="whole text"),
        "characters/s": round(speed(stream, streams)),
    }


def speed(stream: Streaming, streams: bool) -> float:
    sentences = yaml.safe_load((TESTS / "data" / "eval.yaml").read_text(encoding="utf-8"))
    seconds = 0.0
    for language in ("en", "zh"):
        running = (" " if language == "en" else "").join(sentences[language])
        text = (running * (SPEED_CHARS // len(running) + 1))[:SPEED_CHARS]
        chunks = chunked(text, 4) if streams else [text]
        began = time.process_time()
        for _ in stream(chunks, language):
            pass
        seconds += time.process_time() - began
    return 2 * SPEED_CHARS / seconds


def main() -> None:
    rows: list[Row] = []
    for name in SPLITTERS:
        row = measure(name)
        if row is None:
            print(f"not installed: {name}")
        else:
            rows.append(row)
    report("splitters", rows, threads=1)


if __name__ == "__main__":
    main()
