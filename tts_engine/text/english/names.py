"""Short forms in letters: titles and other abbreviations, dotted initials, saints and streets, states."""

from __future__ import annotations

import re

from tts_engine.text.english.calendar import DAY_PATTERN, MONTH_PATTERN
from tts_engine.text.english.scan import Scan
from tts_engine.text.english.vocabulary import vocabulary

_DOTTED = re.compile(r"(?:[A-Za-z]\.){2,8}(?:[A-Za-z](?![A-Za-z]))?")
_SPACED_INITIALS = re.compile(r"[A-Z]\.(?=[ \u00a0][A-Z]|[A-Z](?:\.|[a-z]{2})| [a-z])")
_DEGREE = re.compile(r"(Ph\.? ?D|M\.Sc|B\.Sc|Ed\.D|LL\.B|LL\.M|D\.Phil|M\.Phil|B\.Eng|Pharm\.D)(\.?)(?![A-Za-z])")
_ABBREVIATION = re.compile(r"([A-Za-z]{1,7}(?:'[a-z])?)(\.)?(?![A-Za-z'])")
_WITH = re.compile(r"([wW]/[oO]?|[bB]/[cC]|[cC]/[oO]|[nN]/[aA]|[aA]/[cC]|[sS]/[hH][eE]|[iI]/[oO]|[qQ]/[aA])(?![\w/])")
_WITH_NAMES = {
    "w/": "with",
    "w/o": "without",
    "b/c": "because",
    "c/o": "care of",
    "n/a": "not applicable",
    "a/c": "A C",
    "s/he": "she or he",
    "i/o": "I O",
    "q/a": "Q A",
}
_AND = re.compile(r"([A-Za-z]{1,5})( ?& ?)(?=[A-Z])")
_NUMBER_FOLLOWS = re.compile(r" ?[#(]? ?(?=\d|[A-Z]?\d|[IVXivx]+(?!\w))")
_SLASH_WORD = re.compile(r"/(?=[A-Za-z])")
_NAME_NEAR = re.compile(rf"[, /&-]{{1,2}}(?:and |& )?(?:{DAY_PATTERN}|{MONTH_PATTERN})(?![a-z])")
_NAME_JOINED = re.compile(rf"(?:{DAY_PATTERN}|{MONTH_PATTERN})\.?(?:,| and| or| to| &|,? ?[-–])? ?$")
_CAPITALS = re.compile(r"([A-Z]{1,3})('?s)?(?![A-Za-z])")
_ZIP = re.compile(r" \d{5}(?!\d)")
_LETTERS = re.compile(r"[A-Za-z]+")
_DEGREE_PARTS = re.compile(r"[A-Z][a-z]+(?=\.)|[A-Z][a-z]|[A-Za-z]")


def read_abbreviation(scan: Scan, at: int) -> int | None:
    """Dr., St., No. 5, p. 5, approx., Jan., Mon., etc.: in full; the dot stays a full stop where it is one too."""
    text = scan.text
    match = _DEGREE.match(text, at)
    if match is not None:
        return _say_letters(scan, match[1], at, match.end(1), match.end())
    match = _WITH.match(text, at)
    if match is not None:
        scan.say(_WITH_NAMES[match[1].lower()], at, match.end())
        return match.end()
    match = _ABBREVIATION.match(text, at)
    if match is None:
        return None
    written, dotted = match[1], match[2] is not None
    key = written.lower()
    if dotted and text[match.end() : match.end() + 1] in ("@", "_"):
        return None
    name = _expansion(scan, written, key, dotted, at, match)
    if name is None:
        return None
    end = match.end() if dotted else match.end(1)
    if dotted and scan.ends_sentence(end - 1) and (key not in vocabulary().titles or not scan.word_after(end)):
        end -= 1
    if scan.shouting:
        name = name.upper()
    scan.say(name.split(), at, end)
    return end


