"""The timeline of a turn: when each sentence passed each stage, on one monotonic clock.

    token ─▶ closed ─▶ planned ─▶ first_frame ─▶ first_sample ─▶ first_audible ─▶ heard

``token``: the first delta of the sentence came in. ``closed``: the grouper gave it. ``planned``: speed and breaks are
known. ``first_frame``: the decoder has made its first frames. ``first_sample``: the first packet is there.
``first_audible``: the packet with the first sample above −50 dBFS is there. ``heard``: its last sample was heard.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np

from tts_engine.planning import AUDIBLE
from tts_engine.types import AudioChunk, Utterance, raw_span

STAGES = ("token", "closed", "planned", "first_frame", "first_sample", "first_audible", "heard")


@dataclass(slots=True)
class SentenceTimes:
    """One sentence's passage; times in seconds from the start of the turn, None where a stage was not reached.

    ``start`` and ``end`` are raw offsets, ``speed`` and ``break_after_ms`` what was planned, ``audio_s`` how long it
    sounds.
    """

    index: int
    text: str
    start: int
    end: int
    voice: str
    speed: float
    break_after_ms: int
    token_s: float | None = None
    closed_s: float | None = None
    planned_s: float | None = None
    first_frame_s: float | None = None
    first_sample_s: float | None = None
    first_audible_s: float | None = None
    heard_s: float | None = None
    audio_s: float = 0.0

    def as_dict(self) -> dict[str, object]:
        """For JSON; times rounded to a hundredth of a millisecond."""
        return {key: round(value, 5) if isinstance(value, float) else value for key, value in asdict(self).items()}


class Timeline:
    """Collects the times of a turn. ``now_s`` is the clock, ``time.monotonic`` unless a test hands one in."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._began_s = now_s()
        self._arrivals: deque[tuple[int, float]] = deque()  # (raw offset after a delta, when it came)
        self._received = 0
        self.sentences: list[SentenceTimes] = []

    def elapsed_s(self) -> float:
        """Seconds since the turn began."""
        return self._now_s() - self._began_s

    def received(self, characters: int) -> None:
        """A delta of so many characters came in."""
        self._received += characters
        self._arrivals.append((self._received, self.elapsed_s()))

    def planned(self, utterance: Utterance, closed_s: float) -> None:
        """An utterance is ready for the engine; utterances come in order of their index."""
        start, end = raw_span(utterance.runs, 0, len(utterance.text))
        while len(self._arrivals) > 1 and self._arrivals[0][0] <= start:
            self._arrivals.popleft()
        row = SentenceTimes(
            utterance.index,
            utterance.text,
            start,
            end,
            utterance.voice,
            utterance.speed,
            utterance.break_after_ms,
            token_s=self._arrivals[0][1] if self._arrivals else None,
            closed_s=closed_s,
            planned_s=self.elapsed_s(),
        )
        self.sentences.append(row)

    def made(self, chunk: AudioChunk) -> None:
        """A packet came out of the engine."""
        row = self.sentences[chunk.utterance.index]
        row.audio_s += chunk.duration_s
        if row.first_frame_s is None and chunk.first_frame_s is not None:
            row.first_frame_s = chunk.first_frame_s - self._began_s
        made_s = (chunk.made_s if chunk.made_s is not None else self._now_s()) - self._began_s
        if row.first_sample_s is None and len(chunk.samples):
            row.first_sample_s = made_s
        if row.first_audible_s is None and len(chunk.samples) and float(np.abs(chunk.samples).max()) > AUDIBLE:
            row.first_audible_s = made_s

    def heard(self, index: int, at_s: float) -> None:
        """The last sample of a sentence was heard, ``at_s`` seconds after the turn began."""
        self.sentences[index].heard_s = at_s
