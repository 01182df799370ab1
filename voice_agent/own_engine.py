"""An engine of the embedded voice for one listener, and the format of what an engine makes."""

from __future__ import annotations

from tts_engine.engine import Engine, EngineConfig
from tts_engine.scheduler import Scheduler, SchedulerConfig
from tts_engine.types import AudioFormat
from tts_engine.weights import VoiceManifest
from voice_agent.sinks.base import BaseSink
from voice_agent.turn import TurnConfig

__all__ = ["ENGINE_FORMAT", "own_engine"]

ENGINE_FORMAT = AudioFormat()


def own_engine(config: TurnConfig, arithmetic: EngineConfig | None = None) -> Scheduler:
    """An engine that is not started yet: it and the sink together are ``config.ahead_s`` seconds ahead of the ear.

    Raises VoiceError for a voice that it does not have: before a file is opened, and so emptied, for nothing.
    """
    if config.prosody.voice != "auto":
        VoiceManifest.load().check(config.prosody.voice)
    ahead_s = max(1.0, config.ahead_s - BaseSink.buffer_s)
    return Scheduler(lambda: Engine.load(config=arithmetic), SchedulerConfig(ahead_s=ahead_s))
