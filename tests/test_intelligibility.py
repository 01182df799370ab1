"""What the engine says can be understood: a real recogniser writes down the evaluation sentences."""

from __future__ import annotations

import numpy as np
import pytest
import yaml

from tests.conftest import DATA
from tests.edits import edits
from tests.recogniser import chinese_characters, english_words, require, transcribe
from tts_engine.engine import Engine
from tts_engine.types import Utterance

SENTENCES = yaml.safe_load((DATA / "eval.yaml").read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "units", "most"), [("en", english_words, 0.08), ("zh", chinese_characters, 0.20)], ids=["en", "zh"]
)
def test_the_evaluation_sentences_are_understood(engine: Engine, language, units, most, record_property) -> None:
    require()
    wrong = total = 0
    for text in SENTENCES[language]:
        samples = np.concatenate([chunk.samples for chunk in engine.speak(Utterance(text))])
        expected, heard = units(text), units(transcribe(samples, language))
        errors = edits(heard, expected)
        wrong += errors
        total += len(expected)
        if errors:
            print(f"{errors} wrong: {text!r} heard as {heard}")
    print(f"{language}: {wrong} of {total} wrong, {wrong / total:.1%}")
    record_property("error_rate", wrong / total)
    assert wrong / total <= most
