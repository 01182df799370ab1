"""Dates, with the time of day that hangs on one; years, decades and eras."""

from __future__ import annotations

import re

from tts_engine.text.english import numbers
from tts_engine.text.english.clock import say_clock
from tts_engine.text.english.scan import Scan, looks_plural
from tts_engine.text.english.vocabulary import vocabulary

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
"""Short names that are nothing else, so that they are read in full without a dot as well."""

MONTH_PATTERN = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|"
    r"Nov(?:ember)?|Dec(?:ember)?)"
)
DAY_PATTERN = (
    r"(?:Mon(?:day)?|Tue(?:s(?:day)?)?|Weds?(?:nesday)?|Thu(?:r(?:s(?:day)?)?)?|Fri(?:day)?|Sat(?:urday)?|Sun(?:day)?)"
)
_NTH = r"(?:st|nd|rd|th)"
_ISO = re.compile(
    r"(\d{4})([-/.])(\d{1,2})\2(\d{1,2})(?:[T](\d{2}):(\d{2})(?::(\d{2})(?:\.\d{1,9})?)?(Z|[+-]\d{2}:?\d{2})?)?(?![\d/-])(?!\.\d)"
)
_NUMERIC = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4}|\d{2})(?![\d/-])(?!\.\d)")
_SHORT = re.compile(r"(\d{1,2})/(\d{1,2})(?![\d/%]|[.,]\d)")
_MONTH_DAY = re.compile(
    rf"({MONTH_PATTERN})(\.)? ?(\d{{1,2}})({_NTH})?(?:( ?[-–] ?)(\d{{1,2}})({_NTH})?)?(?![\d:%,]\d|[\d%:]|\.\d)"
    rf"(?![-–]?[A-Za-z])(?:(,)? '?(\d{{4}})(?!\d|[:,.]\d))?",
    re.IGNORECASE,
)
_MONTH_FOLLOWS = re.compile(rf" ?[-–] ?(?={MONTH_PATTERN}\.? \d)")
_MONTH_YEAR = re.compile(rf"({MONTH_PATTERN})(\.)?(,)? (\d{{4}})(?!\d|[:,.]\d|[A-Za-z%])")
_MONTH_SHORT_YEAR = re.compile(rf"({MONTH_PATTERN})(\.)? '(\d{{2}})(?!\w)")
_DAY_MONTH = re.compile(
    rf"(\d{{1,2}})({_NTH})?(?:( ?[-–] ?)(\d{{1,2}})({_NTH})?)?( of)?[ -]"
    rf"({MONTH_PATTERN})(?![A-Za-z'])(\.)?(?:(,)?[ -](\d{{4}})(?!\d|[:,.]\d))?"
)
_NAME_RANGE = re.compile(
    rf"({DAY_PATTERN}|{MONTH_PATTERN})(\.)?( ?[-–/] ?| to )({DAY_PATTERN}|{MONTH_PATTERN})(\.)?(?![A-Za-z'])"
)
_DECADE = re.compile(r"'?(\d{3}0|\d0)'?s(?![\w-]?\w)|'?(\d{3}0|\d0)'?s(?=-)")
_YEARS = re.compile(r"(\d{4})(?: ?(–|-) ?| - )(\d{4}|\d{2})(?![\d.,:]?\d|[-–/]\d|[A-Za-z%])")
_SEASON = re.compile(r"((?:19|20)\d{2})/(\d{2})(?![\d/])")
_YEAR = re.compile(r"\d{4}(?!\d|[.,:/]\d|[%°$€£+]|[A-Za-z])")
_SHORT_YEAR = re.compile(r"'(\d{2})(?![\w'])")
_ERA = re.compile(r"(\d{1,4}) ?(?=(?:B\.?C\.?E?\.?|A\.?D\.?|C\.?E\.)(?![A-Za-z]))")


def _day(text: str) -> list[str]:
    return numbers.ordinal(int(text))


