"""Fixtures that many tests share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tts_engine.engine import Engine
    from tts_engine.models.build import VoiceModels

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="session")
def models() -> VoiceModels:
    """The embedded voice's models."""
    from tts_engine.models.build import build_models
    from tts_engine.weights import VoiceManifest

    return build_models(VoiceManifest.load())


@pytest.fixture(scope="session")
def engine() -> Engine:
    """An engine with the embedded voice, in its default configuration."""
    from tts_engine.engine import Engine

    return Engine.load()
