"""Coverage-guided fuzzing of the text stages: tag reader, cleaner and splitter must keep their promises for any input.

    pip install atheris
    python -m benchmarks.fuzz_text --seconds 600 --seed 1

Promises: no exception; the same text, offsets and tags for the whole text, for single characters and for random
chunks; verbatim runs equal the raw text at their offsets; the splitter loses nothing. A failure is shown and its input
is kept as ``crash-*`` (read it again with ``--input FILE``). New inputs are collected in a temporary folder; the small
corpus in ``tests/data/fuzz_corpus`` is only read, and the tests run it without atheris.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import tempfile
from pathlib import Path

try:
    import atheris
except ImportError:
    atheris = None

with atheris.instrument_imports(include=["voice_agent.text"]) if atheris else contextlib.nullcontext():
    from tts_engine.types import Run
    from voice_agent.text.pieces import Item
    from voice_agent.text.sentences import SentenceSplitter
    from voice_agent.text.speakable import Cleaner, SpeakablePolicy
    from voice_agent.text.tags import TagReader

CORPUS = Path(__file__).parents[1] / "tests" / "data" / "fuzz_corpus"
LARGEST_BYTES = 2000
POLICIES = (
    SpeakablePolicy(),
    SpeakablePolicy(url="read", code="read", table="read", emoji="read", citation="read", footnote="read"),
    SpeakablePolicy(url="skip", code="mention", table="mention", image="skip"),
)


def check(data: bytes) -> None:
    """One input: the first byte chooses the policy, the second the chunks, the rest is the text."""
    text = data[2:].decode("utf-8", "surrogateescape")
    policy = POLICIES[data[0] % len(POLICIES)] if data else POLICIES[0]
    cuts = random.Random(data[1] if len(data) > 1 else 0)
    chunks, start = [], 0
    while start < len(text):
        end = start + cuts.choice((1, 2, 3, 8, 40))
        chunks.append(text[start:end])
        start = end
    raw, spoken = _run([text], policy)
    for others in (chunks, list(text)):
        other_raw, other_spoken = _run(others, policy)
        assert _singles(other_raw) == _singles(raw), "the tag reader depends on the chunks"
        assert _singles(other_spoken) == _singles(spoken), "the cleaner depends on the chunks"
    for item in raw + spoken:
        if isinstance(item, Run) and item.verbatim:
            assert text[item.start : item.end].replace("\ufdd0", "\ufffd") == item.text.replace("\ufdd0", "\ufffd")
    splitter = SentenceSplitter()
    pieces = [piece for item in spoken for piece in splitter.feed(item)] + splitter.flush()
    said = "".join(item.text for item in spoken if isinstance(item, Run))
    assert "".join("".join(piece.text for piece in pieces).split()) == "".join(said.split()), "the splitter loses text"


def _run(chunks: list[str], policy: SpeakablePolicy) -> tuple[list[Item], list[Item]]:
    reader, cleaner = TagReader(), Cleaner(policy)
    raw = [item for chunk in chunks for item in reader.feed(chunk)] + reader.flush()
    return raw, [cleaned for item in raw for cleaned in cleaner.feed(item)] + cleaner.flush()


def _singles(items: list[Item]) -> list[object]:
    """Runs as single characters with their raw offsets."""
    return [
        single
        for item in items
        for single in (
            [(character, item.start + i * item.verbatim, item.literal) for i, character in enumerate(item.text)]
            if isinstance(item, Run)
            else [item]
        )
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=600, help="how long to look for failures")
    parser.add_argument("--seed", type=int, default=1, help="of the fuzzer's random choices")
    parser.add_argument("--input", type=Path, help="check only this file")
    options = parser.parse_args()
    if options.input is not None:
        check(options.input.read_bytes())
        print("no failure")
        return
    if atheris is None:
        sys.exit("this needs atheris: pip install atheris")
    with tempfile.TemporaryDirectory() as found:
        arguments = [sys.argv[0], found, str(CORPUS), f"-max_total_time={options.seconds}", f"-seed={options.seed}"]
        atheris.Setup([*arguments, f"-max_len={LARGEST_BYTES}", "-timeout=10", "-print_final_stats=1"], check)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
