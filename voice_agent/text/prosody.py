"""Plans how a sentence is spoken: its speed and the break after it, by rules that a tag of the LLM overrides.

The rules are prosody.yaml, the mood comes from ``sentiment``. The same sentences in the same order give the same plan.
All values in an ``Utterance`` are final: the user's own speed, pitch and volume are already in it and in its marks, so
a mark replaces the utterance's value from its place on.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from tts_engine.types import Mark, Run, Tag, TagName, Utterance
from voice_agent.prompts import load
from voice_agent.text.pieces import Kind, Sentence
from voice_agent.text.plan import FINAL_VOLUME_RANGE, PITCH_RANGE, Hook, Plan, ProsodyConfig, Step, check_plan
from voice_agent.text.rules import BREAK_RANGE_MS, End, Length, end_of, kind_of, measure, read_rules
from voice_agent.text.sentiment import Sentiment, SentimentReader

__all__ = ["Hook", "Plan", "ProsodyConfig", "ProsodyPlanner", "Step"]

_log = logging.getLogger(__name__)

_PLAIN: dict[TagName, float] = {"speed": 1.0, "pitch": 0.0, "volume": 1.0}


@dataclass(frozen=True, slots=True)
class _Unfinished:
    """The parts already planned of a sentence that is spoken in parts."""

    sentiment: Sentiment
    words: int
    characters: int


@dataclass(frozen=True, slots=True)
class _State:
    """What one sentence leaves for the next.

    ``credit_ms``: what planned breaks may still take. ``speed``: the factor at its end. ``planned_ms``: the break after
    it, 0 where the LLM set it. ``held``: the tags in force.
    """

    credit_ms: float
    index: int = 0
    speed: float | None = None
    planned_ms: int = 0
    unfinished: _Unfinished | None = None
    held: dict[TagName, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Tags:
    """The tags of a sentence: values for it, values at its end, breaks around it (None: not said), marks inside it."""

    now: dict[TagName, float]
    last: dict[TagName, float]
    break_before_ms: int | None = None
    break_after_ms: int | None = None
    inside: tuple[Mark, ...] = ()


class ProsodyPlanner:
    """Plans the sentences of a reply one by one; ``reset()`` begins the next reply.

    A speed, pitch or volume tag stays in force until the next one of its name; a plain value (speed 1.0) holds for its
    own sentence and gives the following ones back to the rules. A break tag replaces the break that the rules plan.
    """

    def __init__(self, config: ProsodyConfig | None = None) -> None:
        self.config = config or ProsodyConfig()
        self._rules = load("prosody.yaml", read_rules, self.config.directory)
        self._reader = SentimentReader(self.config.directory)
        self.reset()

    def reset(self) -> None:
        """Forgets the reply: tags in force, the speed of the neighbour, the breaks spent, the index."""
        self._state = _State(self._rules.allowance_ms)

    def feed(self, sentence: Sentence) -> list[Utterance]:
        return [self.plan(sentence)]

    def flush(self) -> list[Utterance]:
        """Nothing is ever held back."""
        return []

    def plan(self, sentence: Sentence | str, *, raw: str = "", sentiment: str | None = None) -> Utterance:
        """The utterance of the next sentence.

        ``raw`` is what the LLM wrote for it, with the emoji that the cleaner took out; nothing else is read from it.
        ``sentiment`` is an LLM's own label, which goes before ours; an unknown one raises ``InputError`` with the
        allowed ones.
        """
        sentence = _as_sentence(sentence)
        plan, marks, self._state = self._decide(sentence, raw, sentiment)
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
            index=self._state.index - 1,
        )

    def explain(self, sentence: Sentence | str, *, raw: str = "", sentiment: str | None = None) -> Plan:
        """The plan that the next sentence would get, with its reasons; ``str()`` gives a table. It leaves no trace."""
        return self._decide(_as_sentence(sentence), raw, sentiment)[0]

    def _decide(self, sentence: Sentence, raw: str, label: str | None) -> tuple[Plan, tuple[Mark, ...], _State]:
        config, before = self.config, self._state
        kind, ends, length = kind_of(sentence.text, sentence.kind), end_of(sentence.text), measure(sentence.text)
        mood = Sentiment(self._reader.label(label), 1.0) if label else self._reader.read(sentence.text, raw)
        part = _Unfinished(mood, *length.longest)
        if before.unfinished and kind == "sentence":
            part = _continued(before.unfinished, part)
        steps = list(self._ruled(kind, ends, part))
        silent = not sentence.text.strip()
        if silent:
            steps.append(Step("silent", steps[-1].speed, 0, "there is nothing to say"))
        speed, break_ms = self._limited(steps, length)
        tags = _read_tags(sentence, before.held) if config.mode != "rules" else _Tags({}, {})
        if tags.break_after_ms is None:
            spent_ms, break_ms = break_ms, min(round(break_ms / config.speed), BREAK_RANGE_MS[1])
            planned_ms = break_ms
        else:
            spent_ms, break_ms = 0, tags.break_after_ms
            planned_ms = 0
        speed = tags.now.get("speed", speed)
        if "speed" in tags.now or tags.break_after_ms is not None:
            steps.append(Step("tags", speed, break_ms, "the LLM's own"))
        if config.speed != 1.0:
            steps.append(Step("user", speed * config.speed, break_ms, f"speed ×{config.speed:g}"))
        plan = Plan(
            text=sentence.text,
            kind=kind,
            sentiment=part.sentiment,
            speed=self._final("speed", speed),
            pitch=self._final("pitch", tags.now.get("pitch", 0.0)),
            volume=self._final("volume", tags.now.get("volume", 1.0)),
            break_before_ms=max(0, (tags.break_before_ms or 0) - before.planned_ms),
            break_after_ms=break_ms,
            steps=tuple(steps),
        )
        state = _State(
            credit_ms=self._credit_ms(length, steps[-1].speed) - spent_ms,
            index=before.index + 1,
            speed=tags.last.get("speed", before.speed if silent else speed),
            planned_ms=planned_ms,
            unfinished=before.unfinished if silent else part if kind == "sentence" and ends == "clause" else None,
            held={name: value for name, value in tags.last.items() if value != _PLAIN[name]},
        )
        marks = tuple(replace(mark, tag=self._final_tag(mark.tag)) for mark in tags.inside)
        return self._hooked(sentence, plan), marks, state

    def _ruled(self, kind: Kind, ends: End, part: _Unfinished) -> Iterator[Step]:
        """What the rules make of a sentence, a step for each that fires."""
        rules = self._rules
        speed, break_ms = rules.speed, rules.break_ms
        yield Step("normal", speed, break_ms)
        is_long = rules.is_long(part.words, part.characters)
        for rule in rules.rules:
            if (rule.always or self.config.mode != "tags") and rule.fits(kind, part.sentiment.label, ends, is_long):
                speed *= rule.speed
                break_ms = (break_ms if rule.break_ms is None else rule.break_ms) + rule.add_ms
                yield Step(rule.name, speed, break_ms)

    def _limited(self, steps: list[Step], length: Length) -> tuple[float, int]:
        """The speed and break of the last step within the limits; a limit that counts is a further step."""
        rules, before = self._rules, self._state.speed
        speed, break_ms = steps[-1].speed, steps[-1].break_ms
        least, most = rules.speed_least, rules.speed_most
        if before is not None:
            least, most = (
                max(least, min(before - rules.speed_step, most)),
                min(most, max(before + rules.speed_step, least)),
            )
        if not least <= speed <= most:
            speed = min(max(speed, least), most)
            steps.append(Step("smooth", speed, break_ms, f"kept between {least:.2f} and {most:.2f}"))
        credit_ms = self._credit_ms(length, speed)
        if not 0 <= break_ms <= min(rules.break_most_ms, credit_ms):
            break_ms = int(max(0, min(break_ms, rules.break_most_ms, credit_ms)))
            steps.append(Step("pauses", speed, break_ms, "no more than the reply may pause"))
        return speed, break_ms

    def _credit_ms(self, length: Length, speed: float) -> float:
        """What planned breaks may take, this sentence's own speech counted in."""
        earned_ms = self._rules.share * length.speech_ms / speed
        return min(float(self._rules.allowance_ms), self._state.credit_ms + earned_ms)

    def _final_tag(self, tag: Tag) -> Tag:
        return tag if tag.name == "break" else replace(tag, value=self._final(tag.name, tag.value))

    def _final(self, name: TagName, value: float) -> float:
        """A value with what the user asked for in it."""
        if name == "pitch":
            return min(max(value + self.config.pitch, PITCH_RANGE[0]), PITCH_RANGE[1])
        if name == "volume":
            return min(value * self.config.volume, FINAL_VOLUME_RANGE[1])
        return round(value * self.config.speed, 4)

    def _hooked(self, sentence: Sentence, plan: Plan) -> Plan:
        hook = self.config.hook
        if hook is None:
            return plan
        try:
            changed = hook(sentence, plan)
            if changed is None:
                return plan
            changed = check_plan(changed)
        except Exception as error:
            name = getattr(hook, "__qualname__", repr(hook))
            _log.warning("prosody hook %s failed, the sentence is spoken as planned: %r", name, error, exc_info=True)
            return replace(plan, steps=(*plan.steps, Step("hook", plan.speed, plan.break_after_ms, f"failed: {error!r}")))
        return replace(changed, steps=(*plan.steps, Step("hook", changed.speed, changed.break_after_ms)))


