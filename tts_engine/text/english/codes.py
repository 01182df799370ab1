"""Figures that are names, not counts: PINs, rooms, flights, cards, versions, addresses of machines, MP3."""

from __future__ import annotations

import re

from tts_engine.text.english import numbers
from tts_engine.text.english.scan import Scan
from tts_engine.text.english.vocabulary import vocabulary
from tts_engine.text.english.words import say_word

RUN = re.compile(r"\d{3,20}(?![\d.,:/%]\d|[\dA-Za-z%°])")

_SET_PHRASES = {
    "50-50": "fifty fifty",
    "24/7/365": "twenty four seven three sixty five",
    "24/7": "twenty four seven",
    "9/11": "nine eleven",
    "9-1-1": "nine one one",
    "401(k)": "four oh one K",
    "401k": "four oh one K",
    "403(b)": "four oh three B",
    "403b": "four oh three B",
    "1-on-1": "one on one",
    "802.11": "eight oh two dot eleven",
}
_SET_PHRASE = re.compile(
    rf"({'|'.join(map(re.escape, _SET_PHRASES))})((?<=802\.11)[a-z]{{1,2}})?(?![\w/]|[.,:-]\d)", re.IGNORECASE
)

_SSN = re.compile(r"\d{3}-\d{2}-\d{4}(?![\d-])")
_CARD = re.compile(r"\d{4}([ -])\d{4}\1\d{4}\1\d{4}(?!\d)|\d{4}([ -])\d{6}\2\d{5}(?!\d)")
_ZIP_FOUR = re.compile(r"\d{5}-\d{4}(?![\d-])")
_CODE = re.compile(r"\d{1,20}(?:[- ]\d{2,8}){0,6}(?![\d%°]|[.,:/]\d|[A-Za-z])")
_DIGIT_CHAIN = re.compile(r"\d{1,6}(?:-\d{1,6}){2,20}(?![\dA-Za-z])")
_SPACED_DIGITS = re.compile(r"\d(?: \d){3,30}(?! ?\d)")

_IP = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2})?(?::\d{1,5})?(?![\d]|\.\d)")
_HEX_COLONS = re.compile(
    r"(?:[0-9A-Fa-f]{2}[:-]){5}[0-9A-Fa-f]{2}(?![\w:])|(?=[0-9A-Fa-f:]{0,40}(?:::|[A-Fa-f]))(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{1,4}(?![\w:])"
)
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?!\w)")
_VERSION = re.compile(r"\d{1,9}(?:\.\d{1,9}){2,12}(?:\.x)?(?!\d)")
_SHORT_VERSION = re.compile(r"\d{1,4}(?:\.\d{1,4}){1,3}(?:\.x)?(?![\d%])")
_V = re.compile(r"[vV]\.? ?(?=\d)")
_V_NUMBER = re.compile(r"\d{1,9}(?:\.\d{1,9}){0,12}(?:\.x)?(?!\d)")
_PRE_RELEASE = re.compile(r"[-.+]?(rc|alpha|beta|dev|post|a|b)[.-]?(\d{1,6})?(?![A-Za-z0-9])")

_MIXED = re.compile(r"(?=[A-Za-z]*\d|\d+[A-Za-z])[A-Za-z\d]+")
_SEGMENTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[A-Z]|\d+")
_NAME_BEFORE = re.compile(r"[A-Za-z][A-Za-z0-9]*$")
_HYPHEN_FIGURE = re.compile(r"-(?=\d)")
_FORMULA = re.compile(
    r"(?:(?:He|Li|Be|Ne|Na|Mg|Al|Si|Cl|Ar|Ca|Ti|Cr|Mn|Fe|Ni|Cu|Zn|Br|Ag|Sn|Ba|Pt|Au|Hg|Pb|H|B|C|N|O|F|P|S|K|I|U)\d{0,3}){1,12}(?![A-Za-z0-9])"
)
_ROOM = re.compile(r"\d{3,6}(?:-\d{3,4})?(?!\d|[-.,:/]\d|[A-Za-z%])")
_ZIP = re.compile(r"\d{5}(?![\d-]|[.,:/]\d)")
_FIGURES = re.compile(r"\d+")
_IP_PARTS = re.compile(r"\d+|\.|:|/")
_VERSION_PARTS = re.compile(r"\d+|\.|x")
_CHARACTER = re.compile(r".")


def read_set_phrase(scan: Scan, at: int) -> int | None:
    """Figures that custom reads in a way of their own: 24/7, 9/11, 401k."""
    match = _SET_PHRASE.match(scan.text, at)
    if match is None:
        return None
    scan.say(_SET_PHRASES[match[1].lower()], at, match.end(1))
    if match[2]:
        scan.say(list(match[2].upper()), *match.span(2))
    return match.end()


