"""The voices by name: Sayline's own, and OpenAI's thirteen as pitches of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tts_engine.weights import VoiceManifest
from voice_agent.errors import VoiceError, clipped

__all__ = ["OPENAI_VOICES", "VoiceChoice", "Voices"]

OPENAI_VOICES: Mapping[str, float] = {
    "alloy": 0.0,
    "ash": -3.0,
    "ballad": -2.0,
    "cedar": -4.0,
    "coral": 1.0,
    "echo": -2.5,
    "fable": -1.5,
    "marin": 0.5,
    "nova": 1.5,
    "onyx": -5.0,
    "sage": -0.5,
    "shimmer": 2.0,
    "verse": -1.0,
}
"""Semitones from the voice that speaks the language: the names stay apart, and each speaks both languages as OpenAI's do."""


@dataclass(frozen=True, slots=True)
class VoiceChoice:
    """A voice as it is asked for: ``name`` of it, the ``speaker`` of the engine ("auto": by language), and the pitch."""

    name: str
    speaker: str
    pitch: float
    languages: tuple[str, ...]
    description: str


class Voices:
    """All voices that requests may name. Names are looked up, never used as paths."""

    def __init__(self, choices: Mapping[str, VoiceChoice]) -> None:
        self.choices = choices

    @staticmethod
    def load() -> Voices:
        """Those of the embedded voice folder, "auto" and OpenAI's names."""
        manifest = VoiceManifest.load()
        both = tuple(manifest.auto)
        choices = {"auto": VoiceChoice("auto", "auto", 0.0, both, "By the language of the text")}
        for speaker in manifest.speakers.values():
            choices[speaker.name] = VoiceChoice(speaker.name, speaker.name, 0.0, speaker.languages, speaker.description)
        for name, pitch in OPENAI_VOICES.items():
            choices[name] = VoiceChoice(name, "auto", pitch, both, f"OpenAI's name: auto, {pitch:+g} semitones")
        return Voices(choices)

    def find(self, name: str) -> VoiceChoice:
        """The voice of that name, in any case. Raises VoiceError that lists all."""
        choice = self.choices.get(name.strip().lower())
        if choice is None:
            raise VoiceError(f"unknown voice {clipped(name)!r}; there are {', '.join(self.choices)}")
        return choice
