"""The state machine of turns and interruptions, hop by hop, without sound."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice_agent.ears import BargeInConfig, EarsConfig, EndOfTurnRules
from voice_agent.ears.decisions import (
    Decision,
    Duck,
    Hold,
    Interrupt,
    Resume,
    SpeechBegan,
    SpeechDropped,
    TurnEnded,
)
from voice_agent.ears.turn_taking import HOP, BargeInClassifier, Hop, TurnTaking
from voice_agent.errors import InputError

WORDS = EarsConfig(barge_in=BargeInConfig(words_s=0.6))


class Stage:
    """A turn taking that is given stretches: V voiced, U unvoiced, . silence, 10 ms each; ``agent``: it sounds meanwhile."""

    def __init__(self, config: EarsConfig | None = None, classifier: BargeInClassifier | None = None) -> None:
        self.config = config or EarsConfig()
        self.turns = TurnTaking(self.config, EndOfTurnRules(), self._audio, classifier)
        self.asked: list[tuple[int, int]] = []

    def _audio(self, first: int, stop: int) -> np.ndarray:
        self.asked.append((first, stop))
        return np.zeros((stop - max(first, 0)) * HOP, dtype=np.float32)

    def run(self, kind: str, count: int, agent: bool = False, restless: bool = False) -> list[Decision]:
        return [d for _ in range(count) for d in self.turns.step(Hop(kind != ".", kind == "V", agent, restless))]


def kinds(decisions: list[Decision]) -> list[type]:
    return [type(decision) for decision in decisions]


def test_a_turn_holds_all_from_the_pre_roll_on() -> None:
    stage = Stage()
    decisions = stage.run(".", 100) + stage.run("V", 100) + stage.run(".", 60)
    began, ended = decisions
    assert began == SpeechBegan(pytest.approx(1.08), 1.0)
    assert isinstance(ended, TurnEnded)
    assert (ended.began_s, ended.ended_s, ended.at_s) == (1.0, 2.0, pytest.approx(2.5))
    assert stage.asked == [(50, 220)]  # 0.5 s of pre-roll, 0.2 s of hang-over


def test_an_interruption_ducks_holds_and_confirms() -> None:
    stage = Stage()
    decisions = stage.run(".", 50, agent=True) + stage.run("V", 10, agent=True)
    assert kinds(decisions) == [SpeechBegan, Duck]
    assert kinds(stage.run("V", 19, agent=True)) == []
    assert kinds(stage.run("V", 1, agent=True)) == [Hold]
    assert kinds(stage.run("V", 44)) == []
    (interrupt,) = stage.run("V", 1)
    assert interrupt == Interrupt(pytest.approx(1.25), 0.5)
    assert kinds(stage.run(".", 60)) == [TurnEnded]


@pytest.mark.parametrize(("voiced", "reason"), [(True, "short"), (False, "noise")])
def test_what_is_over_soon_resumes(voiced: bool, reason: str) -> None:
    stage = Stage()
    decisions = stage.run("V" if voiced else "U", 40, agent=True) + stage.run(".", 29, agent=not voiced)
    assert kinds(decisions) == [SpeechBegan, Duck, *([Hold] if voiced else [])]
    resume, dropped = stage.run(".", 1, agent=not voiced) + stage.run(".", 20)
    assert resume == Resume(pytest.approx(0.7), reason)
    assert dropped == SpeechDropped(pytest.approx(0.7), reason)


def test_words_confirm_at_once_and_signs_of_listening_resume() -> None:
    stage = Stage(WORDS)
    stage.run("V", 30, agent=True)
    stage.turns.hear("Stop", None)
    assert kinds(stage.run(".", 1)) == [Interrupt]

    stage = Stage(WORDS)
    stage.run("V", 40, agent=True)
    stage.turns.hear("Uh-huh.", None)
    assert kinds(stage.run(".", 9)) == []
    assert stage.run(".", 1)[0] == Resume(pytest.approx(0.5), "backchannel")


def test_half_a_sign_of_listening_waits_for_the_other_half() -> None:
    stage = Stage(WORDS)
    stage.run("V", 40, agent=True)
    stage.turns.hear("I", 0.3)
    assert kinds(stage.run("V", 10)) == []
    assert kinds(stage.run(".", 40)) == []  # the words may lack the end of the speech
    stage.turns.hear("I see.", 0.6)
    assert kinds(stage.run(".", 1)) == [Resume, SpeechDropped]


def test_a_short_word_is_held_until_its_words_are_known() -> None:
    stage = Stage(WORDS)
    assert kinds(stage.run("V", 20, agent=True)) == [SpeechBegan, Duck]
    assert kinds(stage.run(".", 10, agent=True)) == [Hold]
    assert kinds(stage.run(".", 30)) == []  # longer than without a recogniser
    stage.turns.hear("No!", None)
    assert kinds(stage.run(".", 10)) == [Interrupt, TurnEnded]


def test_words_that_never_come_resume() -> None:
    stage = Stage(WORDS)
    stage.run("V", 30, agent=True)
    assert kinds(stage.run(".", 59)) == []
    assert kinds(stage.run(".", 1)) == [Resume, SpeechDropped]


def test_a_sign_of_listening_that_goes_on_is_an_interruption() -> None:
    stage = Stage(WORDS)
    stage.run("V", 30, agent=True)
    stage.turns.hear("Yeah", 0.3)
    assert kinds(stage.run("V", 149)) == []  # twice as long as without a recogniser
    assert kinds(stage.run("V", 1)) == [Interrupt]


def test_a_cough_of_many_bursts_does_not_confirm() -> None:
    stage = Stage()
    decisions = [d for _ in range(8) for d in stage.run("U", 15, agent=True) + stage.run("V", 3) + stage.run(".", 10)]
    assert Interrupt not in kinds(decisions)


def test_a_word_that_was_dropped_opens_the_turn_that_follows() -> None:
    stage = Stage()
    stage.run("V", 32, agent=True)
    assert kinds(stage.run(".", 40)) == [Resume, SpeechDropped]
    assert stage.turns.needed == 0
    (began, *_) = stage.run("V", 20, agent=True)
    assert began == SpeechBegan(pytest.approx(0.8), 0.0)
    stage = Stage()
    stage.run("V", 32, agent=True)
    stage.run(".", 140)
    assert stage.run("V", 20)[0].began_s == pytest.approx(1.72)


def test_the_agent_may_end_while_the_user_begins() -> None:
    stage = Stage()
    assert kinds(stage.run("V", 12, agent=True)) == [SpeechBegan, Duck]
    decisions = stage.run("V", 8) + stage.run(".", 60)
    assert decisions[0] == Resume(pytest.approx(0.5), "agent silent")
    assert kinds(decisions[1:]) == [TurnEnded]


def test_a_word_in_a_pause_of_the_agent_is_no_turn() -> None:
    stage = Stage()
    stage.run(".", 100, agent=True)
    assert kinds(stage.run(".", 15) + stage.run("V", 20) + stage.run(".", 5)) == [SpeechBegan]
    assert kinds(stage.run(".", 60, agent=True)) == [SpeechDropped]


def test_an_agent_that_begins_over_the_user_is_interrupted() -> None:
    stage = Stage()
    stage.run("V", 200)
    assert kinds(stage.run("V", 1, agent=True)) == [Duck, Interrupt]


def test_unvoiced_noise_is_dropped_and_does_not_prolong_a_turn() -> None:
    stage = Stage()
    assert kinds(stage.run("U", 60) + stage.run(".", 40)) == [SpeechBegan, SpeechDropped]
    stage = Stage()
    decisions = stage.run("V", 60) + [d for _ in range(20) for d in stage.run(".", 12) + stage.run("U", 5)]
    assert kinds(decisions) == [SpeechBegan, TurnEnded]
    assert decisions[1].at_s == pytest.approx(1.1)


def test_a_bit_of_sound_behind_a_pause_does_not_prolong_a_turn() -> None:
    stage = Stage()
    stage.run("V", 60)
    decisions = [d for _ in range(20) for d in stage.run(".", 12) + stage.run("V", 3)]
    assert kinds(decisions) == [TurnEnded]
    assert decisions[0].at_s == pytest.approx(1.1)
    stage = Stage()
    stage.run("V", 60)
    decisions = stage.run(".", 48) + stage.run("V", 3) + stage.run(".", 1)
    assert [d.at_s for d in decisions] == [pytest.approx(1.12)]  # it might have become a word
    stage = Stage()
    stage.run("V", 60)
    assert stage.run(".", 48) + stage.run("V", 4) + stage.run(".", 40) == []


def test_in_a_restless_room_a_mean_over_the_last_hops_begins_speech() -> None:
    stage = Stage(WORDS)
    stage.run(".", 100)
    assert kinds(stage.run("V", 2, agent=True, restless=True)) == [SpeechBegan, Duck]
    assert stage.turns.began == 92  # what the mean is over
    assert kinds(stage.run("V", 100, agent=True, restless=True)) == [Hold]


def test_what_a_recogniser_has_heard_without_words_is_no_turn() -> None:
    stage = Stage()
    stage.run("V", 60)
    stage.run(".", 20)
    stage.turns.hear("", None)
    assert [d.reason for d in stage.run(".", 40) if isinstance(d, SpeechDropped)] == ["noise"]
    stage.run("V", 60)
    stage.turns.hear("", None)
    assert kinds(stage.run("V", 20) + stage.run(".", 60)) == [TurnEnded]  # it has not heard all of it


def test_words_decide_how_long_a_pause_may_be() -> None:
    stage = Stage()
    stage.run("V", 100)
    stage.turns.hear("I would like a table, because", 1.0)
    assert kinds(stage.run(".", 119)) == []
    assert kinds(stage.run(".", 1)) == [TurnEnded]


def test_words_from_before_the_last_sentence_say_nothing() -> None:
    stage = Stage()
    stage.run("V", 100)
    stage.turns.hear("I would like a table, because", 1.0)
    stage.run("V", 100)
    assert kinds(stage.run(".", 50)) == [TurnEnded]


def test_a_turn_without_an_end_ends() -> None:
    stage = Stage(EarsConfig(max_turn_s=3.0))
    decisions = stage.run("V", 700)
    assert [type(d).__name__ for d in decisions] == ["SpeechBegan", "TurnEnded"] * 2 + ["SpeechBegan"]
    assert decisions[1].at_s == pytest.approx(3.0)


class Verdict:
    """A classifier that always says the same."""

    def __init__(self, verdict: Literal["interruption", "backchannel"]) -> None:
        self.verdict = verdict
        self.heard: list[int] = []

    def judge(self, samples: np.ndarray, words: str | None) -> Literal["interruption", "backchannel"] | None:
        self.heard.append(len(samples))
        return self.verdict


def test_a_classifier_may_confirm_or_resume() -> None:
    stage = Stage(classifier=Verdict("interruption"))
    assert kinds(stage.run("V", 20, agent=True)) == [SpeechBegan, Duck, Interrupt]
    stage = Stage(classifier=Verdict("backchannel"))
    stage.run("V", 40, agent=True)
    assert kinds(stage.run(".", 10)) == [Resume, SpeechDropped]


@given(
    st.lists(st.tuples(st.sampled_from("VU."), st.integers(1, 90), st.booleans(), st.sampled_from([None, "", "yeah", "stop"]))),
    st.sampled_from([EarsConfig(), WORDS]),
)
def test_decisions_come_in_their_order(stretches: list[tuple[str, int, bool, str | None]], config: EarsConfig) -> None:
    """Each SpeechBegan ends in one TurnEnded or SpeechDropped, each Duck in one Resume or Interrupt, in time's order."""
    stage = Stage(config)
    decisions: list[Decision] = []
    for kind, count, agent, words in stretches:
        decisions += stage.run(kind, count, agent)
        if words is not None:
            stage.turns.hear(words, None)
    decisions += stage.turns.flush()
    speaking = ducked = held = False
    for decision in decisions:
        match decision:
            case SpeechBegan():
                assert not speaking
                speaking = True
            case Duck():
                assert speaking
                assert not ducked
                ducked, held = True, False
            case Hold():
                assert ducked
                assert not held
                held = True
            case Resume() | Interrupt():
                assert ducked
                ducked = False
            case TurnEnded() | SpeechDropped():
                assert speaking
                assert not ducked
                speaking = False
    assert not speaking
    assert not ducked
    times = [decision.at_s for decision in decisions]
    assert times == sorted(times)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: BargeInConfig(duck_s=0.5), "must rise"),
        (lambda: BargeInConfig(resume_s=0), "resume_s is 0: use a number above 0"),
        (lambda: EarsConfig(vad_mode=4), "vad_mode is 4"),
        (lambda: EarsConfig(vad_frame_s=0.05), "vad_frame_s is 0.05"),
        (lambda: EarsConfig(echo="none"), "echo is 'none': use one of guard"),  # type: ignore[arg-type]
        (lambda: EarsConfig(max_turn_s=float("nan")), "max_turn_s is nan"),
    ],
)
def test_settings_that_cannot_be_used(make, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()
