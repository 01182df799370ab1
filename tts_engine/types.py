"""The values that travel through Sayline, from the raw text to the samples. Plain data.

Offsets come in two kinds and their names say which: *raw* offsets count the characters of the LLM's own stream (all text
deltas joined); *text* offsets count the characters of the text that an object carries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Samples = NDArray[np.float32]
else:
    Samples = Any  # the text path imports this module and needs no numpy

Language = Literal["en", "zh"]
TagName = Literal["speed", "break", "pitch", "volume"]


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of text and the raw characters it came from.

    Where ``len(text) == end - start`` character *i* of the text is raw character ``start + i``. Where it is not (an entity,
    a URL read as "link") every character of the text stands for the whole raw span.

    ``literal`` marks text that markup readers must take as it stands: escaped marks and code.
    """

    text: str
    start: int
    end: int
    literal: bool = False

    @property
    def verbatim(self) -> bool:
        return len(self.text) == self.end - self.start


@dataclass(frozen=True, slots=True)
class Tag:
    """A prosody instruction that the LLM wrote: a field, never text.

    ``speed`` and ``volume`` are factors, ``pitch`` is in semitones, ``break`` in milliseconds; values are already clamped.
    ``start`` and ``end`` are raw offsets of what was written.
    """

    name: TagName
    value: float
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class Mark:
    """A tag at a place: it takes effect before character ``index`` of the text (``index == len(text)``: after it)."""

    index: int
    tag: Tag


@dataclass(frozen=True, slots=True)
class Utterance:
    """One planned piece of speech: what the engine is given.

    ``speed`` and ``volume`` are factors, ``pitch`` is in semitones. ``marks`` hold the tags inside the text, in order.
    ``runs`` map ``text`` back to raw offsets. ``voice`` "auto" picks the voice by language; ``language`` None detects it.
    """

    text: str
    voice: str = "auto"
    language: Language | None = None
    speed: float = 1.0
    pitch: float = 0.0
    volume: float = 1.0
    break_before_ms: int = 0
    break_after_ms: int = 0
    marks: tuple[Mark, ...] = ()
    runs: tuple[Run, ...] = ()
    index: int = 0


@dataclass(frozen=True, slots=True)
class WordTime:
    """When one word (English) or character (Chinese) sounds: samples from the start of its utterance's audio.

    The end of an utterance's last word is an estimate: the sound may stop a little earlier. ``start`` and ``end`` are text
    offsets in the utterance.
    """

    start: int
    end: int
    start_sample: int
    end_sample: int


@dataclass(frozen=True, slots=True)
class AudioFormat:
    """What samples mean. Sayline's own audio is float32 in [-1, 1]; ``width`` is how many bytes a sample of PCM has."""

    sample_rate: int = 24_000
    channels: int = 1
    width: int = 2


@dataclass(frozen=True, slots=True)
class AudioChunk:
    """A packet of speech.

    ``samples``: [samples] float32 (mono) or [samples, channels]. ``start_sample`` counts from the start of the utterance.
    ``words`` are the words that begin inside this packet, with times in samples from the start of the utterance.
    ``last`` is True on the closing packet of the utterance (which may be empty). ``first_frame_s`` and ``made_s`` tell, on
    ``time.monotonic``, when the utterance's first frames were decoded and when this packet was ready.
    """

    samples: Samples
    format: AudioFormat
    utterance: Utterance
    start_sample: int = 0
    words: tuple[WordTime, ...] = ()
    last: bool = False
    first_frame_s: float | None = None
    made_s: float | None = None

    @property
    def duration_s(self) -> float:
        return len(self.samples) / self.format.sample_rate


def raw_span(runs: Sequence[Run], start: int, end: int) -> tuple[int, int]:
    """The raw span ``[first, last)`` that text characters ``[start, end)`` came from.

    An empty text span gives an empty raw span at the place of its start. Without runs the text is taken as raw.
    """
    if not runs:
        return start, end
    first: int | None = None
    last = 0
    position = 0
    for run in runs:
        stop = position + len(run.text)
        if stop > start or (run is runs[-1] and first is None):
            low, high = max(start, position) - position, min(end, stop) - position
            if first is None:
                first = run.start + low if run.verbatim else run.start
                last = first
            if high > low:
                last = run.start + high if run.verbatim else run.end
        if stop >= end and first is not None:
            break
        position = stop
    assert first is not None
    return first, last


def slice_runs(runs: Sequence[Run], start: int, end: int) -> tuple[Run, ...]:
    """The runs of text characters ``[start, end)``; a run that is not verbatim keeps its whole raw span when it is cut."""
    out: list[Run] = []
    position = 0
    for run in runs:
        stop = position + len(run.text)
        low, high = max(start - position, 0), min(end - position, len(run.text))
        if low < high:
            if high - low == len(run.text):
                out.append(run)
            elif run.verbatim:
                out.append(Run(run.text[low:high], run.start + low, run.start + high, run.literal))
            else:
                out.append(Run(run.text[low:high], run.start, run.end, run.literal))
        if stop >= end:
            break
        position = stop
    return tuple(out)
