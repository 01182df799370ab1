"""The wake phrase, as recognisers spell it; the agent's own words, as its echo brings them back."""

from __future__ import annotations

import pytest

from voice_agent.ears.own_words import are_own_words, may_be_own_words
from voice_agent.ears.wake import WakePhrase
from voice_agent.errors import InputError


@pytest.mark.parametrize(
    ("phrase", "text", "rest"),
    [
        ("hey computer", "Hey computer, what time is it?", "what time is it?"),
        ("hey computer", "Hey, Computer! What time is it?", "What time is it?"),
        ("hey computer", "hey computer", ""),
        ("Hey Sayline", "Hey Sailine, tell me a joke.", "tell me a joke."),
        ("Hey Sayline", "Hey, say line. Tell me a joke.", "Tell me a joke."),
        ("Hey Sayline", "Uh, hey Sayline, stop.", "stop."),
        ("hey computer", "Hey, computers, go on", "go on"),
        ("小雨小雨", "小雨小雨，现在几点？", "现在几点？"),
        ("小雨小雨", "小雨小语，现在几点？", "现在几点？"),
        ("hey computer", "What time is it?", None),
        ("hey computer", "My computer is broken, hey computer.", None),
        ("hey computer", "Hey, how are you?", None),
        ("hey computer", "Computer says no.", None),
        ("hey computer", "", None),
        ("小雨小雨", "今天下雨吗？", None),
    ],
)
def test_what_follows_the_phrase(phrase: str, text: str, rest: str | None) -> None:
    assert WakePhrase(phrase).after(text) == rest


@pytest.mark.parametrize("phrase", ["", "  ", "…!"])
def test_a_phrase_without_a_word_is_refused(phrase: str) -> None:
    with pytest.raises(InputError, match="has no word"):
        WakePhrase(phrase)


SPOKEN = "Your parcel has left the warehouse and will be with you tomorrow morning. 您的包裹昨天晚上已经离开仓库。"


@pytest.mark.parametrize(
    ("words", "own"),
    [
        ("parcel has left the warehouse", True),
        ("Has left the warehouse, and will.", True),
        ("parcel has left the were house and will be with you", True),
        ("昨天晚上已经离开", True),
        ("No, tomorrow morning is too late for me", False),
        ("tomorrow morning", False),
        ("Stop.", False),
        ("Where is my parcel?", False),
        ("", False),
        ("我不在家", False),
    ],
)
def test_own_words_are_known(words: str, own: bool) -> None:
    assert are_own_words(words, SPOKEN) is own
    assert not are_own_words(words, "")


@pytest.mark.parametrize(
    ("words", "own"),
    [
        ("Tomorrow.", True),
        ("the West.", True),
        ("西边的风", True),
        ("the", True),
        ("Stop.", False),
        ("No, the west", False),
        ("wait, which west do you mean", False),
        ("", False),
    ],
)
def test_a_few_words_may_be_what_the_agent_sounds(words: str, own: bool) -> None:
    assert may_be_own_words(words, "with a light wind from the west. Tomorrow 有西边来的风") is own
