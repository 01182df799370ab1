"""Recognises prosody tags in their written forms and reads their values; ``tags.py`` decides where they count.

Written forms: ``[speed_0.8]`` and its relatives, ChatTTS tokens, a subset of SSML 1.1 (``break``, ``prosody``,
``speak``) and ``<expr …/>``.
"""

from __future__ import annotations

import math
import re
import unicodedata
from typing import Literal, NamedTuple

from tts_engine.types import TagName
from voice_agent.text.links import link_target_end
from voice_agent.text.regions import Verdict

Dialect = Literal["sayline", "chattts"]
Form = Literal["tag", "open", "close"]

CHATTTS_BASE, CHATTTS_STEP = 0.6, 0.08
LIMITS: dict[TagName, tuple[float, float]] = {
    "speed": (0.5, 2.0),
    "break": (0.0, 5000.0),
    "pitch": (-12.0, 12.0),
    "volume": (0.0, 2.0),
}
_NAMES: dict[str, TagName] = {
    "speed": "speed",
    "break": "break",
    "pause": "break",
    "pitch": "pitch",
    "volume": "volume",
}
_WORDS: dict[str, float | None] = {"uv_break": 150.0, "lbreak": 500.0, "laugh": None, "break": None, "pause": None}
_PROSODY: dict[str, TagName] = {"rate": "speed", "pitch": "pitch", "volume": "volume"}
_ELEMENTS = ("break", "prosody", "expr", "speak")


class Written(NamedTuple):
    """What stands at a place: ``length`` characters that give ``settings`` (name, value in units), or a reason why not.

    ``form`` tells the end tag of ``prosody`` ("close") and its start tag ("open") from a tag without an end.
    """

    length: int
    settings: tuple[tuple[TagName, float], ...] = ()
    problem: str = ""
    form: Form = "tag"


# Brackets.

_BRACKET_CHARS = 48
_CLOSING = {"[": "]", "［": "］", "【": "】"}
_BODY = re.compile(rf"[^\[\]［］【】\n]{{0,{_BRACKET_CHARS}}}")
_KNOWN = re.compile(r"(speed|break|pause|pitch|volume)\s{0,4}[_:=＿：]\s{0,4}(.*)", re.IGNORECASE | re.DOTALL)
_UNKNOWN = re.compile(r"[A-Za-z][A-Za-z0-9_]*_[+-]?\d+(?:\.\d+)?[A-Za-z%]{0,3}")
_GROWING_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]*[ \t]?")
_GROWING_NUMBER = re.compile(r"[A-Za-z][A-Za-z0-9_]*_[+-]?(?:\d+(?:\.\d*)?[A-Za-z%]{0,3})?[ \t]?")
_CUT_NUMBER = re.compile(r"[A-Za-z][A-Za-z0-9_]*_[+-]?\d+(?:\.\d*)?[A-Za-z%]{0,3}")
_ADDRESS = re.compile(r"[ \t]*<?(?:[a-z][a-z0-9+.-]*:|/[\w%]|#\w|\.{1,2}/|[\w%/-]+\.[a-z0-9]{2,5}\b)", re.IGNORECASE)
_MALFORMED = re.compile(r"[\[［【]\s{0,4}(?:speed|break|pause|pitch|volume)\s{0,4}[_:=＿：][^\s\[\]［］【】]*", re.IGNORECASE)


def read_bracket(text: str, start: int, dialect: Dialect, final: bool) -> Written | Verdict:
    """The tag that the bracket at ``start`` begins. ``[label](target)`` is a link, whatever its label looks like.

    A target is closed and looks like an address: what an LLM says in parentheses behind a tag is none.
    """
    found = _BODY.match(text, start + 1)
    assert found is not None
    body, end = found.group().strip(), found.end()
    if len(found.group()) < _BRACKET_CHARS:
        if end == len(text):
            if final:
                return _cut_bracket(text, start, body)
            if _may_grow(body):
                return Verdict.MORE
        elif text[end] == _CLOSING[text[start]]:
            written = _read_body(body, end + 1 - start, dialect)
            if isinstance(written, Written) and text[start] == "[":
                return _unless_link(text, written, start, final)
            return written
    malformed = _MALFORMED.match(text, start, end)
    if malformed is not None:
        return Written(malformed.end() - start, problem="the bracket is never closed")
    return Verdict.NO


