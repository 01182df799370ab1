"""Hears the mood of a sentence: urgent, positive, negative, apology or neutral, from its words, marks and emoji.

A rule-based reader in the manner of VADER (Hutto and Gilbert, 2014): words of a lexicon, changed by what stands around
them. A word does not count where it is denied ("no rush"), only mentioned ("the word sorry"), part of a name ("fire
department") or a title, and it counts less in a question or a condition.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import get_args

from tts_engine.text.language import is_han
from voice_agent.errors import InputError
from voice_agent.prompts import Section, load
from voice_agent.text.lexicon import CLAUSE_MARKS, FINAL_MARKS, GRADES, Entry, Label, Lexicon, read_lexicon, split_units

LABELS: tuple[Label, ...] = get_args(Label)
MOODS: tuple[Label, ...] = tuple(GRADES)
LONGEST_TEXT = 2_000
"""Characters that are read of one sentence: a mood does not hide behind more, and the work stays bounded."""

_QUOTED = re.compile(r"[\"“「『‘]([^\"“”「」『』‘]{1,40}?)[\"”」』]|《[^《》]{1,60}》")
_HASTE = frozenset(("hasty", "soon"))
_YEAR = re.compile(r"\b(?:in|since|until|of) 1\d{3}\b|(?:1\d{3}|一[零〇一二三四五六七八九]{3})年")


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


@dataclass(frozen=True, slots=True)
class _Found:
    """A word that counts: the mood it speaks for and how much."""

    label: Label
    word: str
    weight: float


@dataclass(frozen=True, slots=True)
class _Hit:
    """An entry found in the text: its units, its characters, its clause, and whether it opens the clause."""

    entry: Entry
    first: int
    end: int
    clause: int
    opens: bool
    lexicon: Lexicon


@dataclass(frozen=True, slots=True)
class _Text:
    """A text as units, with the stretches that are only mentioned; ``dated``: it tells of a year of long ago."""

    text: str
    units: list[str]
    starts: list[int]
    mentioned: tuple[tuple[int, int], ...]
    dated: bool


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

    def read(self, text: str, raw: str = "") -> Sentiment:
        """The mood of a sentence, or of a few; the first ``LONGEST_TEXT`` characters are read.

        ``raw`` is the text as it was written, if ``text`` is what was left of it to be spoken: emoji are read from it.
        """
        whole = _read_text(text[:LONGEST_TEXT])
        scores = dict.fromkeys(MOODS, 0.0)
        evidence: dict[Label, list[tuple[str, float]]] = {label: [] for label in MOODS}
        for part in self._parts(whole.units):
            if part.hits:
                for item in _Scorer(self._numbers, part, whole).score():
                    scores[item.label] += item.weight
                    evidence[item.label].append((item.word, round(item.weight, 2)))
        for mark in dict.fromkeys(self._numbers.emoji_pattern.findall(raw[-LONGEST_TEXT:] or whole.text)):
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
            raise InputError(
                f"unknown sentiment {name!r}; use one of {', '.join(LABELS)}, or a synonym listed in sentiment.yaml"
            )
        return found

    def _choose(self, scores: dict[Label, float]) -> Label:
        """An apology and an alarm go before plain good or bad news."""
        heard = [label for label in MOODS if round(scores[label], 6) >= self._numbers.threshold]
        if not heard:
            return "neutral"
        first: list[Label] = [label for label in heard if label in ("apology", "urgent")]
        return max(first or heard, key=lambda label: (scores[label], label == "negative"))

    def _parts(self, units: list[str]) -> Iterable[_Part]:
        """The hits of a text, by its parts."""
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
            lexicon = self._chinese if is_han(unit[0]) else self._english
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

    def __init__(self, numbers: _Numbers, part: _Part, whole: _Text) -> None:
        self.numbers = numbers
        self.hits = part.hits
        self.whole = whole
        self.units = whole.units
        self.roles = {role for hit in part.hits for role in hit.entry.roles}
        self.exclaims = "!" in part.mark or "！" in part.mark or any(self._is_shouted(hit) for hit in part.hits)
        self.asks = not self.exclaims and ("?" in part.mark or "？" in part.mark or "asks" in self.roles)

    def score(self) -> list[_Found]:
        """The moods that count in this part."""
        if "mention" in self.roles:
            return []
        found: list[_Found] = []
        hasty: list[tuple[_Hit, float]] = []
        factors = self.numbers.factors
        factor = factors["question"] if self.asks else 1.0
        for place, hit in enumerate(self.hits):
            roles = hit.entry.roles
            if "contrast" in roles:
                found = [self._before_contrast(item) for item in found]
            if "conditional" in roles:
                factor *= factors["conditional"]
            if hit.entry.label is None or self._is_hidden(hit) or self._belongs_to_next(place):
                continue
            label, weight = hit.entry.label, self._weight(hit)
            if not weight:
                hasty += [(hit, self.numbers.weights[grade] * factor) for grade in hit.entry.grades & _HASTE]
            if self._is_denied(place):
                weight = weight if label == "positive" else 0.0
                label = "negative"
            if weight:
                found.append(_Found(label, self._written(hit), weight * factor * self._strength(place) * self._tense(label)))
        alarmed = any(item.label == "urgent" for item in found)
        found += [_Found("urgent", self._written(hit), weight) for hit, weight in hasty if alarmed or self._is_ordered(hit)]
        if self.exclaims:
            moods = dict.fromkeys(item.label for item in found if item.label != "apology")
            found += [_Found(label, "!", self.numbers.exclamation) for label in moods]
        return found

    def _weight(self, hit: _Hit) -> float:
        """What the entry weighs here before its neighbours change it; 0 where its grade does not count."""
        grades, weights = hit.entry.grades, self.numbers.weights
        first, closes = "first_person" in self.roles, self._closes_clause(hit)
        if hit.entry.label == "apology" and not first and self._follows(hit, "third_person"):
            return 0.0
        if "strong" in grades:
            return weights["strong"]
        if "own" in grades and first:
            return weights["own"]
        if "personal" in grades and (first or "second_person" in self.roles):
            return weights["personal"]
        if "shout" in grades and hit.opens and self.exclaims:
            return weights["shout"]
        if "weak" in grades and (closes or not self._may_be_a_part(hit)):
            return weights["closing"] if closes and hit.entry.label == "negative" else weights["weak"]
        return weights["impersonal"] if "personal" in grades else 0.0

    def _tense(self, label: Label) -> float:
        """Alarm that is told of the past is none, and a date in history is no sad news."""
        past = (label == "urgent" and "past" in self.roles) or (label == "negative" and self.whole.dated)
        return self.numbers.factors["past"] if past and not self.exclaims else 1.0

    def _before_contrast(self, item: _Found) -> _Found:
        if item.label not in ("positive", "negative"):
            return item
        return replace(item, weight=item.weight * self.numbers.factors["before_contrast"])

    def _may_be_a_part(self, hit: _Hit) -> bool:
        """A single Chinese character may be a part of any word: it counts behind an intensifier or at a clause end."""
        if hit.end - hit.first > 1 or not is_han(self.units[hit.first][0]):
            return False
        return not any(other.end == hit.first and "intensifiers" in other.entry.roles for other in self.hits)

    def _closes_clause(self, hit: _Hit) -> bool:
        """The word is what the clause says ("arrived damaged, and …", 损坏了), not a part of what it speaks about."""
        behind = self.units[hit.end : hit.end + 2]
        if behind[:1] == ["了"]:
            behind = behind[1:]
        if not behind or behind[0] in FINAL_MARKS or behind[0] in CLAUSE_MARKS:
            return True
        goes_on = ("openers", "contrast")
        return any(other.first == hit.end and not other.entry.roles.isdisjoint(goes_on) for other in self.hits)

    def _is_hidden(self, hit: _Hit) -> bool:
        """The word is part of a harmless phrase, quoted, in a title, or part of a name."""
        start = self.whole.starts[hit.first]
        if "neutral" in hit.entry.roles or any(low <= start < high for low, high in self.whole.mentioned):
            return True
        if self._names_a_thing(hit):
            return True
        written = self._written(hit)
        proper = hit.end - hit.first == 1 and not hit.opens and written[0].isupper() and not written.isupper()
        return proper and self.units[hit.first - 1][0].isalpha()

    def _names_a_thing(self, hit: _Hit) -> bool:
        """A noun stands behind: "fire drill", 成功率. Strong English words are adjectives there ("sad hotel")."""
        adjective = "strong" in hit.entry.grades and hit.entry.label != "urgent" and not is_han(self.units[hit.first][0])
        return not adjective and hit.lexicon.is_compound(self.units, hit.end)

    def _belongs_to_next(self, place: int) -> bool:
        """An intensifier that is a mood word itself, right before another one: "terribly sorry"."""
        if place + 1 == len(self.hits) or "intensifiers" not in self.hits[place].entry.roles:
            return False
        following = self.hits[place + 1]
        return following.first == self.hits[place].end and following.entry.label is not None

    def _is_denied(self, place: int) -> bool:
        hit = self.hits[place]
        for other in reversed(self.hits[:place]):
            if other.clause != hit.clause or hit.first - other.end >= self.numbers.reach:
                return False
            if "negators" in other.entry.roles:
                return True
        return False

    def _strength(self, place: int) -> float:
        """The intensifier or softener at most one unit before a word, or right behind it."""
        hit, factors = self.hits[place], self.numbers.factors
        near = [other for other in self.hits[max(0, place - 1) : place] if hit.first - other.end <= 1]
        near += [other for other in self.hits[place + 1 : place + 2] if other.first == hit.end]
        for other in near:
            if other.clause == hit.clause and "softeners" in other.entry.roles:
                return factors["softener"]
            if other.clause == hit.clause and "intensifiers" in other.entry.roles:
                return factors["intensifier"]
        return 1.0

    def _is_ordered(self, hit: _Hit) -> bool:
        """A hasty word stands in a command, or behind a word of duty in its clause."""
        clause = [other for other in self.hits if other.clause == hit.clause]
        return any(
            ("commands" in other.entry.roles and other.opens) or ("must" in other.entry.roles and other.first < hit.first)
            for other in clause
        )

    def _follows(self, hit: _Hit, role: str) -> bool:
        """Whether a word of this role stands not far before a hit in its clause."""
        return any(
            role in other.entry.roles and other.clause == hit.clause and 0 <= hit.first - other.end < 2 * self.numbers.reach
            for other in self.hits
        )

    def _is_shouted(self, hit: _Hit) -> bool:
        written = self._written(hit)
        return hit.entry.label is not None and len(written) > 3 and written.isupper()

    def _written(self, hit: _Hit) -> str:
        """The words of a hit as they stand in the text."""
        last = hit.end - 1
        return self.whole.text[self.whole.starts[hit.first] : self.whole.starts[last] + len(self.units[last])]


def _read_text(text: str) -> _Text:
    mentioned = tuple(match.span() for match in _QUOTED.finditer(text) if _is_mention(match, text))
    return _Text(text, *split_units(text), mentioned, _YEAR.search(text) is not None)


def _is_mention(match: re.Match[str], text: str) -> bool:
    """A title, or a quotation that is not a whole utterance: text around it, and no mark at its end."""
    inside = match.group(1)
    if inside is None:
        return True
    outside = text[: match.start()] + text[match.end() :]
    return inside[-1].isalnum() and any(character.isalnum() for character in outside)


def _read_numbers(section: Section) -> _Numbers:
    keys = ("threshold", "weights", "exclamation", "factors", "reach", "emoji", "labels")
    whole = Section(section.values, section.where, keys)
    weight_names = ("strong", "weak", "closing", "personal", "impersonal", "shout", "hasty", "soon", "own")
    factor_names = ("intensifier", "softener", "question", "conditional", "before_contrast", "past")
    weights, factors = whole.section("weights", weight_names), whole.section("factors", factor_names)
    read_weights = {name: weights.number(name, 0, 10) for name in weight_names}
    emoji: dict[str, tuple[Label, float]] = {}
    for label in MOODS:
        group = whole.section("emoji", MOODS).section(label, ("strong", "weak"))
        for grade in ("strong", "weak"):
            emoji |= dict.fromkeys(group.words(grade, None), (label, read_weights[grade]))
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
