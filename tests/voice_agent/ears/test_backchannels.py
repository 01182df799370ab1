"""Signs of listening in both languages, and what looks like them."""

from __future__ import annotations

import time

import pytest

from voice_agent.ears.backchannels import is_backchannel, may_become_backchannel


@pytest.mark.parametrize(
    "words",
    [
        "Uh-huh.",
        "uh huh",
        "mm",
        "Mm-hmm.",
        "Yeah.",
        "yeah, right",
        "OK",
        "That’s right!",
        "嗯。",
        "嗯嗯",
        "对",
        "对对对",
        "好的。",
        "是的，明白了",
    ],
)
def test_signs_of_listening(words: str) -> None:
    assert is_backchannel(words)


@pytest.mark.parametrize(
    "words",
    [
        "",
        " ...",
        "No.",
        "Stop!",
        "wait",
        "okay but",
        "yeah no",
        "Yesterday",
        "right now",
        "surely",
        "对不起",
        "好的，但是",
        "不对",
        "等一下",
        "嗯 stop",
    ],
)
def test_what_wants_the_turn(words: str) -> None:
    assert not is_backchannel(words)


@pytest.mark.parametrize("words", ["", "I", "Oh, I", "that's", "Got", "yeah", "我", "原来"])
def test_what_may_become_a_sign_of_listening(words: str) -> None:
    assert may_become_backchannel(words)


@pytest.mark.parametrize("words", ["I want", "In", "got the", "我想", "stop", "yeah but"])
def test_what_cannot(words: str) -> None:
    assert not may_become_backchannel(words)


def test_a_long_text_is_read_once() -> None:
    began_s = time.process_time()
    assert not is_backchannel("yeah, right " * 5000 + "but")
    assert time.process_time() - began_s < 5
