"""The ears from end to end: sound in, decisions out, the same ones however the sound is handed in."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import soxr
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.voice_agent.ears.scenes import RATE, echo_of, silence, voice
from tts_engine.types import AudioFormat
from voice_agent.ears import BargeInConfig, Ears, EarsConfig, WebRtcVad
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
from voice_agent.errors import InputError

MONO = AudioFormat(RATE)


def turn(at_s: float = 1.0, length_s: float = 1.2, seed: int = 0) -> np.ndarray:
    """A room in which somebody speaks once."""
    room = silence(at_s + length_s + 1.5, seed)
    said = voice(length_s, seed)
    room[round(at_s * RATE) :][: len(said)] += said
    return room


def overlap(seconds: float = 8.0, said_s: tuple[float, float] = (5.0, 6.6)) -> tuple[np.ndarray, np.ndarray]:
    """Microphone and playout: the agent speaks all the time and comes back as echo, the user speaks in between."""
    played = voice(seconds, seed=5, level=0.08)
    microphone = echo_of(played, 0.06, -12) + silence(seconds)
    said = voice(said_s[1] - said_s[0], seed=9)
    microphone[round(said_s[0] * RATE) :][: len(said)] += said
    return microphone, played


def decide(ears: Ears, microphone: np.ndarray, played: np.ndarray | None = None, step: int = 320) -> list[Decision]:
    decisions: list[Decision] = []
    for first in range(0, len(microphone), step):
        reference = None if played is None else played[first : first + step]
        decisions += ears.feed(microphone[first : first + step], MONO, reference)
    return decisions + ears.flush()


def kinds(decisions: list[Decision]) -> list[type]:
    return [type(decision) for decision in decisions]


def only_turn(decisions: list[Decision]) -> TurnEnded:
    (ended,) = [d for d in decisions if isinstance(d, TurnEnded)]
    return ended


def test_a_turn_in_a_quiet_room() -> None:
    microphone = turn()
    decisions = decide(Ears(), microphone)
    assert kinds(decisions) == [SpeechBegan, TurnEnded]
    ended = only_turn(decisions)
    assert ended.began_s == pytest.approx(1.0, abs=0.08)
    assert ended.ended_s == pytest.approx(2.2, abs=0.12)
    assert ended.at_s == pytest.approx(ended.ended_s + 0.5)
    first = round(ended.began_s * RATE) - RATE // 2
    assert np.array_equal(ended.samples, microphone[first:][: len(ended.samples)])  # from the first syllable, untouched
    assert len(ended.samples) == round((ended.ended_s + 0.2) * RATE) - first


def test_an_interruption_over_echo() -> None:
    microphone, played = overlap()
    decisions = decide(Ears(), microphone, played)
    assert kinds(decisions) == [SpeechBegan, Duck, Hold, Interrupt, TurnEnded]
    began, duck, hold, interrupt, _ended = decisions
    assert 5.0 <= began.at_s <= duck.at_s <= 5.3
    assert hold.at_s < interrupt.at_s < 6.6


def test_its_own_echo_alone_decides_nothing() -> None:
    played = voice(10, seed=3, level=0.08)
    for delay_s, gain_db in ((0.02, -6), (0.12, -20), (0.25, -10)):
        microphone = echo_of(played, delay_s, gain_db, seed=4) + silence(10)
        assert Interrupt not in kinds(decide(Ears(), microphone, played))
        assert TurnEnded in kinds(decide(Ears(EarsConfig(echo="headphones")), microphone))  # unguarded it is speech


def test_half_duplex_hears_only_while_the_agent_is_silent() -> None:
    microphone, played = overlap()
    ears = Ears(EarsConfig(echo="half_duplex"))
    assert decide(ears, microphone, played) == []
    ears.reset()
    answer = turn()
    after = np.concatenate([microphone, answer])
    assert TurnEnded in kinds(decide(ears, after, np.concatenate([played, np.zeros_like(answer)])))


def test_a_short_sound_over_the_agent_resumes() -> None:
    microphone, played = overlap(said_s=(5.0, 5.35))
    decisions = decide(Ears(), microphone, played)
    assert kinds(decisions)[:2] == [SpeechBegan, Duck]
    assert kinds(decisions)[-2:] == [Resume, SpeechDropped]
    assert Interrupt not in kinds(decisions)


def test_words_come_in_while_it_is_open() -> None:
    microphone, played = overlap()
    ears = Ears(EarsConfig(barge_in=BargeInConfig(words_s=0.6)))
    decisions: list[Decision] = []
    for first in range(0, len(microphone), 160):
        new = ears.feed(microphone[first : first + 160], MONO, played[first : first + 160])
        if any(isinstance(decision, Hold) for decision in new):
            assert ears.barging
            assert len(ears.speech()) >= round(0.3 * RATE)
            ears.hear("Wait", ears.heard_s)
        decisions += new
    hold, interrupt = (d for d in decisions if isinstance(d, Hold | Interrupt))
    assert interrupt.at_s == pytest.approx(hold.at_s + 0.01)
    assert not ears.barging


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=12))
@settings(max_examples=examples(6))
def test_any_chunking_gives_the_same_decisions(steps: list[int]) -> None:
    microphone, played = OVERLAP
    ears, decisions, first, turns = Ears(), [], 0, 0
    while first < len(microphone):
        step = steps[turns % len(steps)] if turns < 200 else 4000
        decisions += ears.feed(microphone[first : first + step], MONO, played[first : first + step])
        first += step
        turns += 1
    decisions += ears.flush()
    assert decisions == WHOLE
    assert np.array_equal(only_turn(decisions).samples, only_turn(WHOLE).samples)


OVERLAP = overlap()
WHOLE = decide(Ears(), *OVERLAP, step=len(OVERLAP[0]))


@pytest.mark.parametrize("rate", [8_000, 22_050, 44_100, 48_000])
@pytest.mark.parametrize("channels", [1, 2])
def test_any_rate_and_channels(rate: int, channels: int) -> None:
    microphone = soxr.resample(turn(), RATE, rate)
    if channels == 2:
        microphone = np.stack([microphone, microphone], axis=1)
    ears, format = Ears(), AudioFormat(rate, channels)
    decisions: list[Decision] = []
    for first in range(0, len(microphone), 441):
        decisions += ears.feed(microphone[first : first + 441], format)
    decisions += ears.flush()
    ended = only_turn(decisions)
    assert ended.began_s == pytest.approx(1.0, abs=0.1)
    assert ended.ended_s == pytest.approx(2.2, abs=0.15)


def test_a_reference_lines_up_at_a_rate_that_does_not_divide() -> None:
    """100 frames of 44.1 kHz are 36.28 samples of 16 kHz: the rounding must not add up."""
    microphone, played = OVERLAP
    fine, ears = soxr.resample(microphone, RATE, 44_100), Ears()
    decisions: list[Decision] = []
    given = 0
    for first in range(0, len(fine), 100):
        piece = fine[first : first + 100]
        upto = round((first + len(piece)) * RATE / 44_100)
        decisions += ears.feed(piece, AudioFormat(44_100), played[given:upto])
        given = upto
    assert Interrupt in kinds(decisions)
    assert [d.at_s for d in decisions if isinstance(d, Duck)] == pytest.approx([WHOLE[1].at_s], abs=0.1)


def test_integers_and_broken_samples() -> None:
    microphone = turn()
    whole = only_turn(decide(Ears(), microphone))
    integers = (microphone * 32768).astype(np.int16)
    ended = only_turn(decide(Ears(), integers))
    assert (ended.began_s, ended.ended_s) == (whole.began_s, whole.ended_s)
    microphone[::1000] = np.nan
    microphone[5] = np.inf
    assert np.isfinite(only_turn(decide(Ears(), microphone)).samples).all()


def test_audio_that_does_not_fit_is_refused_and_loses_nothing() -> None:
    ears = Ears()
    ears.feed(silence(0.1), MONO)
    with pytest.raises(InputError, match="format changed"):
        ears.feed(silence(0.1), AudioFormat(48_000))
    with pytest.raises(InputError, match="do not fit 1 channels"):
        ears.feed(np.zeros((160, 2), dtype=np.float32), MONO)
    with pytest.raises(InputError, match=r"give \[160\], 16 kHz mono"):
        ears.feed(silence(0.01), MONO, np.zeros(80, dtype=np.float32))
    assert ears.heard_s == pytest.approx(0.1)
    microphone, played = OVERLAP
    ears.reset()
    decisions: list[Decision] = []
    for first in range(0, len(microphone), 320):
        piece, reference = microphone[first : first + 320], played[first : first + 320]
        with pytest.raises(InputError):
            ears.feed(piece, MONO, reference[:100])
        decisions += ears.feed(piece, MONO, reference)
    assert decisions + ears.flush() == WHOLE


def test_reset_forgets_everything() -> None:
    ears = Ears()
    decide(ears, *OVERLAP)
    ears.reset()
    assert decide(ears, *OVERLAP) == WHOLE


def test_an_empty_recording() -> None:
    ears = Ears()
    assert ears.feed(np.zeros(0, dtype=np.float32), MONO) == []
    assert ears.flush() == []
    assert len(ears.speech()) == 0


def test_a_recording_that_ends_within_a_turn() -> None:
    decisions = decide(Ears(), turn()[: round(1.8 * RATE)])
    assert kinds(decisions) == [SpeechBegan, TurnEnded]


def test_longer_frames_of_a_detector() -> None:
    for frame_s in (0.02, 0.03):
        ended = only_turn(decide(Ears(vad=WebRtcVad(2, frame_s)), turn()))
        assert ended.began_s == pytest.approx(1.0, abs=0.1)


def test_a_noise_that_stays_becomes_the_room() -> None:
    dice = np.random.default_rng(1)
    noise = np.concatenate([silence(2), dice.normal(0, 0.02, 12 * RATE).astype(np.float32)])
    said = voice(1.2, level=0.1)
    noise[round(10 * RATE) :][: len(said)] += said
    decisions = decide(Ears(), noise)
    turns = [d for d in decisions if isinstance(d, TurnEnded)]
    assert turns[-1].began_s == pytest.approx(10.0, abs=0.2)
    assert turns[-1].ended_s == pytest.approx(11.2, abs=0.3)


def test_memory_does_not_grow() -> None:
    ears, room = Ears(), np.concatenate([turn(), silence(1.0)])
    played = np.concatenate([voice(2.0, seed=8), np.zeros(len(room) - 2 * RATE, dtype=np.float32)])
    decide_only = [(room[i : i + 1600], played[i : i + 1600]) for i in range(0, len(room), 1600)]

    def run(rounds: int) -> None:
        for _ in range(rounds):
            for piece, reference in decide_only:
                ears.feed(piece, MONO, reference)

    run(2)
    tracemalloc.start()
    try:
        run(1)
        before, _ = tracemalloc.get_traced_memory()
        run(5)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 100_000  # a second of audio is 64,000 bytes, and 23 were heard
