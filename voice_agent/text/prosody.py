"""Plans how a sentence is spoken: its speed and the break after it, by rules that a tag of the LLM overrides.

The rules are prosody.yaml, the mood comes from ``sentiment``. Planning is deterministic: the same sentences in the same order give the same
plan. All values in an ``Utterance`` are final: the user's own speed, pitch and volume are already in it and in its marks, so a mark
replaces the utterance's value from its place on.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import get_args

from tts_engine.types import Language, Mark, Run, Tag, TagName, Utterance
from voice_agent.errors import ConfigError
from voice_agent.prompts import Mode, load
from voice_agent.text.pieces import Kind, Sentence
from voice_agent.text.rules import BREAK_RANGE_MS, SPEED_RANGE, end_of, kind_of, measure, read_rules
from voice_agent.text.sentiment import Sentiment, SentimentReader

_log = logging.getLogger(__name__)

PITCH_RANGE = (-12.0, 12.0)
VOLUME_RANGE = (0.0, 4.0)
_PLAIN: dict[TagName, float] = {"speed": 1.0, "pitch": 0.0, "volume": 1.0}


@dataclass(frozen=True, slots=True)
class Step:
    """What one rule or limit made of the plan: the speed and break after it, and a word on why."""

    name: str
    speed: float
    break_ms: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """How one sentence will be spoken, and why: the values of its ``Utterance`` and the steps that led to them."""

    text: str
    kind: Kind
    sentiment: Sentiment
    speed: float
    pitch: float
    volume: float
    break_before_ms: int
    break_after_ms: int
    steps: tuple[Step, ...] = ()

    def __str__(self) -> str:
        """A table for people: a line a step, with the speed and break that it led to."""
        heard = ", ".join(f"{word} {weight:+.2f}" for word, weight in self.sentiment.evidence)
        text = self.text if len(self.text) <= 60 else f"{self.text[:57]}..."
        lines = [repr(text), f"  {self.sentiment.label} {self.sentiment.score:.2f}{f' ({heard})' if heard else ''}"]
        lines += [f"  {step.name:<12} speed {step.speed:.2f}  break {step.break_ms:4d} ms  {step.note}".rstrip() for step in self.steps]
        lines.append(f"  {'result':<12} speed {self.speed:.2f}  break {self.break_after_ms:4d} ms")
        return "\n".join(lines)


Hook = Callable[[Sentence, Plan], Plan | None]
"""The user's last word on a plan: gives another one (``dataclasses.replace``), or None to leave it."""


@dataclass(frozen=True, slots=True)
class ProsodyConfig:
    """What the user asks of every sentence.

    ``speed`` (0.5 to 2) and ``volume`` (0 to 4) multiply what rules and tags say, ``pitch`` (semitones) is added. ``directory`` may hold own
    versions of the files in prompts/. ``hook`` sees each plan last; when it fails, the sentence is spoken as planned and the failure is logged.
    """

    mode: Mode = "both"
    voice: str = "auto"
    language: Language | None = None
    speed: float = 1.0
    pitch: float = 0.0
    volume: float = 1.0
    directory: Path | str | None = None
    hook: Hook | None = None

    def __post_init__(self) -> None:
        if self.mode not in get_args(Mode):
            raise ConfigError(f"prosody mode: use one of {', '.join(get_args(Mode))}, not {self.mode!r}")
        for name, value, (least, most) in (
            ("speed", self.speed, SPEED_RANGE),
            ("pitch", self.pitch, PITCH_RANGE),
            ("volume", self.volume, VOLUME_RANGE),
        ):
            if not least <= value <= most:
                raise ConfigError(f"prosody {name}: use a number from {least:g} to {most:g}, not {value!r}")


@dataclass(frozen=True, slots=True)
class _Unfinished:
    """The parts already planned of a sentence that is spoken in parts."""

    sentiment: Sentiment
    words: int
    characters: int


@dataclass(frozen=True, slots=True)
class _State:
    """What one sentence leaves for the next.

    ``speed``: the factor at its end. ``planned_ms``: the break after it as far as the rules planned it. ``credit_ms``: what planned
    breaks may still take. ``held``: the tags in force.
    """

    credit_ms: float
    index: int = 0
    speed: float | None = None
    planned_ms: int = 0
    unfinished: _Unfinished | None = None
    held: dict[TagName, float] = field(default_factory=dict)


