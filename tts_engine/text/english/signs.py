"""Signs: arithmetic, comparison, powers, legal signs, emoticons, dashes, quotes, brackets; the rest is silent."""

from __future__ import annotations

import re

from tts_engine.text.english import numbers
from tts_engine.text.english.scan import Scan
from tts_engine.text.english.units import unit_at
from tts_engine.text.english.vocabulary import vocabulary

MARKS = {mark: mark for mark in ",.!?;:—…()“”"} | {
    "[": "(", "]": ")", "【": "(", "】": ")", "「": "“", "」": "”", "『": "“", "』": "”", "《": "“", "》": "”",
    "〈": "“", "〉": "”", "؟": "?", "،": ",", "؛": ";", "।": ".", "‽": "?",
}  # fmt: skip
SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n", strict=True))
_LETTERS_BEFORE = re.compile(r"[^\W\d_]+$")
_SUPER = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]+")
_POWER = re.compile(r"(\^|\*\*)(?:\{?\(?([-+−]?(?:\d{1,9}(?:\.\d{1,9})?|[A-Za-z](?![A-Za-z])))\)?\}?)")
_OPERAND_BEFORE = re.compile(r"(?:\d|(?<![A-Za-z])[A-Za-z]|[)\]²³π∞%])[ ]?$")
_OPERAND_AFTER = re.compile(r"[ ]?(?:[-−+]?[\d.($£€√π∞]|[A-Za-z](?![A-Za-z]))")
_COMPARE = re.compile(r"===?|!==?|<=|>=|<>|=>|->|<-|~=|[≈≤≥=<>]")
_COMPARED = {
    "==": "equals", "===": "equals", "=": "equals", "!=": "is not equal to", "!==": "is not equal to",
    "<>": "is not equal to", "<=": "is less than or equal to", ">=": "is greater than or equal to", "<": "is less than",
    ">": "is greater than", "=>": "to", "->": "to", "<-": "", "≈": "is approximately", "~=": "is approximately",
    "≤": "is less than or equal to", "≥": "is greater than or equal to",
}  # fmt: skip
_PREFIXED = {
    "<": "less than", ">": "more than", "<=": "at most", ">=": "at least", "≤": "at most", "≥": "at least",
    "≈": "approximately",
}  # fmt: skip
_GRADE = re.compile(r"(?<![A-Za-z0-9])[A-F]$")
_HEART = re.compile(r"<3(?=\s*(?:$|[.,!?;:)]|(?:you|u|it|this|them|him|her|y'all)\b))")
_EMOTICON = re.compile(
    r"(?:[:;=8xX][-o^']?[)(DPp3|/\\\]\[}{OoSs$*><@](?![\w])|>?:'?-?[()]+|\^[_.-]?\^|[Tt]_[Tt]|[oO]_[oO]|-_-|¯\\_\(ツ\)_/¯|<[/\\]3|\(?[:;]-?\)+|:[a-z][a-z0-9_+-]{1,30}:)(?!\w)"
)
_COPYRIGHT = re.compile(r"\((?:c|C)\)(?= ?\d{4}| [A-Z])")
_LEGAL = re.compile(r"\((?:TM|tm|R|r)\)")


def read_emoticon(scan: Scan, at: int) -> int | None:
    """:-) and <3 are silent."""
    text = scan.text
    if at and not text[at - 1].isspace() and text[at - 1] not in ".,!?)":
        return None
    match = _HEART.match(text, at) or _EMOTICON.match(text, at)
    if match is None or match[0] in ("8)", "x)", "X)"):
        return None
    if match.re is _HEART and re.search(r"(?:\b(?:is|are|was|if|be|than)|[\d=]|\b[a-z]) $", text[max(0, at - 8) : at]):
        return None
    return match.end()


def _between(scan: Scan, start: int, end: int) -> bool:
    """Whether operands stand on both sides of the operator."""
    text = scan.text
    return _OPERAND_BEFORE.search(text, max(0, start - 3), start) is not None and _OPERAND_AFTER.match(text, end) is not None


def _is_symbol(text: str, end: int) -> bool:
    """Whether the letters before ``end`` are a symbol ("x", "mc"), not a word."""
    match = _LETTERS_BEFORE.search(text, max(0, end - 4), end)
    return match is not None and (len(match[0]) == 1 or (len(match[0]) <= 3 and not re.search("[AEIOUYaeiouy]", match[0])))


