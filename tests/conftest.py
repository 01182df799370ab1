"""Fixtures that many tests share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from tts_engine.engine import Engine
    from tts_engine.models.eager import EagerModel

# The same examples on every run, so that a change is judged by what it changes; SAYLINE_EXAMPLES=2000 looks for new ones.
settings.register_profile("repeatable", derandomize=True, database=None)
if "SAYLINE_EXAMPLES" not in os.environ:
    settings.load_profile("repeatable")

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="session")
def models() -> EagerModel:
    """The embedded voice's models."""
    from tts_engine.models.eager import EagerModel
    from tts_engine.weights import VoiceManifest

    return EagerModel.load(VoiceManifest.load())


@pytest.fixture(scope="session")
def engine() -> Engine:
    """An engine with the embedded voice in float32, where results can be compared to the last bits.

    In the int8 form, which is the default, a difference in the last bit may move a value to the next byte.
    """
    from tts_engine.engine import Engine, EngineConfig

    return Engine.load(config=EngineConfig(precision="float32"))
