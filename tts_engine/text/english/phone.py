"""Phone numbers, and the short ones for emergencies."""

from __future__ import annotations

import re

from tts_engine.text.english import numbers
from tts_engine.text.english.codes import RUN
from tts_engine.text.english.scan import Scan, looks_plural
from tts_engine.text.english.vocabulary import vocabulary
from tts_engine.text.english.words import say_word

_INTERNATIONAL = re.compile(r"\+\d{1,3}(?:[ .-]?\(\d{1,5}\)|[ .-]?\d{1,12}){1,7}(?!\d)")
_NANP = re.compile(r"(?:1[-. ])?(?:\(\d{3}\)[-. ]?|\d{3}[-. ])\d{3}[-. ]\d{4}(?![\d-])")
_LOCAL = re.compile(r"\d{3}[-.]\d{4}(?![\d-])(?!\.\d)")
_TOLL_FREE = re.compile(r"1[- ]8\d\d[- ](?:[A-Z]{3,10}|\d{3}[- ]?\d{4}|\d{3}[- ]?[A-Z]{4}|[A-Z]{3}[- ][A-Z]{4})(?![\dA-Za-z])")
_GROUPS = re.compile(r"\(?\d{2,5}\)?(?:[ -]\d{2,5}){1,5}(?![\d-])")
_EXTENSION = re.compile(r",? ?(ext\.?|extension|x) ?(\d{1,6})(?!\w)")
_PARTS = re.compile(r"\+|\d+|[A-Z]+")


def _join_phone(scan: Scan, start: int, end: int) -> int:
    """Say the groups of a phone number digit by digit with a pause between them, and an extension."""
    first = True
    groups = list(_PARTS.finditer(scan.text, start, end))
    for index, match in enumerate(groups):
        part, low, high = match[0], match.start(), match.end()
        if part == "+":
            scan.say("plus", low, high)
            continue
        if not first:
            scan.mark(",", low, high)
        first = False
        if part == "800" and index <= 1:
            scan.say("eight hundred", low, high)
        elif part.isdecimal():
            _say_digit_groups(scan, part, low)
        else:
            say_word(scan, part, low, high)
    extension = _EXTENSION.match(scan.text, end)
    if extension is None:
        return end
    scan.mark(",", extension.start(1), extension.end(1))
    scan.say("extension", *extension.span(1))
    scan.say(numbers.digits(extension[2]), *extension.span(2))
    return extension.end()


def _say_digit_groups(scan: Scan, part: str, at: int) -> None:
    """A long run of one phone number in groups of three, the last of four."""
    sizes = (
        [len(part)]
        if len(part) <= 5
        else {
            7: [3, 4],
            8: [4, 4],
            10: [3, 3, 4],
            11: [1, 3, 3, 4] if part[0] == "1" and part[1] in "23456789" and part[1:3] < "30" else [3, 4, 4],
        }.get(len(part), [3] * (len(part) // 3 - 1) + [3 + len(part) % 3])
    )
    for index, size in enumerate(sizes):
        if index:
            scan.mark(",", at, at + size)
        scan.say(numbers.digits(part[:size]), at, at + size)
        part, at = part[size:], at + size


def read_phone(scan: Scan, at: int) -> int | None:
    """+1 (555) 010-0199, (555) 123-4567, 555-0123, 1-800-FLOWERS, emergency numbers, whatever one is told to dial."""
    text = scan.text
    if text[at] == "+":
        match = _INTERNATIONAL.match(text, at)
        if match is None or not 7 <= sum(char.isdigit() for char in match[0]) <= 15:
            return None
        return _join_phone(scan, at, match.end())
    match = _TOLL_FREE.match(text, at) or _NANP.match(text, at)
    if match is not None:
        return _join_phone(scan, at, match.end())
    if text[at] == "(":
        return None
    before = scan.before(at)
    dialed = not vocabulary().phone.isdisjoint(before[-4:])
    return _read_local(scan, at, dialed) or _read_emergency(scan, at, before) or _read_dialed(scan, at, before, dialed)


def _read_local(scan: Scan, at: int, dialed: bool) -> int | None:
    """555-0123; "500-1000 people" is a range."""
    match = _LOCAL.match(scan.text, at)
    if match is None:
        return None
    first, dash, last = match[0][:3], match[0][3], match[0][4:]
    counted = looks_plural(scan.word_after(match.end())) or (first[-1] == "0" and last.endswith("00"))
    if dialed or last[0] == "0" or first == "555" or (dash == "-" and not counted):
        return _join_phone(scan, at, match.end())
    return None


def _read_emergency(scan: Scan, at: int, before: list[str]) -> int | None:
    match = RUN.match(scan.text, at)
    if match is None or match[0] not in vocabulary().emergency:
        return None
    dialed = not vocabulary().dialing.isdisjoint(before[-4:])
    known = match[0] == "911" and not looks_plural(scan.word_after(match.end()))
    if (before and before[-1] in vocabulary().numbered_by_pairs) or not (dialed or known):
        return None
    if scan.text[match.end() : match.end() + 1] == "-":
        return None
    scan.say(numbers.digits(match[0]), at, match.end())
    return match.end()


def _read_dialed(scan: Scan, at: int, before: list[str], dialed: bool) -> int | None:
    """Figures after "call", "phone" and their like: groups of seven digits or more, or one run that is no count."""
    if not dialed:
        return None
    match = _GROUPS.match(scan.text, at)
    if match is not None and sum(char.isdigit() for char in match[0]) >= 7:
        return _join_phone(scan, at, match.end())
    match = RUN.match(scan.text, at)
    if match is None or looks_plural(scan.word_after(match.end())):
        return None
    told = before[-1] in ("to", "at", "is", ":") or before[-1] in vocabulary().dialing
    if len(match[0]) >= 7 or match[0][0] == "0" or (len(match[0]) >= 5 and told):
        return _join_phone(scan, at, match.end())
    return None
