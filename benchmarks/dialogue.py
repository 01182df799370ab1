"""Reaction of a spoken dialogue in real time, recognition included: to interruptions, signs of listening, ends of turns.

    python -m benchmarks.dialogue [--rounds 8]

The agent (the embedded voice on a simulated device) speaks without end. The microphone is the user (flite and espeak-ng) at
a level like the agent's, pink noise 30 dB below, and the agent's own sound, 80 ms later and 15 dB weaker, with reflections;
pieces of 20 ms come at the speed of sound. Whisper base runs beside. Each round the user gives a sign of listening, then
interrupts with a question, and is answered. Times from where the user's voice comes above 1 % of its peak: to the duck, to
the hold's silence, to the confirmed interruption; from where it falls below: to the model being asked, and to the first sample
of the answer.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.measure import Row, median, percentile, report
from tests.voice_agent.ears.sounds import RATE, at_level, sox, spoken
from tts_engine.scheduler import Scheduler
from tts_engine.types import AudioFormat
from voice_agent.agent import Agent
from voice_agent.captions import Ducked, Event, Held, Interruption, Speaking, TurnBegan
from voice_agent.dialogue import Dialogue
from voice_agent.ears import Ears, EarsConfig
from voice_agent.ears.config import BargeInConfig
from voice_agent.ears.reference import Reference
from voice_agent.ears.whisper import WhisperRecognizer
from voice_agent.llm.deltas import Delta, End, Message, TextDelta
from voice_agent.pacing import MonotonicClock
from voice_agent.sinks.memory import MemorySink

PIECE = RATE // 50
ECHO = ((0.08, -15.0), (0.093, -23.0), (0.111, -29.0))
LISTENING = ("uh-huh", "okay", "yeah")
QUESTIONS = (
    "Wait, stop. What about my invoice?",
    "Hold on, can you tell me the price again?",
    "Sorry, I wanted to ask about the red shoes.",
    "No, that is not what I meant.",
)


class Talkative:
    """A model that tells a story without end; a question stops it and begins it anew."""

    async def reply(self, messages: Sequence[Message], *, tools: Sequence[Mapping[str, Any]] = ()) -> AsyncIterator[Delta]:
        for number in range(1000):
            yield TextDelta(f"This is part {number} of a long story about a ship and the sea. ")
            await asyncio.sleep(0.02)
        yield End("stop")


class Bench:
    """The microphone's side of it, and when things happened (``time.monotonic``)."""

    def __init__(self, agent: Agent, dialogue: Dialogue) -> None:
        self.agent, self.dialogue = agent, dialogue
        self.heard = Reference(24_000)
        self.noise = sox(30, "pinknoise", level=0.003)
        self.user = np.zeros(0, np.float32)
        self.said_s = (0.0, 0.0)  # when the user's voice began and ended
        self.at_s: dict[type, float] = {}

    async def listen(self) -> None:
        clock = MonotonicClock()
        began_s, taken = clock.now_s(), 0
        while True:
            await clock.sleep(max(0.0, began_s + (taken + PIECE) / RATE - clock.now_s()))
            at = round((began_s + taken / RATE) * RATE)
            piece = self.noise[taken % (len(self.noise) - PIECE) :][:PIECE].copy()
            for delay_s, gain_db in ECHO:
                late = at - round(delay_s * RATE)
                if (echo := self.heard.between(late, late + PIECE)) is not None:
                    piece += 10 ** (gain_db / 20) * echo
            voice, self.user = self.user[:PIECE], self.user[PIECE:]
            piece[: len(voice)] += voice
            await self.dialogue.hear(piece, AudioFormat(RATE), began_s + taken / RATE)
            taken += PIECE

    def tap(self) -> None:
        """The room hears what the dialogue's reference hears."""
        inner = self.agent.sink.monitor
        assert inner is not None

        def both(frames: np.ndarray, begins_s: float) -> None:
            self.heard.take(frames, begins_s)
            inner(frames, begins_s)

        self.agent.sink.monitor = both

    async def say(self, text: str, program: str) -> None:
        """The user says it; returns when it is over."""
        voice = at_level(spoken(text, program), 0.08)
        loud = np.flatnonzero(np.abs(voice) > 0.01 * np.abs(voice).max())
        self.at_s.clear()
        now_s = MonotonicClock().now_s()
        self.said_s = (now_s + loud[0] / RATE, now_s + loud[-1] / RATE)
        self.user = voice
        await asyncio.sleep(len(voice) / RATE)

    async def follow(self) -> None:
        async for event in self.agent.events():
            self.note(event)

    def note(self, event: Event) -> None:
        self.at_s.setdefault(type(event), MonotonicClock().now_s())

    async def until(self, kind: type, limit_s: float = 15.0) -> bool:
        try:
            async with asyncio.timeout(limit_s):
                while kind not in self.at_s:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        except TimeoutError:
            return False
        return True


async def measure(rounds: int) -> list[Row]:
    engine = Scheduler()
    engine.start()
    await engine.ready()
    times: dict[str, list[float]] = {name: [] for name in ("duck", "silence", "confirmed", "asked", "first sound")}
    stopped = missed = 0
    sink = MemorySink(AudioFormat(24_000), clock=MonotonicClock(), keep=False)
    async with WhisperRecognizer() as whisper, Agent(Talkative(), sink, synthesizer=engine) as agent:
        ears = Ears(EarsConfig(barge_in=BargeInConfig(words_s=0.6)))
        async with Dialogue(agent, ears, whisper) as dialogue:
            bench = Bench(agent, dialogue)
            tasks = [asyncio.create_task(bench.follow()), asyncio.create_task(bench.listen())]
            await asyncio.sleep(0.5)
            bench.tap()
            await bench.say("Please tell me a story.", "flite")
            assert await bench.until(Speaking), "the first question was not understood"
            for number in range(rounds):
                program = ("flite", "espeak-ng")[number % 2]
                await asyncio.sleep(3.0)
                await bench.say(LISTENING[number % len(LISTENING)], program)
                await asyncio.sleep(2.0)
                stopped += Interruption in bench.at_s
                if Interruption in bench.at_s:
                    await asyncio.sleep(4.0)
                await bench.say(QUESTIONS[number % len(QUESTIONS)], program)
                if not await bench.until(Interruption, 3.0) or not await bench.until(Speaking):
                    missed += 1
                    continue
                began_s, ended_s = bench.said_s
                for name, kind, since_s in (
                    ("duck", Ducked, began_s),
                    ("silence", Held, began_s),
                    ("confirmed", Interruption, began_s),
                    ("asked", TurnBegan, ended_s),
                    ("first sound", Speaking, ended_s),
                ):
                    if kind in bench.at_s:
                        times[name].append(1000 * (bench.at_s[kind] - since_s))
            for task in tasks:
                task.cancel()
            await agent.interrupt()
    engine.close()
    rows: list[Row] = [_row(name, values) for name, values in times.items() if values]
    counts = {"signs of listening that stopped the agent": stopped, "interruptions missed": missed}
    return rows + [{"what": what, "n": n, "median ms": "", "90 % ms": "", "worst ms": ""} for what, n in counts.items()]


def _row(what: str, ms: list[float]) -> Row:
    return {"what": what, "n": len(ms), "median ms": median(ms), "90 % ms": percentile(ms, 90), "worst ms": max(ms)}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=8)
    arguments = options.parse_args()
    report("dialogue", asyncio.run(measure(arguments.rounds)), rounds=arguments.rounds)


if __name__ == "__main__":
    main()
