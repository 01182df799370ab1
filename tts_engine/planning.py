"""From a script and the durations of its phonemes to what an utterance is made by: frames, pauses, volume, times of words."""

from __future__ import annotations

import sys
from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tts_engine.expansion import PROSODY_REACH_FRAMES, Alignment, Floats, fitted_durations
from tts_engine.shaping import Level, SampleShaper, Silence
from tts_engine.text.frontend import Pause, Script
from tts_engine.types import Utterance, WordTime

SAMPLE_RATE = 24_000
FRAME_SAMPLES = 600
"""Samples of a decoder frame (25 ms)."""
FRAME_MS = 1000 * FRAME_SAMPLES / SAMPLE_RATE
AUDIBLE = 10 ** (-50 / 20)
"""The level from which a sample counts as audible: −50 dBFS."""
SOUND_LEAD_FRAMES = 3
"""By how much a phoneme sounds before its place in the durations (75 ms). The voice's teacher has it, and takes it off in its
own word times (``KPipeline.join_timestamps`` of hexgrad/kokoro); measured at sibilants in docs/conversation.md."""
FINAL_PHONEME_SAMPLES = 6 * FRAME_SAMPLES
"""How long the last phoneme is taken to sound, for the end of the last word: its own duration holds silence too."""
PAUSE_FRAMES = 6
"""A pause this long (150 ms) closes a packet, which ends behind it: the next one begins with sound."""
SOUNDED_FRAMES = 3
"""How long a phoneme before a pause sounds. What it lasts beyond that is part of the pause: a voice gives more of it to that
phoneme than to the comma (docs/experiments.md)."""
TAIL_FRAMES = 14
"""What the last phoneme takes as a rule to sound and to be followed by the silence that ends an utterance (350 ms)."""