class ProsodyPlanner:
    """Plans the sentences of a reply one by one; ``reset()`` begins the next reply.

    A speed, pitch or volume tag stays in force until the next one of its name; a plain value (speed 1.0) holds for its own sentence and
    gives the following ones back to the rules.
    """

    def __init__(self, config: ProsodyConfig | None = None) -> None:
        self.config = config or ProsodyConfig()
        self._rules = load("prosody.yaml", read_rules, self.config.directory)
        self._reader = SentimentReader(self.config.directory)
        self._state = _State(self._rules.allowance_ms)

    def plan(self, sentence: Sentence | str, *, raw: str = "", sentiment: str | None = None) -> Utterance:
        """The utterance of the next sentence.

        ``raw`` is what the LLM wrote for it, with the emoji that the cleaner took out; only the mood is read from it. ``sentiment`` is an
        LLM's own label, which goes before ours; an unknown one raises ``InputError`` with the allowed ones.
        """
        sentence = _as_sentence(sentence)
        plan, marks, state = self._decide(sentence, raw, sentiment)
        self._state = state
        return Utterance(
            text=sentence.text,
            voice=self.config.voice,
            language=self.config.language,
            speed=plan.speed,
            pitch=plan.pitch,
            volume=plan.volume,
            break_before_ms=plan.break_before_ms,
            break_after_ms=plan.break_after_ms,
            marks=marks,
            runs=sentence.runs,
            index=state.index - 1,
        )

    def explain(self, sentence: Sentence | str, *, raw: str = "", sentiment: str | None = None) -> Plan:
        """The plan that the next sentence would get, with its reasons; nothing is remembered. ``str()`` of it is a table."""
        return self._decide(_as_sentence(sentence), raw, sentiment)[0]

    def feed(self, sentence: Sentence) -> list[Utterance]:
        return [self.plan(sentence)]

    def flush(self) -> list[Utterance]:
        """Nothing is ever held back."""
        return []

    def reset(self) -> None:
        """Forgets the reply: tags in force, the speed of the neighbour, the breaks spent, the index."""
        self._state = _State(self._rules.allowance_ms)

    def _decide(self, sentence: Sentence, raw: str, label: str | None) -> tuple[Plan, tuple[Mark, ...], _State]:
        config, rules, before = self.config, self._rules, self._state
        mood = Sentiment(self._reader.label(label), 1.0) if label else self._reader.read(raw or sentence.text)
        kind, ends, length = kind_of(sentence.text, sentence.kind), end_of(sentence.text), measure(sentence.text)
        (words, characters), unfinished = length.longest, before.unfinished if kind == "sentence" else None
        if unfinished:
            words, characters = words + unfinished.words, characters + unfinished.characters
            mood = unfinished.sentiment if mood.label == "neutral" else mood

        speed, break_ms = rules.speed, rules.break_ms
        steps = [Step("normal", speed, break_ms)]
        for rule in rules.rules:
            if (rule.always or config.mode != "tags") and rule.fits(kind, mood.label, ends, rules.is_long(words, characters)):
                speed *= rule.speed
                break_ms = (break_ms if rule.break_ms is None else rule.break_ms) + rule.add_ms
                steps.append(Step(rule.name, speed, break_ms))

        least, most = rules.speed_least, rules.speed_most
        if before.speed is not None:
            low, high = before.speed - rules.speed_step, before.speed + rules.speed_step
            least, most = max(least, min(low, most)), min(most, max(high, least))
        if not least <= speed <= most:
            speed = min(max(speed, least), most)
            steps.append(Step("smooth", speed, break_ms, f"kept between {least:.2f} and {most:.2f}"))
        credit_ms = min(float(rules.allowance_ms), before.credit_ms + rules.share * length.speech_ms / speed)
        if not 0 <= break_ms <= min(rules.break_most_ms, credit_ms):
            break_ms = int(max(0, min(break_ms, rules.break_most_ms, credit_ms)))
            steps.append(Step("pauses", speed, break_ms, "no more than the reply may pause"))

        tags = _read_tags(sentence, before.held) if config.mode != "rules" else _Tags({}, {}, {}, None, None, ())
        planned_ms = 0
        if tags.break_after_ms is None:
            credit_ms -= break_ms
            planned_ms = break_ms = min(round(break_ms / config.speed), BREAK_RANGE_MS[1])
        else:
            break_ms = tags.break_after_ms
        speed = tags.now.get("speed", speed)
        if "speed" in tags.now or tags.break_after_ms is not None:
            steps.append(Step("tags", speed, break_ms, "the LLM's own"))
        if config.speed != 1.0:
            steps.append(Step("user", speed * config.speed, break_ms, f"speed ×{config.speed:g}"))
        plan = self._hooked(
            sentence,
            Plan(
                text=sentence.text,
                kind=kind,
                sentiment=mood,
                speed=self._final("speed", speed),
                pitch=self._final("pitch", tags.now.get("pitch", 0.0)),
                volume=self._final("volume", tags.now.get("volume", 1.0)),
                break_before_ms=max(0, (tags.break_before_ms or 0) - before.planned_ms),
                break_after_ms=break_ms,
                steps=tuple(steps),
            ),
        )
        marks = tuple(
            mark if mark.tag.name == "break" else replace(mark, tag=replace(mark.tag, value=self._final(mark.tag.name, mark.tag.value)))
            for mark in tags.inside
        )
        return (
            plan,
            marks,
            _State(
                credit_ms=credit_ms,
                index=before.index + 1,
                speed=tags.last.get("speed", speed),
                planned_ms=planned_ms,
                unfinished=_Unfinished(mood, words, characters) if kind == "sentence" and ends == "clause" else None,
                held=tags.held,
            ),
        )

    def _final(self, name: TagName, value: float) -> float:
        """A value with what the user asked for in it."""
        if name == "pitch":
            return min(max(value + self.config.pitch, PITCH_RANGE[0]), PITCH_RANGE[1])
        if name == "volume":
            return min(value * self.config.volume, VOLUME_RANGE[1])
        return round(value * self.config.speed, 4)

    def _hooked(self, sentence: Sentence, plan: Plan) -> Plan:
        hook = self.config.hook
        if hook is None:
            return plan
        try:
            changed = hook(sentence, plan)
            if changed is None or changed == plan:
                return plan
            _check(changed)
        except Exception as error:
            name = getattr(hook, "__qualname__", repr(hook))
            _log.warning("prosody hook %s failed and was left out: %s: %s", name, type(error).__name__, error, exc_info=True)
            return replace(plan, steps=(*plan.steps, Step("hook", plan.speed, plan.break_after_ms, f"failed: {error!r}")))
        return replace(changed, steps=(*plan.steps, Step("hook", changed.speed, changed.break_after_ms)))


