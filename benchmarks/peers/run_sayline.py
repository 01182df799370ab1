"""Sayline's embedded voice, on one thread: the engine alone, as the peers are."""

from __future__ import annotations

from protocol import Speak, serve


def load() -> tuple[str, Speak]:
    from tts_engine.engine import Engine
    from tts_engine.types import Utterance

    engine = Engine.load()
    return f"Sayline, {type(engine.model).__name__}", lambda text: (
        (chunk.samples, chunk.format.sample_rate) for chunk in engine.speak(Utterance(text))
    )


serve(load)
