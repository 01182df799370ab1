"""Who reads what: for each kind of first character the readers that are tried in turn, most specific first.

Imported at the first token that is no plain word: the readers' patterns take a while to compile.
"""

from __future__ import annotations

import re
import unicodedata

from tts_engine.text.english import (
    addresses,
    calendar,
    clock,
    codes,
    measures,
    money,
    names,
    numbers,
    phone,
    quantity,
    roman,
    signs,
)
from tts_engine.text.english.scan import Reader, Scan
from tts_engine.text.english.vocabulary import vocabulary
from tts_engine.text.english.words import say_word

_ASCII_WORD = re.compile(r"[A-Za-z]+(?:'[A-Za-z]+)*")

_LETTER_READERS: tuple[Reader, ...] = (
    addresses.read_url,
    addresses.read_email,
    addresses.read_windows_path,
    names.read_initials,
    calendar.read_name_range,
    calendar.read_month_date,
    names.read_abbreviation,
    money.read_money,
    codes.read_version,
    codes.read_machine_address,
    addresses.read_dotted,
    addresses.read_snake,
    quantity.read_bare_unit,
    names.read_and,
    names.read_state,
    roman.read_roman,
    codes.read_mixed,
)
_DIGIT_READERS: tuple[Reader, ...] = (
    codes.read_set_phrase,
    addresses.read_email,
    codes.read_machine_address,
    calendar.read_iso,
    calendar.read_numeric_date,
    clock.read_time,
    clock.read_ratio,
    phone.read_phone,
    codes.read_identifier,
    calendar.read_day_month,
    calendar.read_short_date,
    calendar.read_season,
    quantity.read_fraction,
    measures.read_scientific,
    codes.read_version,
    addresses.read_dotted,
    money.read_money_after,
    measures.read_arc,
    measures.read_height,
    measures.read_duration,
    calendar.read_decade,
    quantity.read_ordinal,
    calendar.read_era,
    calendar.read_year,
    codes.read_long_number,
    measures.read_dimensions,
    quantity.read_quantity,
    codes.read_mixed,
)
_SIGN_READERS: tuple[Reader, ...] = (
    signs.read_emoticon,
    money.read_money,
    signs.read_power,
    signs.read_comparison,
    signs.read_operator,
    addresses.read_path,
    names.read_slash_word,
    signs.read_sign,
)
_READERS_BY_SIGN: dict[str, tuple[Reader, ...]] = {
    "(": (phone.read_phone, *_SIGN_READERS),
    "#": (addresses.read_hash,),
    "@": (addresses.read_handle, signs.read_sign),
    "$": (money.read_money, addresses.read_variable),
    "-": (
        codes.read_figure_after_hyphen,
        money.read_money,
        signs.read_emoticon,
        addresses.read_flag,
        signs.read_comparison,
        signs.read_operator,
        signs.read_sign,
    ),
    "+": (phone.read_phone, money.read_money, signs.read_operator),
    "*": (addresses.read_glob, signs.read_power, signs.read_operator),
    ".": (quantity.read_quantity, addresses.read_path, addresses.read_dot_file, signs.read_sign),
    "'": (calendar.read_decade, calendar.read_short_year),
    "_": (addresses.read_dotted, addresses.read_snake),
}


def _first(scan: Scan, readers: tuple[Reader, ...], at: int) -> int | None:
    for reader in readers:
        end = reader(scan, at)
        if end is not None:
            return end
    return None


def read_digits(scan: Scan, at: int) -> int:
    """Read what begins with a figure."""
    return _first(scan, _DIGIT_READERS, at) or _read_figures(scan, at)


def read_letters(scan: Scan, at: int) -> int:
    """Read what begins with a letter."""
    text = scan.text
    end = _first(scan, _LETTER_READERS, at)
    if end is not None:
        return end
    end = _word_end(text, at)
    word = text[at:end]
    if len(word) == 1 and word in vocabulary().greek:
        scan.say(vocabulary().greek[word], at, end)
        return end
    if text[end : end + 1] == "#" and word in ("C", "F", "G", "A", "D") and not text[end + 1 : end + 2].isalnum():
        scan.say([word], at, end)
        scan.say("sharp", end, end + 1)
        return end + 1
    say_word(scan, word, at, end)
    if text.startswith("()", end):
        end += 2
    return end


def _word_end(text: str, at: int) -> int:
    """The end of a run of letters of any script, with their marks and with apostrophes inside."""
    match = _ASCII_WORD.match(text, at)
    end = match.end() if match else at + 1
    while end < len(text):
        char = text[end]
        joined = char.isalpha() and char != "ⁿ"
        if not joined and char == "'":
            joined = text[end + 1 : end + 2].isalpha()
        if not joined and not (not char.isascii() and unicodedata.category(char)[0] == "M"):
            break
        end += 1
    return end


def _read_figures(scan: Scan, at: int) -> int:
    """Figures that no reader took: one number, or digit by digit."""
    text = scan.text
    end = at
    while end < len(text) and "0" <= text[end] <= "9":
        end += 1
    scan.say(numbers.whole(text[at:end]), at, end)
    return end


def read_sign(scan: Scan, at: int) -> int:
    """Read what begins with anything else."""
    char = scan.text[at]
    if char.isspace() or char == "\x00":
        return at + 1
    if char.isnumeric():
        end = quantity.read_fraction(scan, at)
        if end is not None:
            return end
    end = _first(scan, _READERS_BY_SIGN.get(char, _SIGN_READERS), at)
    return at + 1 if end is None else end