def _valid(month: int, day: int) -> bool:
    return 1 <= month <= 12 and 1 <= day <= 31


def _full_year(text: str) -> int:
    value = int(text)
    return value if len(text) == 4 else value + (2000 if value < 70 else 1900)


def _say_date(scan: Scan, year: int | None, month: int, day: int, start: int, end: int) -> None:
    scan.say([MONTHS[month - 1], *numbers.ordinal(day)], start, end)
    if year is not None:
        scan.mark(",", start, end)
        scan.say(numbers.year(year), start, end)


def read_iso(scan: Scan, at: int) -> int | None:
    """2023-05-10, 2023/5/10, 2023-05-10T14:30:00Z (ISO 8601)."""
    match = _ISO.match(scan.text, at)
    if match is None or not _valid(int(match[3]), int(match[4])):
        return None
    date_end = match.end(4)
    _say_date(scan, int(match[1]), int(match[3]), int(match[4]), at, date_end)
    if match[5]:
        scan.mark(",", date_end, date_end + 1)
        end = match.end(7) if match[7] else match.end(6)
        say_clock(scan, int(match[5]), match[6], match[7], None, date_end + 1, end)
        if match[8]:
            zone = match.start(8)
            scan.say("U T C", zone, match.end())
            if match[8] != "Z":
                figures = match[8][1:].replace(":", "")
                scan.say("plus" if match[8][0] == "+" else "minus", zone, match.end())
                scan.say(numbers.cardinal(int(figures[:2])), zone, match.end())
                if figures[2:] != "00":
                    scan.say(numbers.cardinal(int(figures[2:])), zone, match.end())
    return match.end()


def read_numeric_date(scan: Scan, at: int) -> int | None:
    """12/25/2024 and 25/12/2024 by what is possible, month first in doubt; 25.12.2024 day first."""
    match = _NUMERIC.match(scan.text, at)
    if match is None or (match[2] != "/" and len(match[4]) == 2):
        return None
    first, second = int(match[1]), int(match[3])
    month, day = (second, first) if match[2] == "." else (first, second)
    if not _valid(month, day):
        month, day = day, month
    if not _valid(month, day):
        return None
    _say_date(scan, _full_year(match[4]), month, day, at, match.end())
    return match.end()


def read_short_date(scan: Scan, at: int) -> int | None:
    """12/25 where it can be no fraction, or where a word such as "on" says that it is a date."""
    match = _SHORT.match(scan.text, at)
    if match is None or not _valid(int(match[1]), int(match[2])):
        return None
    before = scan.before(at)
    denominator = int(match[2])
    dated = bool(before) and (
        before[-1] in vocabulary().before_date or before[-1] in vocabulary().calendar or before[-2:-1] == ["due"]
    )
    follows = scan.word_after(match.end())
    if not (dated and follows != "of") and (denominator in (16, 20, 30, 24) or denominator < 13):
        return None
    if scan.text[match.end() : match.end() + 1] == "-" or int(match[1]) == denominator:
        return None
    _say_date(scan, None, int(match[1]), int(match[2]), at, match.end())
    return match.end()


def _month_word(scan: Scan, name: str, dot: str | None, start: int, end: int) -> None:
    full = vocabulary().calendar[name.lower()]
    scan.say([name if name.lower() == full.lower() else full], start, end + len(dot or ""))


