"""How long silence must last, by the words before it."""

from __future__ import annotations

import pytest

from voice_agent.ears import EndOfTurnConfig, EndOfTurnRules
from voice_agent.errors import InputError

CONFIG = EndOfTurnConfig()
KINDS = {
    "complete": CONFIG.complete_s,
    "plain": CONFIG.plain_s,
    "unfinished": CONFIG.unfinished_s,
    "dictation": CONFIG.dictation_s,
}


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("plain", None),
        ("plain", ""),
        ("plain", "..."),
        ("plain", "Book a table for tonight"),
        ("complete", "What time is it?"),
        ("complete", "Turn off the lights."),
        ("complete", "What is it for?"),
        ("complete", "That is what I was looking for."),
        ("complete", "现在几点？"),
        ("complete", "请把灯关掉。"),
        ("complete", "这是我的。"),
        ("unfinished", "I would like a table,"),
        ("unfinished", "I would like a table, because"),
        ("unfinished", "I would like a table, because."),
        ("unfinished", "I was thinking..."),
        ("unfinished", "Well, um"),
        ("unfinished", "We could go and…"),
        ("unfinished", "我本来想去，但是。"),
        ("unfinished", "因为"),
        ("unfinished", "如果明天下雨，"),
        ("dictation", "My number is five five"),
        ("dictation", "It is 0 4 1 5."),
        ("dictation", "My phone number is 0415"),
        ("dictation", "我的电话是138"),
        ("dictation", "验证码是七零四"),
        ("plain", "I was born in 1984"),
        ("complete", "Call 911."),
    ],
)
def test_rules(kind: str, words: str | None) -> None:
    assert EndOfTurnRules().delay_s(words) == KINDS[kind]


def test_bounds_hold() -> None:
    rules = EndOfTurnRules(EndOfTurnConfig(min_s=0.4, max_s=0.6))
    assert rules.delay_s("Yes.") == 0.4
    assert rules.delay_s("because") == 0.6


def test_bounds_that_contradict_each_other() -> None:
    with pytest.raises(InputError, match=r"min_s 1\.0 is above max_s 0\.5"):
        EndOfTurnConfig(min_s=1.0, max_s=0.5)
