"""What became of a turn: said, heard, left out, failed; as values and for JSON."""

from __future__ import annotations

from dataclasses import dataclass

from voice_agent.llm.deltas import ToolCall
from voice_agent.metrics import SentenceTimes
from voice_agent.text.speakable import Skipped

__all__ = ["Report"]


@dataclass(frozen=True, slots=True)
class Report:
    """What became of a turn.

    ``text``: all that the LLM wrote; ``heard``: the part of it, from the start, that was heard; ``sentences``: what was
    spoken, with times; ``audio_s``: how long that sounds; ``heard_s``: how much was heard; ``unheard_s``: synthesised
    but never heard; ``skipped``: what was left out and why; ``unspoken``: sentences that failed; ``fillers``: what was
    said while tools ran; ``interrupted``: the turn was cut before its end; ``warnings``: for people.
    """

    text: str
    heard: str
    sentences: tuple[SentenceTimes, ...]
    audio_s: float
    heard_s: float
    unheard_s: float
    skipped: tuple[Skipped, ...]
    unspoken: tuple[str, ...]
    fillers: tuple[str, ...]
    warnings: tuple[str, ...]
    tool_calls: tuple[ToolCall, ...]
    interrupted: bool = False

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return {
            "text": self.text,
            "heard": self.heard,
            "audio_s": round(self.audio_s, 5),
            "heard_s": round(self.heard_s, 5),
            "unheard_s": round(self.unheard_s, 5),
            "interrupted": self.interrupted,
            "sentences": [times.as_dict() for times in self.sentences],
            "skipped": [{"kind": s.kind, "start": s.start, "end": s.end, "reason": s.rule} for s in self.skipped],
            "unspoken": list(self.unspoken),
            "fillers": list(self.fillers),
            "warnings": list(self.warnings),
            "tool_calls": [{"name": call.name, "arguments": call.arguments} for call in self.tool_calls],
        }
