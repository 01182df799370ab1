"""Hears the mood of a sentence: urgent, positive, negative, apology or neutral, from its words, marks and emoji.

A rule-based reader in the manner of VADER (Hutto and Gilbert, 2014): words of a lexicon, changed by what stands around them. A word
does not count where it is denied ("no rush"), only mentioned ("the word sorry"), part of a name ("fire department") or a title, and it
counts less in a question or a condition.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast, get_args

from voice_agent.errors import InputError
from voice_agent.prompts import Section, load
from voice_agent.text.lexicon import CLAUSE_MARKS, FINAL_MARKS, GRADES, Entry, Label, Lexicon, read_lexicon, split_units

LABELS: tuple[Label, ...] = get_args(Label)
MOODS: tuple[Label, ...] = tuple(GRADES)
LONGEST_TEXT = 2_000
"""Characters that are read of one sentence: a mood does not hide behind more, and the work stays bounded."""

_QUOTED = re.compile(r"[\"“「『‘]([^\"“”「」『』‘]{1,40}?)[\"”」』]|《[^《》]{1,60}》")
_HAS_CHINESE = re.compile(r"[㐀-鿿豈-﫿\U00020000-\U0003ffff]")
_HAS_LETTERS = re.compile(r"[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Sentiment:
    """A mood with its strength from 0 to 1 (neutral: 0), and the words that gave it, each with its weight."""

    label: Label
    score: float = 0.0
    evidence: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True)
class _Numbers:
    """What sentiment.yaml says."""

    threshold: float
    exclamation: float
    reach: int
    weights: dict[str, float]
    factors: dict[str, float]
    emoji: dict[str, tuple[Label, float]]
    emoji_pattern: re.Pattern[str]
    labels: dict[str, Label]


@dataclass(slots=True)
class _Hit:
    """An entry found in the text: its units, its characters, its clause, and whether it opens the clause."""

    entry: Entry
    first: int
    end: int
    clause: int
    opens: bool
    lexicon: Lexicon


@dataclass(slots=True)
class _Part:
    """The text up to a final mark."""

    hits: list[_Hit] = field(default_factory=list)
    mark: str = ""


class SentimentReader:
    """Reads moods. ``directory`` is the user's own for prompts files, see ``voice_agent.prompts.load``."""

    def __init__(self, directory: Path | str | None = None) -> None:
        self._numbers = load("sentiment.yaml", _read_numbers, directory)
        self._english = load("sentiment_en.yaml", read_lexicon, directory)
        self._chinese = load("sentiment_zh.yaml", read_lexicon, directory)

    def read(self, text: str) -> Sentiment:
        """The mood of a sentence, or of a few; the first ``LONGEST_TEXT`` characters are read."""
        text = text[:LONGEST_TEXT]
        scores = dict.fromkeys(MOODS, 0.0)
        evidence: dict[Label, list[tuple[str, float]]] = {label: [] for label in MOODS}
        units, starts = split_units(text)
        for part in self._parts(text, units, starts):
            if part.hits:
                for label, word, weight in _Scorer(self._numbers, part, text, units, starts).score():
                    scores[label] += weight
                    evidence[label].append((word, weight))
        for mark in dict.fromkeys(self._numbers.emoji_pattern.findall(text)):
            label, weight = self._numbers.emoji[mark]
            scores[label] += weight
            evidence[label].append((mark, weight))
        label = self._choose(scores)
        if label == "neutral":
            return Sentiment("neutral")
        return Sentiment(label, min(1.0, scores[label] / 2), tuple(evidence[label]))

    def label(self, name: str) -> Label:
        """The mood that an LLM's own label means: a mood's name or a synonym in sentiment.yaml, in any letter case."""
        found = self._numbers.labels.get(name.strip().casefold())
        if found is None:
            raise InputError(f"unknown sentiment {name!r}; use one of {', '.join(LABELS)}, or a synonym listed in sentiment.yaml")
        return found

    def _choose(self, scores: dict[Label, float]) -> Label:
        """An apology and an alarm go before plain good or bad news."""
        heard = [label for label in MOODS if scores[label] >= self._numbers.threshold]
        if not heard:
            return "neutral"
        first = [label for label in ("apology", "urgent") if label in heard]
        return max(first or heard, key=lambda label: (scores[cast(Label, label)], label == "negative"))  # type: ignore[return-value]

    def _parts(self, text: str, units: list[str], starts: list[int]) -> Iterable[_Part]:
        """The hits of a text, each in its part and clause."""
        part, clause, opens, index = _Part(), 0, True, 0
        while index < len(units):
            unit = units[index]
            if unit in FINAL_MARKS or unit in CLAUSE_MARKS:
                clause, opens = clause + 1, True
                if unit in FINAL_MARKS:
                    part.mark += unit
                    following = units[index + 1] if index + 1 < len(units) else ""
                    if following not in FINAL_MARKS:
                        yield part
                        part = _Part()
                index += 1
                continue
            lexicon = self._english if unit[0] < "ɐ" else self._chinese
            entry = lexicon.find(units, index)
            if entry is None:
                opens = opens and not unit[0].isalnum()
                index += 1
                continue
            length = len(entry.units)
            part.hits.append(_Hit(entry, index, index + length, clause, opens, lexicon))
            opens = opens and "openers" in entry.roles
            index += length
        yield part


