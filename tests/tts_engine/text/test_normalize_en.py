"""English normalisation: the cases, and what holds for any input."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tts_engine.text.normalize_en import normalize_en

TESTS = Path(__file__).parent.parent.parent


def load(name: str) -> list[dict[str, Any]]:
    return yaml.safe_load((TESTS / name).read_text(encoding="utf-8"))


def fold(text: str) -> list[str]:
    return re.findall(r"[^\W_]+(?:'[^\W_]+)*", text.replace("’", "'").casefold().replace("-", " "))


def spoken(text: str) -> str:
    return " ".join(token.text for token in normalize_en(text))


@pytest.mark.parametrize("case", load("cases/normalize_en.yaml"), ids=lambda case: case["id"])
def test_cases(case: dict[str, Any]) -> None:
    assert fold(spoken(case["text"])) in [fold(form) for form in case.get("any_of", [case["spoken"]])], spoken(
        case["text"]
    )
