"""Fixtures that many tests share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tts_engine.engine import Engine
    from tts_engine.models.eager import EagerModel

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="session")
def models() -> EagerModel:
    """The embedded voice's models."""
    from tts_engine.models.eager import EagerModel
    from tts_engine.weights import VoiceManifest

    return EagerModel.load(VoiceManifest.load())


@pytest.fixture(scope="session")
def engine() -> Engine:
    """An engine with the embedded voice, in its default configuration."""
    from tts_engine.engine import Engine

    return Engine.load()