def read_identifier(scan: Scan, at: int) -> int | None:
    """Digits read one by one because of their form (card, SSN) or the word before (PIN, code, order, flight)."""
    for pattern in (_CARD, _SSN, _ZIP_FOUR):
        match = pattern.match(scan.text, at)
        if match is not None:
            return _say_digits(scan, at, match.end())
    before = scan.before(at)
    if before:
        keyword = _keyword(before)
        end = None
        if before[-1].upper() in vocabulary().states and scan.text[at - 3 : at - 1].isupper():
            match = _ZIP.match(scan.text, at)
            end = match.end() if match else None
        elif keyword in vocabulary().identifier:
            end = _identifier_end(scan, at, keyword)
        elif keyword in vocabulary().numbered_by_pairs:
            return _read_by_pairs(scan, at)
        if end is not None:
            return _say_digits(scan, at, end)
    match = _SPACED_DIGITS.match(scan.text, at)
    return None if match is None else _say_digits(scan, at, match.end(), pauses=False)


def _keyword(before: list[str]) -> str:
    """The word that says what a number is: the nearest one before it that is not "number", "is" or a sign."""
    table = vocabulary()
    general = ""
    for word in reversed(before[-6:]):
        if word in ("code", "id"):
            general = word
        elif word in table.identifier or word in table.numbered_by_pairs:
            return word
        elif word not in table.identifier_joins:
            break
    return general


def _identifier_end(scan: Scan, at: int, keyword: str) -> int | None:
    """Where an identifier of three digits or more ends; groups belong to it where they can be no further number."""
    match = _CODE.match(scan.text, at)
    if match is None:
        return None
    groups = re.split("[- ]", match[0])
    if " " in match[0] and (min(map(len, groups)) < 2 or keyword in ("order", "case")):
        match = RUN.match(scan.text, at)
    if match is None or scan.word_after(match.end()) in vocabulary().counted:
        return None
    figures = sum(char.isdigit() for char in match[0])
    return match.end() if figures > 3 or (figures == 3 and keyword != "case") else None


def _read_by_pairs(scan: Scan, at: int) -> int | None:
    """A room, road or model by pairs, and a second figure that hangs on to it ("737-800")."""
    match = _ROOM.match(scan.text, at)
    if match is None or scan.word_after(match.end()) in vocabulary().counted:
        return None
    for part in _FIGURES.finditer(match[0]):
        words = numbers.pairs(part[0]) if len(part[0]) <= 4 else numbers.digits(part[0])
        scan.say(words, at + part.start(), at + part.end())
    return match.end()


def _say_digits(scan: Scan, start: int, end: int, pauses: bool = True) -> int:
    first = True
    for match in _FIGURES.finditer(scan.text, start, end):
        if not first and pauses:
            scan.mark(",", match.start(), match.end())
        scan.say(numbers.digits(match[0]), match.start(), match.end())
        first = False
    return end


def read_machine_address(scan: Scan, at: int) -> int | None:
    """192.168.1.1:8080, IPv6 and MAC addresses, UUIDs: character by character."""
    match = _IP.match(scan.text, at)
    if match is not None and all(int(part) < 256 for part in re.split(r"[/:]", match[0])[0].split(".")):
        for part in _IP_PARTS.finditer(scan.text, at, match.end()):
            name = {".": "dot", ":": "colon", "/": "slash"}.get(part[0])
            scan.say([name] if name else numbers.digits(part[0]), part.start(), part.end())
        return match.end()
    match = _UUID.match(scan.text, at) or _HEX_COLONS.match(scan.text, at)
    if match is None or not any(char.isdigit() for char in match[0]):
        return None
    if match.re is _HEX_COLONS and re.fullmatch(r"[\d:]+", match[0]) and "::" not in match[0] and match[0].count(":") < 3:
        return None
    for index, char in enumerate(match[0], at):
        if char == ":":
            scan.say("colon", index, index + 1)
        elif char != "-":
            scan.say(numbers.digits(char) if char.isdigit() else [char.upper()], index, index + 1)
    return match.end()


def read_version(scan: Scan, at: int) -> int | None:
    """v1.2.3, 3.11.9, and "3.11" after the name of a program."""
    text = scan.text
    if text[at] in "vV":
        lead = _V.match(text, at)
        match = _V_NUMBER.match(text, lead.end()) if lead else None
        if (
            lead is None
            or match is None
            or (text[match.end() : match.end() + 1].isalpha() and not _PRE_RELEASE.match(text, match.end()))
        ):
            return None
        if lead[0] in ("V", "V ") and "." not in match[0]:
            return None
        scan.say("version", at, lead.end())
        return _say_version(scan, match.start(), match.end())
    match = _VERSION.match(text, at)
    if match is not None:
        return _say_version(scan, at, match.end())
    match = _SHORT_VERSION.match(text, at)
    if match is None:
        return None
    before = scan.before(at)
    named = before[-1:] and (
        before[-1] in vocabulary().versioned
        or (before[-1] in ("-", "/") and before[-2:-1] and before[-2] in vocabulary().versioned)
    )
    if not named or text[match.end() : match.end() + 1].isalpha():
        return None
    return _say_version(scan, at, match.end())