def _continued(before: _Unfinished, part: _Unfinished) -> _Unfinished:
    """A further part of a sentence keeps the mood of the parts before it unless it has its own; the lengths add up."""
    mood = before.sentiment if part.sentiment.label == "neutral" else part.sentiment
    return _Unfinished(mood, before.words + part.words, before.characters + part.characters)


def _read_tags(sentence: Sentence, held: dict[TagName, float]) -> _Tags:
    now, last = dict(held), dict(held)
    before_ms: float | None = None
    after_ms: float | None = None
    inside: list[Mark] = []
    for mark in sentence.marks:
        name, value = mark.tag.name, mark.tag.value
        at_start, at_end = mark.index <= 0, mark.index >= len(sentence.text)
        if not at_start and not at_end:
            inside.append(mark)
        if name != "break":
            last[name] = value
            if at_start:
                now[name] = value
        elif at_start:
            before_ms = (before_ms or 0) + value
        elif at_end:
            after_ms = (after_ms or 0) + value
    return _Tags(now, last, _bounded_ms(before_ms), _bounded_ms(after_ms), tuple(inside))


def _bounded_ms(value: float | None) -> int | None:
    return None if value is None else min(round(value), BREAK_RANGE_MS[1])


def _as_sentence(sentence: Sentence | str) -> Sentence:
    if isinstance(sentence, str):
        return Sentence(sentence, (Run(sentence, 0, len(sentence)),))
    return sentence
