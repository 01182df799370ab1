"""What ``instructions`` can change: a few words about pace, loudness and pitch, in English and Chinese. The rest is not
followed, since the voice has no styles.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Asked", "read_instructions"]


@dataclass(frozen=True, slots=True)
class Asked:
    """Factors of speed and volume, semitones of pitch."""

    speed: float = 1.0
    volume: float = 1.0
    pitch: float = 0.0


_NOT = r"(?:\b(?:not|don't|never|no|without|less)\b[\w\s',]{0,16}|(?:不要|别|不)[^，。,.]{0,4})"
_WORDS: tuple[tuple[str, Asked], ...] = (
    (r"\b(?:slow(?:ly|er)?|unhurried|leisurely)\b|慢", Asked(speed=0.85)),
    (r"\b(?:fast(?:er)?|quick(?:ly|er)?|brisk(?:ly)?|rapid(?:ly)?)\b|快(?!乐)", Asked(speed=1.2)),
    (r"\b(?:quiet(?:ly|er)?|soft(?:ly|er)?|whisper(?:ing|ed)?|gently)\b|轻声|小声|低声", Asked(volume=0.6)),
    (r"\b(?:loud(?:ly|er)?|shout(?:ing)?)\b|大声|响亮", Asked(volume=1.4)),
    (r"\b(?:cheerful(?:ly)?|excited(?:ly)?|enthusiastic|happ(?:y|ily))\b|开心|快乐|兴奋", Asked(speed=1.05, pitch=1.0)),
    (r"\b(?:calm(?:ly)?|serious(?:ly)?|sad(?:ly)?|soothing(?:ly)?)\b|平静|严肃|悲伤", Asked(speed=0.95, pitch=-1.0)),
    (r"\b(?:deep(?:er)?|low(?:er)?)[- ](?:voice|pitch(?:ed)?)\b|低沉", Asked(pitch=-2.0)),
    (r"\b(?:high(?:er)?)[- ](?:voice|pitch(?:ed)?)\b|高亢", Asked(pitch=2.0)),
)  # fmt: skip
_READ = tuple(
    (re.compile(pattern, re.IGNORECASE), re.compile(_NOT + f"(?:{pattern})", re.IGNORECASE), a) for pattern, a in _WORDS
)


def read_instructions(text: str) -> Asked:
    """What the text asks for; each kind counts once, and not behind a "not"."""
    speed = volume = 1.0
    pitch = 0.0
    for pattern, negated, asked in _READ:
        if pattern.search(negated.sub(" ", text)):
            speed, volume, pitch = speed * asked.speed, volume * asked.volume, pitch + asked.pitch
    return Asked(speed, volume, pitch)
