"""Scenes to hear: a user, an agent, a room and noise, played in a closed loop, and what came of it.

The loop is that of a conversation: what the ears decide changes what the agent plays from the next 20 ms on, and what it
plays comes back as echo. A recogniser is imitated: asked on a hold, again while that lasts, and whenever the user pauses,
it tells 0.3 s later the words that had been said when it was asked. A clause that is cut keeps its comma, or ends at random
with a full stop, a comma, dots or nothing; or, ``marks="whisper"``, with what Whisper base was seen to put there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from benchmarks.ears_casts import Cast, Saying
from benchmarks.ears_sounds import RATE, active, agent_speech, cough, noise, room, spoken
from tts_engine.types import AudioFormat, Samples
from voice_agent.ears.decisions import Decision, Duck, Hold, Interrupt, Resume
from voice_agent.ears.ears import Ears

BLOCK = 320
RECOGNISED_S = 0.3
PAUSE_S = 0.12  # a pause at which the recogniser is asked
AFTER_WORD_S = 0.1  # a word is known so much after it was said
FLOOR_DB = -75.0  # a microphone's own noise
WHISPER_MARKS, WHISPER_SHARES = (".", "...", "", "?"), (0.70, 0.15, 0.12, 0.03)
"""What Whisper base puts behind a clause that is cut, and how often (34 clauses of the tuning cast)."""


@dataclass(frozen=True)
class Said:
    """A stretch of the user's sound: where it begins and ends, from the level of the clean clip."""

    kind: str
    start_s: float
    end_s: float
    words: tuple[tuple[float, str], ...] = ()
    """What a recogniser could tell, and from when on."""


@dataclass(frozen=True)
class Scene:
    """``user`` and ``noise``: [samples] at 16 kHz; ``agent``: what would be played if nobody interfered, or None."""

    name: str
    user: Samples
    noise: Samples
    said: tuple[Said, ...]
    agent: Samples | None = None
    echo: Samples | None = None


@dataclass
class Outcome:
    """The decisions of a scene, and where the agent's playing stood still."""

    scene: Scene
    decisions: list[Decision] = field(default_factory=list)

    def first(self, kind: type, after_s: float = 0.0) -> float | None:
        return next((d.at_s for d in self.decisions if isinstance(d, kind) and d.at_s >= after_s), None)

    def all(self, kind: type) -> list[Decision]:
        return [d for d in self.decisions if isinstance(d, kind)]


class Recogniser:
    """Imitates a recogniser over what is known to be said."""

    def __init__(self, said: tuple[Said, ...]) -> None:
        self._said = said
        self._asked_s = -1.0
        self._answers: list[tuple[float, str, float]] = []

    def poll(self, ears: Ears, decisions: list[Decision]) -> None:
        now_s = ears.heard_s
        held = any(isinstance(d, Hold) for d in decisions)
        paused = ears.speaking and ears.silence_s >= PAUSE_S and self._asked_s < now_s - ears.silence_s
        if held or paused:
            self._ask(now_s)
        while self._answers and self._answers[0][0] <= now_s:
            _, words, upto_s = self._answers.pop(0)
            if ears.speaking:
                ears.hear(words, upto_s)
            if ears.barging and upto_s < now_s - ears.silence_s:
                self._ask(now_s)

    def _ask(self, now_s: float) -> None:
        self._asked_s = now_s
        self._answers.append((now_s + RECOGNISED_S, self._words(now_s), now_s))

    def _words(self, now_s: float) -> str:
        for said in self._said:
            if said.start_s <= now_s <= said.end_s + 2.0:
                return next((text for since_s, text in reversed(said.words) if since_s <= now_s), "")
        return ""