class _Scorer:
    """Weighs the hits of one part of a text."""

    def __init__(self, numbers: _Numbers, part: _Part, text: str, units: list[str], starts: list[int]) -> None:
        self.numbers = numbers
        self.part = part
        self.text = text
        self.units = units
        self.starts = starts
        self.roles = {role for hit in part.hits for role in hit.entry.roles}
        shouted = any(hit.entry.label and self.written(hit).isupper() and len(self.written(hit)) > 3 for hit in part.hits)
        self.exclaims = "!" in part.mark or "！" in part.mark or shouted
        self.asks = not self.exclaims and ("?" in part.mark or "？" in part.mark or "asks" in self.roles)
        self.hidden = [match.span() for match in _QUOTED.finditer(text) if self._is_mention(match)]

    def score(self) -> list[tuple[Label, str, float]]:
        """The moods that count in this part: label, word and weight of each."""
        if "mention" in self.roles:
            return []
        found: list[tuple[Label, str, float]] = []
        hasty: list[_Hit] = []
        factors = self.numbers.factors
        condition = 1.0
        hits = self.part.hits
        for place, hit in enumerate(hits):
            roles = hit.entry.roles
            if "contrast" in roles:
                found = [
                    (label, word, weight * (factors["before_contrast"] if label in ("positive", "negative") else 1.0))
                    for label, word, weight in found
                ]
            if hit.entry.label is None or self.is_hidden(hit):
                condition = factors["conditional"] if "conditional" in roles else condition
                continue
            if "intensifiers" in roles and place + 1 < len(hits) and hits[place + 1].first == hit.end and hits[place + 1].entry.label:
                continue
            label, weight = hit.entry.label, self.weight(hit)
            if not weight and "hasty" in hit.entry.grades:
                hasty.append(hit)
            if self.is_denied(place):
                label, weight = "negative", weight if label == "positive" else 0.0
            if not weight:
                continue
            weight *= self.strength(place) * condition
            if label == "urgent" and "past" in self.roles and not self.exclaims:
                weight *= factors["past_urgency"]
            found.append((label, self.written(hit), weight * (factors["question"] if self.asks else 1.0)))
        alarmed = any(label == "urgent" for label, _, _ in found)
        found += [
            ("urgent", self.written(hit), self.numbers.weights["hasty"] * condition * (factors["question"] if self.asks else 1.0))
            for hit in hasty
            if alarmed or self.is_ordered(hit)
        ]
        if self.exclaims:
            found += [
                (label, "!", self.numbers.exclamation)
                for label in ("urgent", "positive", "negative")
                if any(known == label for known, _, _ in found)
            ]
        return found

    def written(self, hit: _Hit) -> str:
        """The words of a hit as they stand in the text."""
        last = hit.end - 1
        return self.text[self.starts[hit.first] : self.starts[last] + len(self.units[last])]

    def weight(self, hit: _Hit) -> float:
        """What the entry weighs here before its neighbours change it; 0 where its grade does not count."""
        grades, weights = hit.entry.grades, self.numbers.weights
        if hit.entry.label == "apology" and "first_person" not in self.roles and self.has_before(hit, "third_person"):
            return 0.0
        if "strong" in grades:
            return weights["strong"]
        if "own" in grades and "first_person" in self.roles:
            return weights["own"]
        if "personal" in grades and self.roles & {"first_person", "second_person"}:
            return weights["personal"]
        if "shout" in grades and hit.opens and self.exclaims:
            return weights["shout"]
        if "weak" in grades and not self.is_bare(hit):
            return weights["weak"]
        return weights["impersonal"] if "personal" in grades else 0.0

    def is_bare(self, hit: _Hit) -> bool:
        """A single Chinese character, which may be a part of any word: it counts only after an intensifier or at the end of a clause."""
        if hit.end - hit.first > 1 or hit.lexicon is not self.part.hits[0].lexicon or self.units[hit.first] < "ɐ":
            return False
        following = self.units[hit.end] if hit.end < len(self.units) else "。"
        ends = following in FINAL_MARKS or following in CLAUSE_MARKS or following == "了"
        return not (ends or any(other.end == hit.first and "intensifiers" in other.entry.roles for other in self.part.hits))

    def is_hidden(self, hit: _Hit) -> bool:
        """The word is quoted, in a title, or part of a name."""
        if "neutral" in hit.entry.roles:
            return True
        start = self.starts[hit.first]
        if any(low <= start < high for low, high in self.hidden):
            return True
        if hit.lexicon.is_compound(self.units, hit.end):
            return True
        proper = hit.end - hit.first == 1 and not hit.opens and self.text[start].isupper() and not self.written(hit).isupper()
        return proper and self.units[hit.first - 1][0].isalpha()

    def is_denied(self, place: int) -> bool:
        hit = self.part.hits[place]
        for other in reversed(self.part.hits[:place]):
            if other.clause != hit.clause or hit.first - other.end >= self.numbers.reach:
                return False
            if "negators" in other.entry.roles:
                return True
            if "contrast" in other.entry.roles:
                return False
        return False

    def strength(self, place: int) -> float:
        """The intensifier or softener next to a word."""
        hits, factors = self.part.hits, self.numbers.factors
        hit = hits[place]
        before = hits[place - 1] if place else None
        after = hits[place + 1] if place + 1 < len(hits) else None
        for other, gap in ((before, hit.first - before.end if before else 9), (after, after.first - hit.end if after else 9)):
            if other is None or other.clause != hit.clause or gap > (1 if other is before else 0):
                continue
            if "softeners" in other.entry.roles:
                return factors["softener"]
            if "intensifiers" in other.entry.roles:
                return factors["intensifier"]
        return 1.0

    def is_ordered(self, hit: _Hit) -> bool:
        """A hasty word stands in a command, or with a word of duty before it in its clause."""
        same = [other for other in self.part.hits if other.clause == hit.clause]
        return any(
            ("commands" in other.entry.roles and other.opens) or ("must" in other.entry.roles and other.first < hit.first) for other in same
        )

    def has_before(self, hit: _Hit, role: str) -> bool:
        return any(
            role in other.entry.roles and other.clause == hit.clause and 0 <= hit.first - other.end < 2 * self.numbers.reach
            for other in self.part.hits
        )

    def _is_mention(self, match: re.Match[str]) -> bool:
        """A title, or a quotation that is not a whole utterance: text around it, and no mark at its end."""
        inside = match.group(1)
        if inside is None:
            return True
        outside = self.text[: match.start()] + self.text[match.end() :]
        return inside[-1:].isalnum() and any(character.isalnum() for character in outside)