def _may_grow(body: str) -> bool:
    folded = unicodedata.normalize("NFKC", body)
    return (
        not folded
        or _KNOWN.fullmatch(folded) is not None
        or _GROWING_WORD.fullmatch(folded) is not None
        or _GROWING_NUMBER.fullmatch(folded) is not None
    )


def _cut_bracket(text: str, start: int, body: str) -> Written | Verdict:
    """What a stream that ends here left: a rest that began as a tag is dropped, anything else is text."""
    folded = unicodedata.normalize("NFKC", body).lower()
    begun = bool(folded) and any(word.startswith(folded) for word in (*_NAMES, *_WORDS))
    if begun or _KNOWN.fullmatch(folded) or _CUT_NUMBER.fullmatch(folded):
        return Written(len(text) - start, problem="the stream ended inside it")
    return Verdict.NO


def _read_body(body: str, length: int, dialect: Dialect) -> Written | Verdict:
    folded = unicodedata.normalize("NFKC", body)
    word = folded.lower()
    if word in _WORDS:
        value = _WORDS[word]
        if value is None:
            return Written(length, problem="it has no value" if word in _NAMES else "it has no meaning here")
        return Written(length, (("break", value),))
    known = _KNOWN.fullmatch(folded)
    if known is not None:
        name = _NAMES[known[1].lower()]
        number = _read_value(name, known[2].strip(), dialect)
        if number is None:
            return Written(length, problem=f"its value is not a number that {known[1].lower()} can have")
        return Written(length, ((name, number),))
    if _UNKNOWN.fullmatch(folded):
        return Written(length, problem="its name is unknown")
    return Verdict.NO


def _unless_link(text: str, written: Written, start: int, final: bool) -> Written | Verdict:
    end = start + written.length
    if end == len(text):
        return written if final else Verdict.MORE
    if text[end] != "(":
        return written
    target = link_target_end(text, end, final)
    if target is Verdict.MORE:
        return Verdict.MORE
    is_link = isinstance(target, int) and text[target - 1] == ")" and _ADDRESS.match(text, end + 1, target)
    return Verdict.NO if is_link else written


# Elements.

_ELEMENT_CHARS = 160
_ELEMENT_NAME = re.compile(r"<(/?)([a-z]+)", re.IGNORECASE)
_ELEMENT_REST = re.compile(rf"[^<>\n]{{0,{_ELEMENT_CHARS}}}")
_ATTRIBUTE = re.compile(r"""\s*([a-z][a-z0-9:_-]*)\s*=\s*(?:["“”]([^"“”<>]*)["“”]|'([^'<>]*)'|([^\s"'<>/]+))""", re.IGNORECASE)


def read_element(text: str, start: int, final: bool) -> Written | Verdict:
    """The tag that the ``<`` at ``start`` begins; elements other than ours are not looked at."""
    named = _ELEMENT_NAME.match(text, start)
    if named is None:
        if text.startswith("</", start) and start + 2 == len(text):
            return Written(2, problem="the stream ended inside it") if final else Verdict.MORE
        return Verdict.MORE if start + 1 == len(text) and not final else Verdict.NO
    name = named[2].lower()
    if named.end() == len(text):
        if not any(element.startswith(name) for element in _ELEMENTS):
            return Verdict.NO
        if not final:
            return Verdict.MORE
        begun = len(name) > 1 or bool(named[1])
        return Written(len(text) - start, problem="the stream ended inside it") if begun else Verdict.NO
    if name not in _ELEMENTS or not (text[named.end()].isspace() or text[named.end()] in "/>"):
        return Verdict.NO
    rest = _ELEMENT_REST.match(text, named.end())
    assert rest is not None
    end = rest.end()
    if end == len(text) and len(rest.group()) < _ELEMENT_CHARS:
        return Written(len(text) - start, problem="the stream ended inside it") if final else Verdict.MORE
    if end == len(text) or text[end] != ">":
        return Written(_attributes(text[:end], named.end())[1] - start, problem="it is never closed")
    return _read_element(name, bool(named[1]), rest.group(), end + 1 - start)


