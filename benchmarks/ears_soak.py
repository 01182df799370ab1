"""An hour of audio through the ears, faster than it sounds: memory stays flat, and decisions stay on the samples' clock.

    python -m benchmarks.ears_soak [--minutes 60] [--rate 44100]

A minute is repeated: the agent speaks and comes back as echo, the user interrupts it, answers twice, and coughs. What the
agent says is another stretch of its speech each time: under the same one an echo canceller would learn the user too. The
microphone has a rate of 44.1 kHz, so each stretch is resampled and the playout is lined up at a ratio that does not
divide. *Drift*: how much later, against the truth, a decision falls in the last minutes than in the first ones.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, field

import numpy as np
import soxr

from benchmarks.ears_casts import EVALUATION
from benchmarks.ears_sounds import RATE, agent_speech, cough, noise, room, spoken
from benchmarks.measure import Row, median, report
from tts_engine.resources import resident_bytes
from tts_engine.types import AudioFormat, Samples
from voice_agent.ears import Ears
from voice_agent.ears.decisions import Decision, Interrupt, SpeechBegan, TurnEnded

CYCLE_S = 60
USER_S = {"interruption": 8.0, "answer": 30.0, "question": 42.0}
AGENT_S = 25.0  # it speaks from 0 on
COUGH_S = 17.0
SHIFT = 7_919
"""Samples that the agent is further in its speech in each minute."""


@dataclass
class Soaked:
    """What an endless conversation did: for each kind of speech and each minute, seconds from the truth to the decision."""

    began_s: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in USER_S})
    ended_s: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in USER_S})
    resident_mb: list[float] = field(default_factory=list)
    decisions: int = 0
    interruptions: int = 0
    audio_s: float = 0.0
    work_s: float = 0.0

    def drift_s(self) -> float:
        """The largest change of a median between the first and the last quarter."""
        drifts = [0.0]
        for times in (*self.began_s.values(), *self.ended_s.values()):
            quarter = max(len(times) // 4, 1)
            drifts.append(abs(median(times[-quarter:]) - median(times[:quarter])))
        return max(drifts)


def minute(rate: int, number: int) -> tuple[Samples, Samples]:
    """Microphone at ``rate`` and playout at 16 kHz of the minute of this number."""
    played = np.zeros(CYCLE_S * RATE, dtype=np.float32)
    played[: round(AGENT_S * RATE)] = np.resize(np.roll(agent_speech(), -number * SHIFT), round(AGENT_S * RATE))
    mic = np.convolve(played, room(0.06, 14, 1))[: len(played)] + noise("pink", CYCLE_S, 1, ()) * 10 ** (-25 / 20)
    for name, text in (("interruption", 0), ("answer", 1), ("question", 2)):
        clip = spoken("flite", "rms", EVALUATION.interruptions[text].clauses[0])
        place = round(USER_S[name] * RATE)
        mic[place : place + len(clip)] += clip
    clip = cough(3)
    mic[round(COUGH_S * RATE) :][: len(clip)] += clip
    return soxr.resample(mic.astype(np.float32), RATE, rate), played


def soak(minutes: int, rate: int) -> Soaked:
    """Replays so many minutes."""
    ears, format, soaked = Ears(), AudioFormat(rate), Soaked()
    step, given, taken = rate // 50, 0, 0
    for number in range(minutes):
        microphone, played = minute(rate, number)
        decisions: list[Decision] = []
        started_s = time.process_time()
        for first in range(0, len(microphone), step):
            piece = microphone[first : first + step]
            taken += len(piece)
            upto = round(taken * RATE / rate)
            reference = np.take(played, range(given, upto), mode="wrap")
            given = upto
            decisions += ears.feed(piece, format, reference)
        soaked.work_s += time.process_time() - started_s
        _compare(soaked, decisions, number * CYCLE_S)
        soaked.decisions += len(decisions)
        soaked.resident_mb.append(resident_bytes() / 1e6)
    soaked.audio_s = minutes * CYCLE_S
    return soaked


def _compare(soaked: Soaked, decisions: list[Decision], minute_s: float) -> None:
    soaked.interruptions += sum(isinstance(decision, Interrupt) for decision in decisions)
    for name, at_s in USER_S.items():
        for kind, times in ((SpeechBegan, soaked.began_s[name]), (TurnEnded, soaked.ended_s[name])):
            found = [d.at_s for d in decisions if isinstance(d, kind) and d.began_s > minute_s + at_s - 0.2]
            times.append(found[0] - minute_s - at_s if found else float("nan"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=int, default=60)
    parser.add_argument("--rate", type=int, default=44_100, help="of the microphone, in Hz")
    options = parser.parse_args()
    soaked = soak(options.minutes, options.rate)
    quarter = max(len(soaked.resident_mb) // 4, 1)
    row: Row = {
        "audio min": soaked.audio_s / 60,
        "times real time": soaked.audio_s / soaked.work_s,
        "decisions": soaked.decisions,
        "interruptions": soaked.interruptions,
        "drift ms": 1000 * soaked.drift_s(),
        "memory at 1/4, MB": soaked.resident_mb[quarter - 1],
        "memory at the end, MB": soaked.resident_mb[-1],
    }
    report("ears soak", [row])


if __name__ == "__main__":
    main()
