"""The planner's rules: what prosody.yaml may say, checked, and what a sentence has that a rule can ask for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, cast, get_args

from tts_engine.text.language import is_han
from voice_agent.errors import ConfigError
from voice_agent.prompts import Section
from voice_agent.text.lexicon import FINAL_MARKS, Label, split_units
from voice_agent.text.pieces import Kind

End = Literal["statement", "question", "exclamation", "colon", "clause"]

SPEED_RANGE = (0.5, 2.0)
BREAK_RANGE_MS = (0, 5000)
LONGEST_MEASURE = 4_000
"""Characters that are counted of one sentence: beyond them every sentence is long."""

_LIST_MARK = re.compile(r"\s*(?:[-*+•·–]\s+|[(（]?\d{1,3}(?:[.)]\s+|[）、．]))")
_CLOSING = " \t\r\n\"'”’」』）)】]}»*_`"
_ENDS: dict[str, End] = {
    **dict.fromkeys("?？؟", "question"),
    **dict.fromkeys("!！", "exclamation"),
    **dict.fromkeys(".。．…｡۔।", "statement"),
    **dict.fromkeys(":：", "colon"),
}
_ENGLISH_WORD_MS, _CHINESE_CHARACTER_MS = 350, 220


@dataclass(frozen=True, slots=True)
class Length:
    """How much a text holds, and how much of it the longest sentence inside."""

    words: int
    characters: int
    longest: tuple[int, int]

    @property
    def speech_ms(self) -> int:
        """About how long it takes to say at speed 1.0."""
        return self.words * _ENGLISH_WORD_MS + self.characters * _CHINESE_CHARACTER_MS


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; a condition that is None asks nothing."""

    name: str
    kind: Kind | None = None
    mood: Label | None = None
    ends: End | None = None
    long: bool | None = None
    speed: float = 1.0
    break_ms: int | None = None
    add_ms: int = 0
    always: bool = False

    def fits(self, kind: Kind, mood: Label, ends: End, long: bool) -> bool:
        return (
            self.kind in (None, kind)
            and self.mood in (None, mood)
            and self.ends in (None, ends)
            and (self.long is None or self.long is long)
        )


@dataclass(frozen=True, slots=True)
class Rules:
    """All of prosody.yaml."""

    speed: float
    speed_least: float
    speed_most: float
    speed_step: float
    break_ms: int
    break_most_ms: int
    allowance_ms: int
    share: float
    long_words: int
    long_characters: int
    rules: tuple[Rule, ...]

    def is_long(self, words: int, characters: int) -> bool:
        """English words and Chinese characters count together, each by its own limit."""
        return words / self.long_words + characters / self.long_characters > 1.0


def measure(text: str) -> Length:
    """Counts English words and Chinese characters, sentence by sentence; a number is a word."""
    words = characters = 0
    sentence = longest = (0, 0)
    for unit in split_units(text[:LONGEST_MEASURE])[0]:
        if unit in FINAL_MARKS:
            sentence = (0, 0)
        elif is_han(unit[0]):
            characters += 1
            sentence = (sentence[0], sentence[1] + 1)
        elif unit[0].isalnum():
            words += 1
            sentence = (sentence[0] + 1, sentence[1])
        longest = max(longest, sentence, key=sum)
    return Length(words, characters, longest)


def end_of(text: str) -> End:
    """What kind of end a text has; closing quotes and brackets do not count. ``?!`` is a question."""
    tail = text[-64:].rstrip(_CLOSING)
    if len(tail) > 1 and tail[-1] in "!！" and tail[-2] in "?？":
        return "question"
    return _ENDS.get(tail[-1:], "clause")


def kind_of(text: str, kind: Kind) -> Kind:
    """The kind of a sentence; one that still has a list mark before it is a list item."""
    return "list_item" if kind == "sentence" and _LIST_MARK.match(text) else kind


def read_rules(section: Section) -> Rules:
    """Checks prosody.yaml; the builder for ``prompts.load``."""
    whole = Section(section.values, section.where, ("speed", "break_ms", "pauses", "long", "rules"))
    speed = whole.section("speed", ("normal", "least", "most", "step"))
    least, most = speed.number("least", *SPEED_RANGE), speed.number("most", *SPEED_RANGE)
    if least > most:
        raise ConfigError(f"{speed.at('least')}: {least:g} is above most ({most:g})")
    breaks = whole.section("break_ms", ("normal", "most"))
    break_most = breaks.number("most", *BREAK_RANGE_MS)
    pauses = whole.section("pauses", ("allowance_ms", "share"))
    long = whole.section("long", ("english_words", "chinese_characters"))
    return Rules(
        speed=speed.number("normal", least, most),
        speed_least=least,
        speed_most=most,
        speed_step=speed.number("step", 0, 2),
        break_ms=int(breaks.number("normal", 0, break_most)),
        break_most_ms=int(break_most),
        allowance_ms=int(pauses.number("allowance_ms", 0, 60_000)),
        share=pauses.number("share", 0, 10),
        long_words=int(long.number("english_words", 1, 1000)),
        long_characters=int(long.number("chinese_characters", 1, 1000)),
        rules=tuple(
            _read_rule(rule) for rule in whole.sections("rules", ("name", "when", "speed", "break_ms", "add_ms", "always"))
        ),
    )


def _read_rule(section: Section) -> Rule:
    when = section.section("when", ("kind", "mood", "ends", "long"))
    return Rule(
        name=section.text("name"),
        kind=cast(Kind, when.choice("kind", get_args(Kind))) if "kind" in when else None,
        mood=cast(Label, when.choice("mood", get_args(Label))) if "mood" in when else None,
        ends=cast(End, when.choice("ends", get_args(End))) if "ends" in when else None,
        long=when.switch("long") if "long" in when else None,
        speed=section.number("speed", *SPEED_RANGE, default=1.0),
        break_ms=int(section.number("break_ms", *BREAK_RANGE_MS)) if "break_ms" in section else None,
        add_ms=int(section.number("add_ms", -BREAK_RANGE_MS[1], BREAK_RANGE_MS[1], default=0)),
        always=section.switch("always") if "always" in section else False,
    )