def play(scene: Scene, ears: Ears, recogniser: bool = True) -> Outcome:
    """Runs a scene through ears that have just been made."""
    outcome = Outcome(scene)
    listener = Recogniser(scene.said if recogniser else ())
    mic = scene.user + scene.noise
    coming = np.zeros(len(mic) + (0 if scene.echo is None else len(scene.echo)) + BLOCK, dtype=np.float32)
    format, place, gain, held, over = AudioFormat(RATE), 0, 1.0, False, scene.agent is None
    size = 0 if scene.echo is None else 1 << (BLOCK + len(scene.echo) - 1).bit_length()
    path = None if scene.echo is None else np.fft.rfft(scene.echo, size)
    for first in range(0, len(mic) - BLOCK + 1, BLOCK):
        played = np.zeros(BLOCK, dtype=np.float32)
        if not (held or over):
            assert scene.agent is not None
            piece = scene.agent[place : place + BLOCK]
            played[: len(piece)] = piece * gain
            place += BLOCK
        if path is not None and played.any():
            loud = np.tanh(1.2 * played) / 1.2  # a small loudspeaker is not linear
            coming[first : first + BLOCK + len(scene.echo) - 1] += np.fft.irfft(np.fft.rfft(loud, size) * path, size)[
                : BLOCK + len(scene.echo) - 1
            ]
        decisions = ears.feed(mic[first : first + BLOCK] + coming[first : first + BLOCK], format, played)
        if recogniser:
            listener.poll(ears, decisions)
        for decision in decisions:
            outcome.decisions.append(decision)
            if isinstance(decision, Duck):
                gain = 0.25
            elif isinstance(decision, Hold):
                held = True
            elif isinstance(decision, Resume):
                gain, held = 1.0, False
            elif isinstance(decision, Interrupt):
                over = True
    outcome.decisions += ears.flush()
    return outcome


def _cut_mark(marks: str, clause: str, dice: np.random.Generator) -> str:
    """What a recogniser writes behind a clause that is cut."""
    if marks == "whisper":
        return str(dice.choice(WHISPER_MARKS, p=WHISPER_SHARES))
    return clause[-1] if clause[-1] in ",，" else str(dice.choice(["", ".", "...", ","]))


def speak(
    cast: Cast, saying: Saying, dice: np.random.Generator, marks: str = "even"
) -> tuple[Samples, list[tuple[float, str]], float]:
    """The samples of a saying by some voice of the cast, when a recogniser could tell what, and the seconds it takes."""
    voices = cast.voices[saying.language]
    voice = voices[int(dice.integers(len(voices)))]
    parts: list[Samples] = []
    words: list[tuple[float, str]] = []
    said, gap = "", " " if saying.language == "en" else ""
    for i, clause in enumerate(saying.clauses):
        clip = spoken(*voice, clause)
        start_s = sum(map(len, parts)) / RATE
        pieces = clause.split() if gap else list(clause)
        for n in range(1, len(pieces)):
            share = sum(map(len, pieces[:n])) / sum(map(len, pieces))
            since_s = start_s + share * len(clip) / RATE + AFTER_WORD_S
            words.append((since_s, said + gap.join(pieces[:n]).rstrip(",，。.?？")))
        end_s = start_s + len(clip) / RATE - AFTER_WORD_S  # the last sound of a word is not what makes it known
        last = i == len(saying.clauses) - 1
        whole = last or clause[-1] in ".?。？"
        said += (clause if whole else clause.rstrip(",，") + _cut_mark(marks, clause, dice)) + gap
        words.append((end_s, said.strip()))
        parts.append(clip)
        if not last:
            parts.append(np.zeros(round(saying.pauses_s[i] * dice.uniform(0.8, 1.2) * RATE), dtype=np.float32))
    samples = np.concatenate(parts)
    return samples, words, len(samples) / RATE


def _user(seconds: float, clip: Samples, at_s: float) -> tuple[Samples, tuple[float, float]]:
    user = np.zeros(round(seconds * RATE), dtype=np.float32)
    place = round(at_s * RATE)
    user[place : place + len(clip)] = clip[: len(user) - place]
    start, end = active(clip)
    return user, (at_s + start, at_s + end)