def _expansion(scan: Scan, written: str, key: str, dotted: bool, at: int, match: re.Match[str]) -> str | None:
    table = vocabulary()
    text = scan.text
    if key in table.calendar and written[0].isupper():
        return _calendar_name(scan, written, key, dotted, match.end())
    if key == "st" and written[0].isupper():
        return _saint_or_street(scan, at, match.end(1), match.end())
    if key == "dr" and written[0].isupper():
        return _doctor_or_drive(scan, at, match.end())
    if (
        key in table.numbered
        and (dotted or key in ("no", "nos", "pp", "fig", "vol", "eq"))
        and (written.islower() or written.istitle())
    ):
        follows = _NUMBER_FOLLOWS.match(text, match.end())
        if (
            follows is not None
            and (dotted or (written[0].isupper() and text[follows.end() : follows.end() + 1].isdigit()))
            and (key not in ("c", "no") or text[follows.end()].isdigit())
        ):
            numbered = table.numbered[key]
            return numbered.capitalize() if written[0].isupper() else numbered
    if not dotted and (key not in table.dotless or (written.islower() and key in table.capital_only)):
        return None
    if key == "ft" and dotted and scan.word_after(match.end())[:1].isupper():
        return "Fort"
    name = table.abbreviations.get(key)
    if name is None or (written.isupper() and not scan.shouting and len(written) > 1):
        return None
    if dotted and not _takes_dot(scan, key, match.end()):
        return None
    if key == "est" and written[0].islower() and not _NUMBER_FOLLOWS.match(text, match.end()):
        return "estimated"
    return name.capitalize() if written[0].isupper() and name[0].islower() else name


def _takes_dot(scan: Scan, key: str, end: int) -> bool:
    """Whether the dot after a word that may also be a whole word belongs to an abbreviation."""
    if key not in vocabulary().also_words:
        return True
    rest = scan.text[end : end + 24].lstrip()
    if key == "al":
        return scan.word_before(end - len(key) - 1) == "et"
    if not rest:
        return key in ("co", "ct", "sq", "pl", "cir", "ter") and scan.word_before(end - len(key) - 1)[:1].isupper()
    if key in ("sen", "rep", "gen", "col", "hon"):
        return rest[0].isupper() and scan.text[end - len(key) - 1].isupper()
    return not (rest[0].isupper() and scan.word_after(end).lower() in vocabulary().starters)


def _calendar_name(scan: Scan, written: str, key: str, dotted: bool, end: int) -> str | None:
    """A day or month in full; "Sun", "Mar" and their like only where a dot, a number or another name is near."""
    table = vocabulary()
    full = table.calendar[key]
    if full.lower() == key or (written.isupper() and not scan.shouting and key not in table.calendar_short):
        return None
    if (dotted or key != "jan") and key in table.calendar_short:
        return full
    start = end - len(written) - dotted
    rest = scan.text[end : end + 3].lstrip()[:1]
    joined = scan.word_before(start) in ("on", "every", "next", "since", "until")
    if (
        joined
        or _NAME_JOINED.search(scan.text, max(0, start - 20), start)
        or rest.isdigit()
        or _NAME_NEAR.match(scan.text, end)
    ):
        return full
    return full if dotted and (key == "mon" or rest == "," or rest.islower()) else None


def _saint_or_street(scan: Scan, at: int, letters_end: int, end: int) -> str | None:
    after = scan.word_after(end)
    before = scan.word_before(at)
    if end == letters_end and scan.text[end : end + 1] not in ("", " ", ",", ";", "\n", "?", "!"):
        return None
    street = (before[:1].isupper() and before.lower() not in vocabulary().before_saint) or (
        scan.out
        and at
        and scan.text[at - 1] == " "
        and scan.out[-1].text.endswith(("st", "nd", "rd", "th", "ond", "ird"))
        and scan.text[scan.out[-1].start].isdigit()
    )
    saint = after.removesuffix("'s") in vocabulary().saints
    if street and saint:
        street = (
            any(char.isdigit() for char in scan.text[max(0, at - 24) : at])
            and scan.text[max(0, at - 24) : at].rstrip()[-1:].isalpha()
        )
    if street:
        return "Street"
    if after[:1].isupper() and (saint or after.lower() not in vocabulary().starters):
        return "Saint"
    return "Street" if end > letters_end or before else None


def _doctor_or_drive(scan: Scan, at: int, end: int) -> str:
    before, after = scan.word_before(at), scan.word_after(end)
    numbered = any(char.isdigit() for char in scan.text[max(0, at - 24) : at])
    if before[:1].isupper() and before.lower() not in vocabulary().starters and (numbered or not after[:1].isupper()):
        return "Drive"
    return "Doctor"