def _say_version(scan: Scan, start: int, end: int) -> int:
    for part in _VERSION_PARTS.finditer(scan.text, start, end):
        if part[0] == ".":
            scan.say("point", part.start(), part.end())
        elif part[0] == "x":
            scan.say("X", part.start(), part.end())
        else:
            figures = part[0]
            words = (
                numbers.whole(figures)
                if len(figures) <= 3
                else numbers.pairs(figures)
                if len(figures) == 4
                else numbers.digits(figures)
            )
            scan.say(words, part.start(), part.end())
    pre = _PRE_RELEASE.match(scan.text, end)
    if pre is None or (len(pre[1]) == 1 and not pre[2]):
        return end
    name = {"rc": "R C", "a": "alpha", "b": "beta"}.get(pre[1], pre[1])
    scan.say(name, *pre.span(1))
    if pre[2]:
        scan.say(numbers.whole(pre[2]), *pre.span(2))
    return pre.end()


def read_mixed(scan: Scan, at: int) -> int | None:
    """Letters and figures in one: MP3, 5G, H100, A320, x2, B2B, COVID19, H2O, 4090Ti, confirmation codes, hashes."""
    text = scan.text
    match = _MIXED.match(text, at)
    if match is None:
        return None
    end = match.end()
    whole = match[0]
    segments = list(_SEGMENTS.finditer(text, at, end))
    before = scan.before(at)[-3:]
    coded = _keyword(before) in vocabulary().identifier
    if whole.startswith("x") and whole[1:].isdecimal() and len(whole) <= 4 and whole[1:] not in ("86", "64", "32"):
        scan.say("times", at, at + 1)
        scan.say(numbers.whole(whole[1:]), at + 1, end)
        return end
    if whole.startswith(("0x", "0X")):
        segments = list(_CHARACTER.finditer(text, at, end))
    formula = _FORMULA.match(text, at) if whole[0].isupper() else None
    is_formula = (
        formula is not None and formula.end() == end and any(len(part[0]) == 1 and part[0].isalpha() for part in segments)
    )
    figures = [part[0] for part in segments if part[0].isdecimal()]
    random = not is_formula and (
        len(segments) > 4 or (len(figures) > 1 and any(len(part) > 1 for part in figures)) or (coded and len(whole) > 3)
    )
    for part in segments:
        piece, low, high = part[0], part.start(), part.end()
        if piece.isdecimal():
            words = numbers.digits(piece) if random else numbers.pairs(piece)
            if whole.endswith("s") and high == end - 1 and whole[0].isupper():
                scan.say([*words[:-1], numbers.plural(words[-1])], low, end)
                break
            scan.say(words, low, high)
        elif is_formula or random or (len(piece) <= 2 and (piece.islower() or len(segments) > 2)) or len(piece) == 1:
            scan.say(list(piece.upper()) if not (random and len(piece) > 5) else [piece], low, high)
        else:
            say_word(scan, piece, low, high)
    return end


def read_figure_after_hyphen(scan: Scan, at: int) -> int | None:
    """The figure of "COVID-19", "GPT-4", "F-16", "UTF-8": a name goes on, nothing is subtracted."""
    text = scan.text
    if not at or not _HYPHEN_FIGURE.match(text, at):
        return None
    name = _NAME_BEFORE.search(text, max(0, at - 24), at)
    if name is None:
        return None
    if name[0] in ("UTC", "GMT"):
        scan.say("minus", at, at + 1)
        return at + 1
    if name[0].islower() and len(name[0]) > 1 and name[0].isalpha():
        scan.glue = True
        return at + 1
    version = read_version(scan, at + 1)
    if version is not None:
        return version
    match = _FIGURES.match(text, at + 1)
    assert match is not None
    tail = text[match.end() : match.end() + 1]
    if tail.isalpha():
        return read_mixed(scan, at + 1)
    if (tail == "." and text[match.end() + 1 : match.end() + 2].isdigit()) or tail == "-":
        scan.say(numbers.whole(match[0]), match.start(), match.end())
        return match.end()
    scan.say(numbers.pairs(match[0]), match.start(), match.end())
    return match.end()


def read_long_number(scan: Scan, at: int) -> int | None:
    """A chain such as 4-4-2, read number by number."""
    match = _DIGIT_CHAIN.match(scan.text, at)
    if match is None:
        return None
    for part in _FIGURES.finditer(scan.text, at, match.end()):
        scan.say(numbers.whole(part[0]) if len(part[0]) < 4 else numbers.digits(part[0]), part.start(), part.end())
    return match.end()
