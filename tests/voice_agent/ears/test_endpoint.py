"""How long silence must last, by the words before it."""

from __future__ import annotations

import pytest

from voice_agent.ears import EndOfTurnConfig, EndOfTurnRules
from voice_agent.errors import InputError

CONFIG = EndOfTurnConfig(dictation_s=0.91, unmarked_s=0.92)  # so that no two are the same
KINDS = {
    "complete": CONFIG.complete_s,
    "plain": CONFIG.plain_s,
    "unfinished": CONFIG.unfinished_s,
    "dictation": CONFIG.dictation_s,
    "unmarked": CONFIG.unmarked_s,
    "doubtful": CONFIG.doubtful_s,
}


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("plain", None),
        ("plain", ""),
        ("plain", "..."),
        ("unmarked", "Book a table for tonight"),
        ("complete", "What time is it?"),
        ("complete", "Turn off the lights."),
        ("complete", "What is it for?"),
        ("complete", "After lunch."),
        ("complete", "If it rains tomorrow, we stay at home."),
        ("complete", "If it rains then we stay at home."),
        ("complete", "I told you. It is the blue one."),
        ("complete", "等一下。"),
        ("complete", "如果下雨我们就不去。"),
        ("complete", "昨天下雨。我们没去。"),
        ("doubtful", "I am looking for."),
        ("doubtful", "The thing is."),
        ("doubtful", "Well, could you tell me."),
        ("doubtful", "If it rains tomorrow."),
        ("doubtful", "I see. When you have finished with that."),
        ("doubtful", "如果明天下雨。"),
        ("doubtful", "帮我查一下。"),
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
        ("unmarked", "I was born in 1984"),
        ("complete", "Call 911."),
    ],
)
def test_rules(kind: str, words: str | None) -> None:
    assert EndOfTurnRules(CONFIG).delay_s(words) == KINDS[kind]


def test_bounds_hold() -> None:
    rules = EndOfTurnRules(EndOfTurnConfig(min_s=0.48, max_s=0.6))
    assert rules.delay_s("Yes.") == 0.48
    assert rules.delay_s("because") == 0.6


def test_bounds_that_contradict_each_other() -> None:
    with pytest.raises(InputError, match=r"min_s 1\.0 is above max_s 0\.5"):
        EndOfTurnConfig(min_s=1.0, max_s=0.5)