def read_month_date(scan: Scan, at: int) -> int | None:
    """March 5, 2024; Jan. 5; May 5-7; Nov 29th; March 2024; Jan '24."""
    match = _MONTH_DAY.match(scan.text, at)
    if match is not None and match[1][0].isupper() and 1 <= int(match[3]) <= 31:
        if match[2] is None and not match[4] and looks_plural(scan.word_after(match.end())) and match[9] is None:
            return None
        _month_word(scan, match[1], match[2], at, match.end(1))
        scan.say(_day(match[3]), match.start(3), match.end(4) if match[4] else match.end(3))
        if match[6]:
            scan.say("to", match.start(5), match.end(5))
            scan.say(_day(match[6]), match.start(6), match.end(7) if match[7] else match.end(6))
        if match[9]:
            if match[8]:
                scan.mark(",", match.start(8), match.end(8))
            scan.say(numbers.year(int(match[9])), match.start(9), match.end(9))
        dash = _MONTH_FOLLOWS.match(scan.text, match.end())
        if dash is None:
            return match.end()
        scan.say("to", *dash.span())
        return dash.end()
    match = _MONTH_YEAR.match(scan.text, at)
    if match is not None and not looks_plural(scan.word_after(match.end())):
        _month_word(scan, match[1], match[2], at, match.end(1))
        if match[3]:
            scan.mark(",", match.start(3), match.end(3))
        years = _YEARS.match(scan.text, match.start(4))
        if years:
            return match.start(4) if read_year(scan, match.start(4)) is None else scan.out[-1].end
        scan.say(numbers.year(int(match[4])), match.start(4), match.end(4))
        return match.end()
    match = _MONTH_SHORT_YEAR.match(scan.text, at)
    if match is not None:
        _month_word(scan, match[1], match[2], at, match.end(1))
        scan.say(numbers.whole(match[3]), match.start(3) - 1, match.end(3))
        return match.end()
    return None


def read_day_month(scan: Scan, at: int) -> int | None:
    """5 March 2024, 5th of March, 5-7 March."""
    match = _DAY_MONTH.match(scan.text, at)
    if match is None or not 1 <= int(match[1]) <= 31:
        return None
    if (
        not match[2]
        and match[7] in ("Mar", "May", "March", "Jan")
        and not match[10]
        and scan.text[match.end() : match.end() + 2].strip().isalpha()
    ):
        before = scan.before(at)
        if not (
            before
            and (before[-1] in vocabulary().before_date or before[-1] in vocabulary().calendar or before[-1] in ("the", ","))
        ):
            return None
    if scan.word_before(at).lower() != "the":
        scan.say("the", at, match.end(1))
    scan.say(_day(match[1]), at, match.end(2) if match[2] else match.end(1))
    if match[4]:
        scan.say("to", match.start(3), match.end(3))
        scan.say("the", match.start(4), match.end(4))
        scan.say(_day(match[4]), match.start(4), match.end(5) if match[5] else match.end(4))
    scan.say("of", *(match.span(6) if match[6] else match.span(7)))
    dot = match[8] if match[8] and (match[10] or not scan.ends_sentence(match.start(8))) else None
    _month_word(scan, match[7], dot, match.start(7), match.end(7))
    if match[10]:
        if match[9]:
            scan.mark(",", match.start(9), match.end(9))
        scan.say(numbers.year(int(match[10])), match.start(10), match.end(10))
        return match.end()
    return match.end(8) if dot else match.end(7)


def read_name_range(scan: Scan, at: int) -> int | None:
    """Mon-Fri, Jan–Mar, Sat/Sun."""
    match = _NAME_RANGE.match(scan.text, at)
    if match is None or match[3] == " to ":
        return None
    first, second = vocabulary().calendar[match[1].lower()], vocabulary().calendar[match[4].lower()]
    if (first in DAYS) != (second in DAYS):
        return None
    _month_word(scan, match[1], match[2], at, match.end(1))
    scan.say("and" if "/" in match[3] else "to", match.start(3), match.end(3))
    dot = match[5] if match[5] and not scan.ends_sentence(match.start(5)) else None
    _month_word(scan, match[4], dot, match.start(4), match.end(4))
    return match.end() if dot or not match[5] else match.start(5)


