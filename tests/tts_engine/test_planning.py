"""Plans of utterances, from durations that are made up."""

from __future__ import annotations

import numpy as np
import pytest

from tts_engine.planning import SOUND_LEAD_FRAMES, Edges, Plan, plan_utterance
from tts_engine.text.frontend import Pause, Script, SpokenWord
from tts_engine.types import Utterance

COMMA, SPACE = 3, 16


def plan(frames: list[int], ids: list[int], pauses: list[Pause] | None = None) -> Plan:
    """Of an utterance with phonemes that last so many frames; the last but one is that of its last word."""
    count = len(ids)
    script = Script("en", ids, [1.0] * count, [0.0] * count, [1.0] * count, [SpokenWord(0, 1, 1, count - 1)], pauses or [])
    return plan_utterance(Utterance("x"), script, np.log(np.array(frames, np.float32)), Edges(16, 2, 4), {COMMA, SPACE})


@pytest.mark.parametrize(
    ("last", "comma", "space", "closed"),
    [
        (3, 6, 1, True),  # the comma alone
        (10, 2, 2, True),  # most of the pause lies in the phoneme before
        (5, 2, 2, True),
        (4, 2, 2, False),
        (1, 2, 3, False),  # a short phoneme takes nothing off
    ],
)
def test_a_pause_is_what_a_phoneme_lasts_beyond_its_sound_and_the_marks_behind_it(
    last: int, comma: int, space: int, closed: bool
) -> None:
    found = plan([16, 3, last, comma, space, 2, 3, 4], [0, 20, 21, COMMA, SPACE, 22, 23, 0])
    end = 16 + 3 + last + comma + space - SOUND_LEAD_FRAMES
    assert found.closes == ([end] if closed else [])


def test_a_word_may_end_in_a_pause_without_a_mark() -> None:
    assert plan([16, 3, 9, 3, 2, 3, 4], [0, 20, 21, SPACE, 22, 23, 0]).closes == [16 + 3 + 9 + 3 - SOUND_LEAD_FRAMES]


@pytest.mark.parametrize(("ms", "closed"), [(100, False), (150, True), (900, True)])
def test_a_break_that_was_asked_for_counts_with_its_length(ms: int, closed: bool) -> None:
    found = plan([16, 3, 2, 2, 1, 2, 3, 4], [0, 20, 21, COMMA, SPACE, 22, 23, 0], [Pause(3, ms)])
    assert bool(found.closes) is closed


def test_the_opening_symbol_is_no_phoneme_before_a_pause() -> None:
    assert plan([16, 2, 3, 3, 4], [0, COMMA, 20, 21, 0]).closes == []