def _attributes(text: str, start: int) -> tuple[dict[str, str], int]:
    found: dict[str, str] = {}
    while (attribute := _ATTRIBUTE.match(text, start)) is not None:
        found[attribute[1].lower()] = next(group for group in attribute.groups()[1:] if group is not None).strip()
        start = attribute.end()
    return found, start


def _read_element(name: str, ends: bool, body: str, length: int) -> Written:
    if ends:
        return Written(length, form="close" if name == "prosody" else "tag")
    attributes, _ = _attributes(body, 0)
    if name == "prosody":
        if body.rstrip().endswith("/"):
            return Written(length, problem="it encloses nothing")
        return _read_prosody(attributes, length)
    if name == "break" or (name == "expr" and attributes.get("type", "").lower() == "break"):
        number = _read_value("break", attributes.get("time" if name == "break" else "label", ""), "sayline")
        if number is None:
            return Written(length, problem="its time cannot be read")
        return Written(length, (("break", number),))
    return Written(length, problem="" if name == "speak" else "its type is not known here")


def _read_prosody(attributes: dict[str, str], length: int) -> Written:
    settings: list[tuple[TagName, float]] = []
    problem = "" if attributes else "it sets nothing"
    for key, value in attributes.items():
        field = _PROSODY.get(key)
        number = None if field is None else _read_ssml(field, value)
        if field is None or number is None:
            problem = f'{key}="{value}" cannot be read'
        else:
            settings.append((field, number))
    return Written(length, tuple(settings), problem, "open")


# Values.

_NUMBER = r"([+-]?(?:\d+(?:\.\d*)?|\.\d+))"
_PLAIN = re.compile(_NUMBER)
_TIME = re.compile(_NUMBER + r"\s*(ms|s|sec|msec)?", re.IGNORECASE)
_FACTOR = re.compile(_NUMBER + r"\s*([x×]?)", re.IGNORECASE)
_PERCENT = re.compile(_NUMBER + r"\s*%")
_SEMITONES = re.compile(_NUMBER + r"\s*(?:st|semitones?)?", re.IGNORECASE)
_DECIBELS = re.compile(_NUMBER + r"\s*dB", re.IGNORECASE)
_DIGITS_CHARS = 12


def _number(pattern: re.Pattern[str], value: str) -> re.Match[str] | None:
    found = pattern.fullmatch(value) if value.isascii() or "×" in value else None
    return found if found is not None and len(found[1]) <= _DIGITS_CHARS else None


def _read_value(name: TagName, value: str, dialect: Dialect) -> float | None:
    """The value in the unit of ``name``, not clamped; None when it cannot be read."""
    if name == "break":
        time = _number(_TIME, value)
        if time is None:
            return None
        return float(time[1]) * (1000.0 if (time[2] or "ms").lower() in ("s", "sec") else 1.0)
    if name == "pitch":
        semitones = _number(_SEMITONES, value)
        return None if semitones is None else float(semitones[1])
    percent = _number(_PERCENT, value)
    if percent is not None:
        return _ratio(percent[1])
    factor = _number(_FACTOR, value)
    if factor is None:
        return None
    if name == "speed" and dialect == "chattts" and len(value) == 1:
        return CHATTTS_BASE + CHATTTS_STEP * int(value)
    return float(factor[1])


def _read_ssml(name: TagName, value: str) -> float | None:
    percent = _number(_PERCENT, value)
    if percent is not None:
        ratio = _ratio(percent[1])
        if name == "pitch":
            return 12.0 * math.log2(ratio) if ratio > 0 else None
        return ratio
    decibels = _number(_DECIBELS, value) if name == "volume" else None
    if decibels is not None:
        return float(10.0 ** (min(float(decibels[1]), 60.0) / 20.0))
    return _read_value(name, value, "sayline")


def _ratio(percent: str) -> float:
    """``90`` is 0.9; with a sign it is a change: ``+20`` is 1.2."""
    return float(percent) / 100.0 + (1.0 if percent[0] in "+-" else 0.0)