@dataclass(frozen=True, slots=True)
class _Tags:
    """The tags of a sentence: values for it as a whole, values at its end, what stays in force, breaks around it, marks inside."""

    now: dict[TagName, float]
    last: dict[TagName, float]
    held: dict[TagName, float]
    break_before_ms: int | None
    break_after_ms: int | None
    inside: tuple[Mark, ...]


def _read_tags(sentence: Sentence, held: dict[TagName, float]) -> _Tags:
    now, last = dict(held), dict(held)
    before: float | None = None
    after: float | None = None
    inside: list[Mark] = []
    for mark in sentence.marks:
        name, value = mark.tag.name, mark.tag.value
        at_start, at_end = mark.index <= 0, mark.index >= len(sentence.text)
        if name != "break":
            last[name] = value
            if at_start:
                now[name] = value
        elif at_start:
            before = (before or 0) + value
        elif at_end:
            after = (after or 0) + value
        if not at_start and not at_end:
            inside.append(mark)
    return _Tags(
        now,
        last,
        {name: value for name, value in last.items() if value != _PLAIN[name]},
        None if before is None else min(round(before), BREAK_RANGE_MS[1]),
        None if after is None else min(round(after), BREAK_RANGE_MS[1]),
        tuple(inside),
    )


def _check(plan: Plan) -> None:
    """Whether a plan from outside can be spoken."""
    if not isinstance(plan, Plan):
        raise TypeError(f"a hook gives a Plan or None, not {type(plan).__name__}")
    for name, value, (least, most) in (
        ("speed", plan.speed, (SPEED_RANGE[0] ** 2, SPEED_RANGE[1] ** 2)),
        ("pitch", plan.pitch, PITCH_RANGE),
        ("volume", plan.volume, VOLUME_RANGE),
        ("break_before_ms", plan.break_before_ms, BREAK_RANGE_MS),
        ("break_after_ms", plan.break_after_ms, BREAK_RANGE_MS),
    ):
        if not (math.isfinite(value) and least <= value <= most):
            raise ValueError(f"{name} {value!r} is not between {least:g} and {most:g}")


def _as_sentence(sentence: Sentence | str) -> Sentence:
    if isinstance(sentence, str):
        return Sentence(sentence, (Run(sentence, 0, len(sentence)),))
    return sentence