def _say_letters(scan: Scan, written: str, start: int, word_end: int, end: int) -> int:
    """Say dotted letters; ``end`` without the last dot where that is a full stop too."""
    if scan.text[end - 1] == "." and scan.ends_sentence(end - 1):
        end -= 1
    words: list[str] = []
    for part in _DEGREE_PARTS.findall(written):
        words += [part] if len(part) > 1 and part not in ("Ph", "Sc", "Ed") else list(part.upper())
    scan.say(words, start, max(end, word_end))
    return max(end, word_end)


def read_initials(scan: Scan, at: int) -> int | None:
    """I.B.M., U.S., e.g., a.m., J. R. R. Tolkien."""
    text = scan.text
    match = _DOTTED.match(text, at)
    if match is not None:
        end = match.end()
        if text[end : end + 1].isalnum():
            return None
        letters = match[0].replace(".", "")
        known = {"eg": "for example", "ie": "that is", "aka": "A K A", "nb": "note well", "am": "A M", "pm": "P M"}.get(
            letters.lower()
        )
        if known and letters.lower() in ("eg", "ie", "nb"):
            if text[end - 1] == "." and not text[end : end + 8].strip():
                end -= 1
            scan.say(known, at, end)
            return end
        if text.startswith("'s", end):
            scan.say([*letters[:-1].upper(), letters[-1].upper() + "'s"], at, end + 2)
            return end + 2
        if text[end - 1] == "." and scan.ends_sentence(end - 1):
            end -= 1
        scan.say(list(letters.upper()), at, end)
        return end
    match = _SPACED_INITIALS.match(text, at)
    if match is not None and not scan.ends_sentence(at + 1):
        before = scan.word_before(at)
        if text[at] == "I" and not before[:1].isupper():
            return None
        scan.say([text[at]], at, at + 2)
        return at + 2
    return None


def read_and(scan: Scan, at: int) -> int | None:
    """R&D, AT&T, Q & A."""
    match = _AND.match(scan.text, at)
    if match is None or not match[1].isupper() or (len(match[1]) > 3):
        return None
    scan.say(list(match[1]), at, match.end(1))
    scan.say("and", match.start(2), match.end(2))
    letters = _CAPITALS.match(scan.text, match.end())
    if letters is None:
        return match.end()
    words = list(letters[1])
    words[-1] += "'s" if letters[2] else ""
    scan.say(words, letters.start(), letters.end())
    return letters.end()


def read_state(scan: Scan, at: int) -> int | None:
    """ "Austin, TX" in full; the doubtful ones only before a ZIP code."""
    text = scan.text
    code = text[at : at + 2]
    name = vocabulary().states.get(code)
    if name is None or text[at + 2 : at + 3].isalnum() or not re.search(r"[A-Z][a-z]+\.?, $", text[max(0, at - 24) : at]):
        return None
    zipped = _ZIP.match(text, at + 2)
    before = re.findall(r"[A-Za-z]+", text[max(0, at - 24) : at])[-1].lower()
    if not zipped and (code in vocabulary().unsafe_states or before in vocabulary().interjections):
        return None
    scan.say(name, at, at + 2)
    return at + 2


def read_slash_word(scan: Scan, at: int) -> int | None:
    """The slash between two words: "and/or", "he/she" (or), "TCP/IP" (silent), "client/server" (slash)."""
    text = scan.text
    if text[at] != "/" or not (at and text[at - 1].isalpha()) or not _SLASH_WORD.match(text, at):
        return None
    left = re.search(r"[A-Za-z]+$", text[max(0, at - 24) : at])
    right = _LETTERS.match(text, at + 1)
    assert right is not None
    if left is None:
        return None
    first, second = left[0], right[0]
    if (first.lower(), second.lower()) == ("and", "or") or (first.isupper() and second.isupper()):
        return at + 1
    if (
        second in ("s", "sec", "second", "min", "minute", "h", "hr", "hour", "day", "week", "month", "year", "yr")
        and not text[right.end() : right.end() + 1].isalnum()
    ):
        scan.say("per", at, at + 1)
        name = {"s": "second", "sec": "second", "min": "minute", "h": "hour", "hr": "hour", "yr": "year"}.get(second, second)
        scan.say(name, at + 1, right.end())
        return right.end()
    scan.say(
        "or" if first.lower() in vocabulary().either_or and second.lower() in vocabulary().either_or else "slash",
        at,
        at + 1,
    )
    return at + 1