def read_power(scan: Scan, at: int) -> int | None:
    """x², 10⁻³, x^2, 2**10 after a base; a raised figure after a word is a footnote, which is silent."""
    text = scan.text
    based = at > 0 and (text[at - 1].isdigit() or text[at - 1] in ")]}πθ" or (text[at - 1].isalpha() and _is_symbol(text, at)))
    match = _SUPER.match(text, at)
    if match is not None:
        figures = "".join(SUPERSCRIPTS[char] for char in match[0])
        if not based:
            return match.end()
        _say_power(scan, figures, at, match.end())
        unit = unit_at(text, match.end() + 1, glued=False) if text[match.end() : match.end() + 1] == " " else None
        if unit is None or not text[at - 1].isdigit():
            return match.end()
        scan.say(unit.plural, match.end() + 1, unit.end)
        return unit.end
    match = _POWER.match(text, at)
    if match is None or not based:
        return None
    _say_power(scan, match[2], at, match.end())
    return match.end()


def _say_power(scan: Scan, exponent: str, start: int, end: int) -> None:
    if exponent in ("2", "3"):
        scan.say("squared" if exponent == "2" else "cubed", start, end)
        return
    words = ["to", "the", "power", "of"]
    if exponent[0] in "-−":
        words.append("minus")
    exponent = exponent.lstrip("+-−")
    if "." in exponent:
        whole, _, fraction = exponent.partition(".")
        words += numbers.decimal(whole, fraction)
    elif exponent.isdigit():
        words += numbers.whole(exponent)
    else:
        words += [exponent.upper() or "plus"] if len(exponent) == 1 else list(exponent.upper())
    scan.say(words, start, end)


def read_comparison(scan: Scan, at: int) -> int | None:
    """= < > ≤ ≥ ≈ != -> between two sides; before a number alone, "<5" is less than five."""
    text = scan.text
    match = _COMPARE.match(text, at)
    if match is None:
        return None
    sign, end = match[0], match.end()
    after = text[end : end + 2].lstrip(" ")[:1]
    before = text[max(0, at - 2) : at].rstrip(" ")[-1:]
    alone = (
        not before
        or before in "([,;:—“"
        or (scan.starts_token(at) and before.isalpha() and not _OPERAND_BEFORE.search(text, max(0, at - 3), at))
    )
    if alone and sign in _PREFIXED and (after.isdigit() or after in tuple("$£€.")):
        scan.say(_PREFIXED[sign], at, end)
        return end
    if not after.isalnum() and after not in tuple("-−+$£€(√π∞\"“'."):
        return None
    if sign in ("<", ">") and not (before.isalnum() or before in tuple(")]%|°")):
        return None
    if _COMPARED[sign]:
        scan.say(_COMPARED[sign], at, end)
    return end


def read_operator(scan: Scan, at: int) -> int | None:
    """+ - * / ^ where they stand between operands or before a number; ~ for about; && and ||."""
    text = scan.text
    char = text[at]
    if char == "~" and text[at + 1 : at + 2] and (text[at + 1].isdigit() or text[at + 1] in "$£€"):
        scan.say("about", at, at + 1)
        return at + 1
    if char in "+-−":
        return _read_plus_minus(scan, at)
    if char == "*" and text[at + 1 : at + 2] != "*" and _between(scan, at, at + 1):
        scan.say("times", at, at + 1)
        return at + 1
    if (
        char == "*"
        and scan.word_before(at).lower() in ("press", "pressing", "dial", "hit")
        and not text[at + 1 : at + 2].isalnum()
    ):
        scan.say("star", at, at + 1)
        return at + 1
    if char == "/" and _between(scan, at, at + 1) and not text[at - 1].isupper():
        scan.say("divided by" if text[at - 1] == " " else "over", at, at + 1)
        return at + 1
    if char == "^" and _between(scan, at, at + 1):
        scan.say("to the power of", at, at + 1)
        return at + 1
    if text.startswith(("&&", "||"), at):
        scan.say("and" if char == "&" else "or", at, at + 2)
        return at + 2
    return None


