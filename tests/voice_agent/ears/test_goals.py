"""The ears' goals on the recordings of the benchmark, in a short form: other voices than they were tuned with."""

from __future__ import annotations

import pytest

from benchmarks.ears import LATE_S, ends, false_stops, interruptions, outcomes, per_minute, reaction
from benchmarks.ears_casts import EVALUATION
from benchmarks.ears_scenes import alone, overlaps, turns
from benchmarks.ears_soak import soak
from tests.voice_agent.ears.sounds import missing
from voice_agent.ears.decisions import Interrupt

pytestmark = [pytest.mark.peer, pytest.mark.skipif(bool(missing()), reason=missing() or "all there")]
COUNT = 10


def test_interruptions_are_noticed_in_time() -> None:
    played = outcomes(overlaps(EVALUATION, "interruption", None, 0.0, COUNT), "ours")
    figures = interruptions(played)
    assert figures["missed %"] == 0
    assert figures["duck ms"] <= 150
    assert figures["silence ms"] <= 450
    assert figures["confirmed ms"] <= 900
    assert figures["first syllable %"] == 100


def test_interruptions_in_noise_are_noticed() -> None:
    for noise in ("pink", "typing"):
        played = outcomes(overlaps(EVALUATION, "interruption", noise, 10.0, 5), "ours")
        assert all((t := reaction(o, Interrupt)) is not None and t < 3.0 + LATE_S for o in played), noise


@pytest.mark.parametrize("sound", ["backchannel", "cough"])
def test_signs_of_listening_and_coughs_stop_nothing(sound: str) -> None:
    # "Mm-hmm, yeah." takes a second, which is longer than what interrupts by its length.
    assert false_stops(outcomes(overlaps(EVALUATION, sound, None, 0.0, COUNT), "ours"))["false stop %"] <= 10


def test_its_own_voice_does_not_interrupt_it() -> None:
    figures = per_minute(outcomes(alone(EVALUATION, None, 0.0, 15.0, 4, echo=True), "ours"))
    assert figures["interruptions/min"] == 0


def test_turns_end_when_the_user_is_done() -> None:
    figures = ends(outcomes(turns(EVALUATION, None, 0.0, 40), "ours"))
    assert figures["never ended %"] == 0
    assert figures["cut off %"] <= 15  # of 40, half of which pause for thought; docs/ears.md has the figures of many more
    assert figures["end of turn ms"] <= 600


def test_a_soak_keeps_the_clock() -> None:
    soaked = soak(2, 44_100)
    assert soaked.interruptions == 2
    assert soaked.drift_s() <= 0.06
    assert soaked.resident_mb[-1] - soaked.resident_mb[0] < 20