def read_decade(scan: Scan, at: int) -> int | None:
    """1990s, '90s, 80s; "30s" alone is thirty seconds."""
    match = _DECADE.match(scan.text, at)
    if match is None:
        return None
    figures = match[1] or match[2]
    if len(figures) == 2:
        if figures < "20" and not match[0].startswith("'"):
            return None
        before = scan.before(at)
        aged = bool(before) and before[-1] in (
            "the",
            "his",
            "her",
            "their",
            "my",
            "your",
            "our",
            "early",
            "late",
            "mid",
            "-",
            "to",
            "'",
        )
        if not aged and not match[0].startswith("'") and "'" not in match[0]:
            return None
        words = [numbers.plural(numbers.cardinal(int(figures))[0])]
    else:
        words = numbers.decade(int(figures))
        if figures == "1000" and scan.word_after(match.end()) == "of":
            words = ["thousands"]
    scan.say(words, at, match.end())
    return match.end()


def read_era(scan: Scan, at: int) -> int | None:
    """44 BC, 500 A.D.; the letters are read on their own."""
    match = _ERA.match(scan.text, at)
    if match is None:
        return None
    value = int(match[1])
    scan.say(numbers.year(value) if value >= 1000 else numbers.pairs(match[1]), at, match.end(1))
    return match.end(1)


def read_season(scan: Scan, at: int) -> int | None:
    """2020/21."""
    match = _SEASON.match(scan.text, at)
    if match is None or (int(match[1]) + 1) % 100 != int(match[2]):
        return None
    scan.say(numbers.year(int(match[1])), at, match.end(1))
    scan.say(numbers.whole(match[2]), *match.span(2))
    return match.end()


def read_year(scan: Scan, at: int) -> int | None:
    """A year or a range of years, where four figures are not a count."""
    text = scan.text
    match = _YEARS.match(text, at)
    if match is not None:
        first, second = int(match[1]), int(match[3])
        plural = looks_plural(scan.word_after(match.end()))
        short = len(match[3]) == 2
        later = first % 100 < second if short else first < second <= 2100
        if 1000 <= first < 2100 and later and not plural and not (first % 100 == 0 and short and second < 10):
            scan.say(numbers.year(first), at, match.end(1))
            scan.say("to", match.end(1), match.start(3))
            scan.say(numbers.whole(match[3]) if short else numbers.year(second), *match.span(3))
            return match.end()
        if short and match[3][0] == "0" and 1 <= second <= 12 and 1900 <= first < 2100:
            scan.say([MONTHS[second - 1], *numbers.year(first)], at, match.end())
            return match.end()
        return None
    match = _YEAR.match(text, at)
    if match is None or not is_year(scan, at, match.end()):
        return None
    scan.say(numbers.year(int(match[0])), at, match.end())
    return match.end()


def is_year(scan: Scan, start: int, end: int) -> bool:
    """Whether four figures are a year: by size, by what comes before, and unless something counted follows."""
    text = scan.text
    value = int(text[start:end])
    if not 1000 <= value < 2100:
        return False
    after = scan.word_after(end)
    before = scan.before(start)
    last = before[-1] if before else ""
    dated = value >= 1900 and value % 100 and last in ("in", "since", "during", "by", "until")
    if (looks_plural(after) and not dated) or after in (
        "hundred",
        "thousand",
        "million",
        "billion",
        "percent",
        "more",
        "degrees",
        "x",
    ):
        return False
    if text[end : end + 2].strip()[:1] in ("=", "+", "×", "*", "÷", "<", ">"):
        return False
    if start > 1 and text[start - 1] == "-" and text[start - 2].isalpha():
        return True
    if value >= 1900:
        return last not in vocabulary().before_count
    return last in vocabulary().before_year


def read_short_year(scan: Scan, at: int) -> int | None:
    """'24 as a year."""
    match = _SHORT_YEAR.match(scan.text, at)
    if match is None:
        return None
    scan.say(["oh", numbers.ONES[int(match[1])]] if match[1][0] == "0" else numbers.whole(match[1]), at, match.end())
    return match.end()