def _read_plus_minus(scan: Scan, at: int) -> int | None:
    text = scan.text
    if text.startswith(("+/-", "+-"), at):
        end = at + (3 if text[at + 1] == "/" else 2)
        scan.say("plus or minus", at, end)
        return end
    after = text[at + 1 : at + 2]
    if after == "=":
        scan.say("plus" if text[at] == "+" else "minus", at, at + 1)
        return at + 1
    name = "plus" if text[at] == "+" else "minus"
    if _between(scan, at, at + 1) and not (text[at] == "-" and text[at - 1].isalpha()):
        glued = text[at - 1] != " "
        if text[at] != "-" or not glued or not after.isalpha():
            scan.say(name, at, at + 1)
            return at + 1
    signed = after.isdigit() or (after == "." and text[at + 2 : at + 3].isdigit()) or after in tuple("$£€¥₹∞")
    if signed and after and (scan.starts_token(at) or text[at] == "−"):
        scan.say(name, at, at + 1)
        return at + 1
    if text[at] == "-" and _GRADE.search(text, max(0, at - 2), at) and not after.isalnum() and after not in tuple("->"):
        scan.say("minus", at, at + 1)
        return at + 1
    if text[at] == "+" and at and text[at - 1].isalnum():
        end = at
        while text[end : end + 1] == "+" and end - at < 3:
            end += 1
        if text[end : end + 1].isalpha() and end - at == 1:
            scan.say("plus", at, end)
            return end
        scan.say(["plus"] * (end - at), at, end)
        return end
    if text[at] == "+" and after == " " and at and text[at - 1] == " ":
        scan.say("plus", at, at + 1)
        return at + 1
    if text[at] == "−":
        scan.say("minus", at, at + 1)
        return at + 1
    return None


def read_sign(scan: Scan, at: int) -> int | None:
    """Marks of punctuation, dashes, quotes, signs with a name of their own."""
    text = scan.text
    char = text[at]
    if char == '"':
        opening = not scan.open_quote if at == 0 or text[at - 1].isspace() or text[at - 1] in "([—“" else False
        scan.open_quote = opening
        scan.mark("“" if opening else "”", at, at + 1)
        return at + 1
    if char == "." and text.startswith("..", at):
        end = at + 2
        while text[end : end + 1] == ".":
            end += 1
        scan.mark("…", at, end)
        return end
    if char in "-–—":
        return _read_dash(scan, at)
    match = _COPYRIGHT.match(text, at)
    if match is not None:
        scan.say("copyright", at, match.end())
        return match.end()
    match = _LEGAL.match(text, at)
    if match is not None:
        return match.end()
    if char in MARKS:
        mark = MARKS[char]
        if char in "“”":
            scan.open_quote = char == "“"
        if mark:
            scan.mark(mark, at, at + 1)
        return at + 1
    if char == "×" and not _between(scan, at, at + 1):
        return None
    if char in "·⋅" and not _between(scan, at, at + 1):
        return None
    if char in vocabulary().greek and not (
        text[at + 1 : at + 2].isalpha()
        or (at and text[at - 1].isalpha() and text[at - 1] not in vocabulary().greek and not text[at - 1].isascii())
    ):
        scan.say(vocabulary().greek[char], at, at + 1)
        return at + 1
    if char == "§" and text.startswith("§§", at):
        scan.say("sections", at, at + 2)
        return at + 2
    if char == "@" and at and text[at - 1] == " " and text[at + 1 : at + 2] == " ":
        scan.say("at", at, at + 1)
        return at + 1
    if char in vocabulary().signs:
        scan.say(vocabulary().signs[char], at, at + 1)
        return at + 1
    return None


def _read_dash(scan: Scan, at: int) -> int:
    """A pause for a dash that stands apart, or for a long one; silence inside a word."""
    text = scan.text
    end = at
    while end < len(text) and text[end] in "-–—":
        end += 1
    apart = (at == 0 or text[at - 1].isspace()) and (end == len(text) or text[end].isspace())
    long = "—" in text[at : min(end, at + 8)] or end - at > 1
    if (apart and at and end < len(text)) or (long and at > 0):
        scan.mark("—", at, end)
    elif not apart and end - at == 1 and at and text[at - 1].isalnum():
        scan.glue = True
    return end
