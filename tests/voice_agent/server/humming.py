"""The fake engine, humming: a codec lets no constant level through."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tts_engine.admission import Priority
from tts_engine.types import AudioChunk
from voice_agent.errors import SaylineError
from voice_agent.testing.fake_engine import FakeSession, FakeSynthesizer


class HummingEngine(FakeSynthesizer):
    """Hums its words at 440 Hz."""

    def open(self, priority: Priority = "interactive") -> FakeSession:
        return HummingSession(self)


class HummingSession(FakeSession):
    def _give(self, item: AudioChunk | SaylineError) -> None:
        if isinstance(item, AudioChunk):
            places = item.start_sample + np.arange(len(item.samples))
            item = replace(item, samples=item.samples * np.sin(2 * np.pi * 440 * places / 24_000).astype(np.float32))
        super()._give(item)