@dataclass(frozen=True, slots=True)
class Edges:
    """Frames of the opening and the closing symbol at most, and of the former those that are put out."""

    open: int
    lead: int
    close: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Frames and samples of an utterance, or of its beginning.

    ``semitones``: [frames], None: no shift anywhere; ``unheard``: frames at the start that are not put out; ``tail``: the frame
    behind which there is most likely only silence; ``closes``: frames that a packet must not reach beyond, the ends of pauses.
    ``sure``: frames for which the plan of the whole utterance, if this is not ``whole``, says the same.
    """

    alignment: Alignment
    semitones: Floats | None
    shaper: SampleShaper
    words: list[WordTime]
    unheard: int
    tail: int
    closes: list[int]
    sure: int
    whole: bool = True


def plan_utterance(
    utterance: Utterance, script: Script, log_durations: Floats, edges: Edges, quiet_ids: Set[int], fed: int = 0
) -> Plan:
    """The plan for as many phonemes as there are ``log_durations`` of.

    ``quiet_ids``: symbols that do not sound; ``fed``: model samples that went through the shaper of a plan of the beginning.
    """
    known = len(log_durations)
    whole = known == len(script.ids)
    tail = script.words[-1].last - 1  # the phoneme that the voice lets run out into silence
    durations = fitted_durations(log_durations, np.array(script.speed[:known], np.float32), slice(1, tail))
    durations[0] = min(durations[0], edges.open)
    if whole:
        durations[-1] = min(durations[-1], edges.close)
    pauses = _place_pauses([pause for pause in script.pauses if pause.position < known], durations)
    unheard = max(0, int(durations[0]) - edges.lead)
    stops = np.cumsum(durations)
    ends = np.maximum((stops - unheard) * FRAME_SAMPLES, 0).tolist()
    starts = [0, *ends[:-1]]
    sounds, ceases = _sounds(starts), _sounds(ends)
    shaper = SampleShaper(
        ends[-1] if whole else sys.maxsize,
        [
            Silence(0, _samples(utterance.break_before_ms + script.lead_ms)),
            *(Silence((sounds[position] + ceases[position]) // 2, length) for position, length in pauses),
        ],
        _levels(script.volume[:known], sounds),
        tail=starts[tail] if whole else None,
        closing=_samples(max(utterance.break_after_ms, script.tail_ms)),
        fed=fed,
    )
    alignment = Alignment.of(durations)
    words = script.words
    sure = len(alignment)
    if whole:
        ceases = [*ceases[:tail], *_sounds([starts[tail] + FINAL_PHONEME_SAMPLES])]
    else:
        words = [word for word in words if word.last <= known]
        sure = 0
        if tail >= known:
            first = min(script.words[len(words)].first, known)  # of the word that is not known to its end
            sure = min(len(alignment) - PROSODY_REACH_FRAMES, int(durations[:first].sum()) - SOUND_LEAD_FRAMES)
    return Plan(
        alignment,
        np.array(script.pitch, np.float32)[alignment.phoneme] if any(script.pitch) else None,
        shaper,
        [
            WordTime(
                word.start, word.end, shaper.placed(sounds[word.first]), shaper.placed(max(0, ceases[word.last - 1] - 1)) + 1
            )
            for word in words
        ],
        unheard,
        int(stops[tail - 1]) + TAIL_FRAMES if whole else len(alignment),
        _closes(script.ids[: min(tail, known)], durations, pauses, quiet_ids),
        sure,
        whole,
    )


def silent_plan(utterance: Utterance, script: Script) -> Plan:
    """Of an utterance with nothing to say: its breaks only."""
    pause = _samples(utterance.break_before_ms + script.lead_ms + max(utterance.break_after_ms, script.tail_ms))
    nothing = Alignment(np.zeros(0, np.int64), np.zeros((0, 4), np.float32))
    return Plan(nothing, None, SampleShaper(0, [], [], closing=pause), [], 0, 0, [], 0)


def _closes(
    ids: Sequence[int], durations: NDArray[np.int64], silences: Sequence[tuple[int, int]], quiet_ids: Set[int]
) -> list[int]:
    """The frames that sound at the end of a long pause; ``silences``: phonemes and the samples that are put into them."""
    lengths = durations[: len(ids)] * FRAME_SAMPLES
    for position, samples in silences:
        if position < len(ids):
            lengths[position] += samples
    quiet = np.array([id_ in quiet_ids for id_ in ids], bool)
    edges = np.flatnonzero(np.diff(quiet, prepend=False, append=False)).tolist()
    ends = np.cumsum(durations).tolist()
    found = []
    for first, stop in zip(edges[::2], edges[1::2], strict=True):
        length = int(lengths[first:stop].sum())
        if first > 1:  # behind a phoneme, not behind the opening symbol
            length += max(0, int(lengths[first - 1]) - SOUNDED_FRAMES * FRAME_SAMPLES)
        if length >= PAUSE_FRAMES * FRAME_SAMPLES:
            found.append(max(1, ends[stop - 1] - SOUND_LEAD_FRAMES))
    return found


def _samples(ms: float) -> int:
    return round(ms * SAMPLE_RATE / 1000)


def _place_pauses(pauses: Sequence[Pause], durations: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Gives each pause its length: a short one by the frames of its phoneme, a longer one by silence in their middle.

    Changes ``durations`` [phonemes] in place; gives the phonemes that need silence, and how many samples of it.
    """
    rests: list[tuple[int, int]] = []
    for pause in pauses:
        natural_ms = int(durations[pause.position]) * FRAME_MS
        if pause.ms < natural_ms:
            durations[pause.position] = max(1, round(pause.ms / FRAME_MS))
        elif pause.ms > natural_ms:
            rests.append((pause.position, _samples(pause.ms - natural_ms)))
    return rests


def _sounds(places: Sequence[int]) -> list[int]:
    """The model samples at which what has these places in the durations sounds."""
    return [max(0, at - SOUND_LEAD_FRAMES * FRAME_SAMPLES) for at in places]


def _levels(volume: Sequence[float], sounds: Sequence[int]) -> list[Level]:
    """Where the volume changes; ``sounds``: from which model sample on each phoneme sounds."""
    levels: list[Level] = []
    for at, gain in zip(sounds, volume, strict=True):
        if not levels or levels[-1].gain != gain:
            levels.append(Level(at, gain))
    return levels
