"""Fixtures that many tests share."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.examples import SEARCHES, examples

if TYPE_CHECKING:
    from tts_engine.engine import Engine
    from tts_engine.models.eager import EagerModel

# The same examples on every run, so that a change is judged by what it changes, unless new ones are looked for. No limit
# of time: a shared machine may lose a second in any of them.
settings.register_profile(
    "sayline",
    max_examples=examples(100),
    derandomize=not SEARCHES,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("sayline")

# A job in the background ignores Ctrl-C, and so would the commands that tests start to interrupt them.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

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
