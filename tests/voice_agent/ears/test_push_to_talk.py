"""Push to talk: what is said between press and release is a turn, whatever its sound."""

from __future__ import annotations

import numpy as np

from tts_engine.types import AudioFormat
from voice_agent.ears.decisions import Interrupt, SpeechBegan, TurnEnded
from voice_agent.ears.push_to_talk import PushToTalk

DEVICE = AudioFormat(48_000, 2)


def feed(ears: PushToTalk, seconds: float, level: float = 0.1) -> list:
    decisions = []
    for _ in range(round(seconds / 0.02)):
        decisions += ears.feed(np.full((960, 2), level, np.float32), DEVICE)
    return decisions


def test_a_turn_lasts_as_long_as_the_key_is_held() -> None:
    ears = PushToTalk()
    assert feed(ears, 1.0) == []
    ears.press()
    began, interrupt = feed(ears, 1.0)
    assert isinstance(began, SpeechBegan)
    assert isinstance(interrupt, Interrupt)
    assert ears.speaking
    assert len(ears.speech()) > 15_000
    ears.release()
    (ended,) = feed(ears, 0.5)
    assert isinstance(ended, TurnEnded)
    assert abs(len(ended.samples) / 16_000 - 1.0) < 0.06
    assert abs(ended.ended_s - ended.began_s - 1.0) < 0.06
    assert np.allclose(ended.samples[2000:-2000], 0.1, atol=0.01)
    assert not ears.speaking
    assert len(ears.speech()) == 0
    assert abs(ears.level_db + 20) < 0.5


def test_a_key_that_is_only_tapped_gives_one_turn_or_none() -> None:
    ears = PushToTalk()
    ears.press()
    ears.release()
    assert feed(ears, 0.5) == []


def test_a_key_that_is_never_released_ends_at_the_limit() -> None:
    ears = PushToTalk(max_turn_s=2.0)
    ears.press()
    decisions = feed(ears, 6.0)
    assert [type(decision) for decision in decisions] == [SpeechBegan, Interrupt, TurnEnded]
    assert not ears.pressed
    ears.press()
    assert [type(decision) for decision in feed(ears, 3.0)] == [SpeechBegan, Interrupt, TurnEnded]