def _read_numbers(section: Section) -> _Numbers:
    keys = ("threshold", "weights", "exclamation", "factors", "reach", "emoji", "labels")
    whole = Section(section.values, section.where, keys)
    weight_names = ("strong", "weak", "personal", "impersonal", "shout", "hasty", "own")
    factor_names = ("intensifier", "softener", "question", "conditional", "before_contrast", "past_urgency")
    weights, factors = whole.section("weights", weight_names), whole.section("factors", factor_names)
    read_weights = {name: weights.number(name, 0, 10) for name in weight_names}
    emoji: dict[str, tuple[Label, float]] = {}
    for label in MOODS:
        group = whole.section("emoji", MOODS).section(label, ("strong", "weak"))
        for grade in ("strong", "weak"):
            emoji |= {mark: (label, read_weights[grade]) for mark in group.words(grade, None)}
    labels: dict[str, Label] = {label: label for label in LABELS}
    synonyms = whole.section("labels", LABELS)
    for label in LABELS:
        labels |= {word.casefold(): label for word in synonyms.words(label)}
    longest_first = sorted(emoji, key=len, reverse=True)
    return _Numbers(
        threshold=whole.number("threshold", 0, 10),
        exclamation=whole.number("exclamation", 0, 10),
        reach=int(whole.number("reach", 0, 20)),
        weights=read_weights,
        factors={name: factors.number(name, 0, 10) for name in factor_names},
        emoji=emoji,
        emoji_pattern=re.compile("|".join(map(re.escape, longest_first)) or r"(?!)"),
        labels=labels,
    )