def _background(kind: str | None, snr_db: float, seconds: float, seed: int, cast: Cast) -> Samples:
    count = round(seconds * RATE)
    floor = np.random.default_rng(seed).normal(0, 10 ** (FLOOR_DB / 20), count).astype(np.float32)
    if kind is None:
        return floor
    return floor + noise(kind, seconds, seed, cast.crowd)[:count] * np.float32(10 ** (-snr_db / 20))


def _agent(seconds: float, dice: np.random.Generator) -> Samples:
    speech = agent_speech()
    return np.roll(np.resize(speech, max(round(seconds * RATE), len(speech))), -int(dice.integers(len(speech))))


def _echo(dice: np.random.Generator) -> Samples:
    return room(
        dice.uniform(0.02, 0.12), dice.uniform(6, 30), int(dice.integers(1 << 30)), reverberation_s=dice.uniform(0.15, 0.4)
    )


def overlaps(cast: Cast, kind: str, noise_kind: str | None, snr_db: float, count: int, *, echo: bool = True) -> Iterator[Scene]:
    """The user over the agent: an interruption, a backchannel, or a cough, some seconds into its reply."""
    sayings = {"interruption": cast.interruptions, "backchannel": cast.backchannels}.get(kind, ())
    for number in range(count):
        seed = cast.seed * 1_000_003 + number * 101 + sum(map(ord, f"{kind}{noise_kind}{snr_db}"))
        dice = np.random.default_rng(seed)
        words: list[tuple[float, str]] = []
        if kind == "cough":
            clip = cough(seed)
        else:
            clip, words, _ = speak(cast, sayings[number % len(sayings)], dice)
        at_s = dice.uniform(3.0, 5.0)
        seconds = at_s + len(clip) / RATE + 2.5
        user, (start_s, end_s) = _user(seconds, clip, at_s)
        said = Said(kind, start_s, end_s, tuple((at_s + since_s, text) for since_s, text in words))
        background = _background(noise_kind, snr_db, seconds, seed, cast)
        agent = _agent(seconds, dice)
        yield Scene(f"{kind} {noise_kind} {snr_db:g}", user, background, (said,), agent, _echo(dice) if echo else None)


def alone(cast: Cast, noise_kind: str | None, snr_db: float, seconds: float, count: int, *, echo: bool) -> Iterator[Scene]:
    """The agent speaks and nobody else: every interruption is false."""
    for number in range(count):
        seed = cast.seed * 1_000_003 + number * 211 + sum(map(ord, f"alone{noise_kind}{snr_db}"))
        dice = np.random.default_rng(seed)
        user = np.zeros(round(seconds * RATE), dtype=np.float32)
        background = _background(noise_kind, snr_db, seconds, seed, cast)
        yield Scene(
            f"alone {noise_kind} {snr_db:g}", user, background, (), _agent(seconds, dice), _echo(dice) if echo else None
        )


def turns(cast: Cast, noise_kind: str | None, snr_db: float, count: int, marks: str = "even") -> Iterator[Scene]:
    """The user speaks and the agent is silent; ``marks``: "even" or "whisper", see :func:`_cut_mark`."""
    for number in range(count):
        seed = cast.seed * 1_000_003 + number * 307 + sum(map(ord, f"turn{noise_kind}{snr_db}"))
        dice = np.random.default_rng(seed)
        clip, words, _ = speak(cast, cast.turns[number % len(cast.turns)], dice, marks)
        at_s = dice.uniform(2.0, 3.0)
        seconds = at_s + len(clip) / RATE + 2.5
        user, (start_s, end_s) = _user(seconds, clip, at_s)
        said = Said("turn", start_s, end_s, tuple((at_s + since_s, text) for since_s, text in words))
        yield Scene(f"turn {noise_kind} {snr_db:g}", user, _background(noise_kind, snr_db, seconds, seed, cast), (said,))
