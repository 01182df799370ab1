"""A Chinese or mixed sentence to spoken tokens: every number, sign and unit becomes words, each with its span.

Chinese characters are one word token each. English words stay as they are written, as tokens of language "en".
Numbers are read in Chinese by the readers of sums, dates, codes and quantities, asked in this order; what none of them
reads goes digit by digit, so that no digit is ever left or lost.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from tts_engine.text import codes_zh, dates_zh, quantities_zh
from tts_engine.text.language import LATIN, is_han
from tts_engine.text.numbers_zh import cardinal, digits, number
from tts_engine.text.tokens import Token
from tts_engine.text.written_zh import NUMBER, Part, Written, tables
from tts_engine.types import Language

WORD = re.compile(f"[{LATIN}]+(?:['’-][{LATIN}]+)*")
ADDRESS = re.compile(
    r"(?:https?|ftp)://[^\s\u3000-\u303f\u4e00-\u9fff\uff00-\uffef<>\"“”]{1,2000}"
    r"|(?<![A-Za-z0-9])www\.[^\s\u3000-\u303f\u4e00-\u9fff\uff00-\uffef<>\"“”]{1,2000}"
    r"|[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,4}"
    r"|[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,3}"
    r"\.(?:com|cn|net|org|io|edu|gov|ai|dev|app|me|co|tv"
    r"|cc|info|xyz)(?:\.cn)?(?![A-Za-z0-9])"
)
ADDRESS_SIGNS = {
    ".": "点", "/": "斜杠", ":": "冒号", "@": "艾特", "-": "杠", "_": "下划线", "?": "问号", "=": "等于", "&": "和",
    "#": "井号", "%": "百分号", "+": "加", "~": "波浪号",
}  # fmt: skip
ADDRESS_START = re.compile(r"(?:https?|ftp)://(?:www\.)?|www\.")
ADDRESS_PIECE = re.compile(rf"[{LATIN}]+|\d+|.", re.DOTALL)
PLUSES = re.compile(r"\+{1,3}(?![\d+])")
ENUMERATOR = re.compile(r"[\u2460-\u249b\u24ea-\u24ff\u2776-\u2793\u3220-\u3229](?=\s*\w)")
SHARP = re.compile(r"[CFJ]#(?![A-Za-z0-9#])")
RUN = re.compile(r"[…⋯.。]{2,}|[—―─]{2,}|…|⋯")
CONNECTED = re.compile(
    r"(?:\d\s*(?:[\u4e00-\u9fff℃%‰°]?[^\W\d_到至和或从与比是为]|[℃%‰°]|[A-Za-z]{1,3})|(?:周|星期"
    r"|礼拜)[一二三四五六日天]|[A-Za-z])\s*$"
)
CONNECTS = re.compile(
    r"\s*[-+]?\s*(?:第?\d|[¥$€£]\d|(?:周|星期|礼拜)?[一二三四五六日天](?![\u4e00-\u9fff]{2})|(?:周|星期"
    r"|礼拜)[一二三四五六日天])"
)
DASHES = "-~—"
PER_BEFORE = re.compile(r"\d\s*(?:[\u4e00-\u9fff]{0,3}|[A-Za-z]{1,4})\s*$")
LIST_NUMBER = re.compile(r"\s*(\d{1,3})[.)、](?=\s*[^\d\s.])")
LEADING_POINT = re.compile(r"\.\d+")
PLAIN = re.compile(NUMBER)
OPERAND_BEFORE = re.compile(r"[\dA-Za-z)%⁰¹²³⁴-⁹]\s*$")
VARIABLE_BEFORE = re.compile(r"(?:(?<![A-Za-z])[A-Za-z]|[⁰¹²³⁴-⁹)])\s?$")
NUMERO = re.compile(r"(?:№|[Nn][Oo]\.|#)\s?(?=\d)")
ROMAN = "ⅠⅡⅢⅣⅤⅥⅦⅧⅨⅩⅪⅫⅰⅱⅲⅳⅴⅵⅶⅷⅸⅹⅺⅻ"


def normalize_zh(text: str, start: int = 0) -> list[Token]:
    """The spoken tokens of one Chinese or mixed sentence; spans are offsets in ``text`` plus ``start``."""
    return list(_Scan(text, start).tokens())


class _Scan:
    """One pass over a sentence. Every rule looks at bounded context, so the time is linear."""

    def __init__(self, raw: str, offset: int) -> None:
        self.raw = raw
        self.offset = offset
        self.written = Written.of(raw)
        self.text = self.written.text
        self.has_addresses = any(sign in self.text for sign in ".@")
        self.read_to = -1
        """Where the last number that was read ends."""

    def tokens(self) -> Iterator[Token]:
        place, size = 0, len(self.text)
        if match := LIST_NUMBER.match(self.text):
            yield from self._spoken([Part(cardinal(match[1]), match.start(1), match.end(1))])
            yield self._mark(",", match.end(1), match.end())
            place = match.end()
        while place < size:
            char = self.text[place]
            if is_han(char):
                yield Token("零" if char == "〇" else char, *self._span(place, place + 1), language="zh", space=False)
                place += 1
                continue
            if char.isspace():
                place += 1
                continue
            if (parts := self._number(place)) is not None:
                yield from self._spoken(parts)
                if ENUMERATOR.match(self.raw, place):
                    yield self._mark(",", place, place + 1)
                place = self.read_to = parts[-1].end
                continue
            if match := (ADDRESS.match(self.text, place) if self.has_addresses and char.isascii() and char.isalnum() else None):
                yield from self._address(match)
                place = match.end()
                continue
            if match := WORD.match(self.text, place):
                yield self._english(place, match.end())
                place = match.end()
                if pluses := PLUSES.match(self.text, place):
                    yield from self._spoken([Part("加" * len(pluses[0]), place, pluses.end())])
                    place = pluses.end()
                elif SHARP.match(self.text, place - 1):
                    yield from self._spoken([Part("sharp", place, place + 1)])
                    place += 1
                continue
            tokens, place = self._sign(place)
            yield from tokens

    def _span(self, start: int, end: int) -> tuple[int, int]:
        return start + self.offset, end + self.offset

    def _english(self, start: int, end: int) -> Token:
        return Token(self.text[start:end], *self._span(start, end), language="en", space=True)

    def _mark(self, symbol: str, start: int, end: int) -> Token:
        return Token(symbol, *self._span(start, end), kind="mark", language="zh", space=False, source=self.raw[start:end])

    def _spoken(self, parts: list[Part]) -> Iterator[Token]:
        """Parts as tokens: a word a character, Latin letters together."""
        for part in parts:
            for piece in re.finditer(r"[A-Za-z]+|.", part.spoken):
                latin = piece[0].isascii()
                language: Language = "en" if latin else "zh"
                yield Token(piece[0], *self._span(part.start, part.end), language=language, space=latin)

    def _number(self, place: int) -> list[Part] | None:
        """The reading of whatever begins here and holds a number."""
        written, text, char = self.written, self.text, self.text[place]
        if char.isascii() and char.isdigit():
            return (
                quantities_zh.read_sum(written, place)
                or dates_zh.read(written, place)
                or codes_zh.read(written, place)
                or quantities_zh.read(written, place)
                or quantities_zh.loose(written, place)
            )
        if parts := quantities_zh.priced(written, place):
            return parts
        following = text[place + 1 : place + 2]
        if char in "+-" and following.isdigit():
            return self._signed(place)
        if char == "-" and not self._joined(place) and (parts := quantities_zh.priced(written, place + 1)):
            return [Part("负", place, place + 1), *parts]
        if char == "." and following.isdigit():
            return self._leading_point(place)
        return self._numeral(place)

    def _signed(self, place: int) -> list[Part] | None:
        written, text = self.written, self.text
        if text[place] == "+" and (parts := codes_zh.read(written, place)):
            return parts
        left = written.context[max(0, place - 8) : place]
        if text[place] == "-" and (self._joined(place) or CONNECTED.search(left)):
            return None
        if text[place] == "+" and OPERAND_BEFORE.search(left):
            return None
        parts = quantities_zh.read(written, place + 1, text[place])
        if not parts:
            return None
        return [Part(parts[0].spoken, place, parts[0].end), *parts[1:]]

    def _joined(self, place: int) -> bool:
        return self.read_to >= 0 and not self.text[self.read_to : place].strip()

    def _leading_point(self, place: int) -> list[Part] | None:
        if place and self.text[place - 1].isalnum():
            return None
        match = LEADING_POINT.match(self.text, place)
        return [Part("零点" + digits(match[0][1:]), place, match.end())] if match else None

    def _numeral(self, place: int) -> list[Part] | None:
        """Numbers in one character: ½, Ⅳ, ①, ㈠; exponents; No. 5."""
        char = self.text[place]
        if match := NUMERO.match(self.text, place):
            figures = PLAIN.match(self.text, match.end())
            if figures and not (char == "#" and place and self.text[place - 1].isalnum()):
                ordinal = char in "Nn" and not match[0].endswith(" ")
                spoken = number(figures[0])
                name = "" if self.text[figures.end() : figures.end() + 1] == "号" else "号"
                return [Part("第" + spoken if ordinal else spoken + name, place, figures.end())]
        if char.isascii() and char != "^":
            return None
        if parts := quantities_zh.exponent(self.written, place):
            return parts
        value = unicodedata.numeric(char, None)
        if value is None or value < 0 or (char.isalpha() and char not in ROMAN):
            return None
        if value != int(value):
            return [Part(quantities_zh.vulgar(char), place, place + 1)]
        spoken = cardinal(str(int(value)))
        return [Part(spoken, place, place + 1)]

    def _address(self, match: re.Match[str]) -> Iterator[Token]:
        """A URL or an e-mail address: words, and signs by their Chinese names; the scheme and "www." are left out."""
        end = match.end()
        while self.text[end - 1] in ".,!?:;'":
            end -= 1
        skip = ADDRESS_START.match(self.text, match.start(), end)
        place = skip.end() if skip else match.start()
        for piece in ADDRESS_PIECE.finditer(self.text, place, end):
            low, high = piece.span()
            if piece[0].isdigit():
                yield from self._spoken([Part(digits(piece[0]), low, high)])
            elif WORD.match(piece[0]):
                yield self._english(low, high)
            elif piece[0] != "/" or high < end:
                yield from self._spoken([Part(ADDRESS_SIGNS.get(piece[0], ""), low, high)])
        for tail in range(end, match.end()):
            symbol = tables()["marks"].get(self.raw[tail])
            if symbol:
                yield self._mark(symbol, tail, tail + 1)

    def _sign(self, place: int) -> tuple[list[Token], int]:
        """A mark, an operator, a connector between numbers, or nothing; with the place that comes next."""
        text, raw, char = self.text, self.raw, self.text[place]
        if match := RUN.match(text, place):
            return [self._mark("—" if char in "—―─" else "…", place, match.end())], match.end()
        left, right = self.written.before(place), self.written.after(place + 1)
        if char == "-" and VARIABLE_BEFORE.search(left) and "=" in left + right:
            return list(self._spoken([Part("减", place, place + 1)])), place + 1
        if char in DASHES:
            if (self._joined(place) or CONNECTED.search(left)) and CONNECTS.match(right) and not left.rstrip()[-1:].isascii():
                return list(self._spoken([Part("到", place, place + 1)])), place + 1
            if self._joined(place) and CONNECTS.match(right):
                return list(self._spoken([Part("到", place, place + 1)])), place + 1
            if char == "~" and right[:1].isdigit():
                return list(self._spoken([Part("约", place, place + 1)])), place + 1
            return ([self._mark("—", place, place + 1)] if char == "—" else []), place + 1
        if symbol := tables()["marks"].get(char) or tables()["marks"].get(raw[place]):
            return [self._mark(symbol, place, place + 1)], place + 1
        if char == "/":
            if (parts := quantities_zh.per(self.written, place)) and PER_BEFORE.search(left):
                return list(self._spoken(parts)), parts[-1].end
            spoken = ""
        elif char == "*":
            spoken = "乘" if self._joined(place) and right[:1].isdigit() else ""
        elif char == '"':
            return [self._mark('"', place, place + 1)], place + 1
        else:
            spoken = tables()["symbols"].get(char) or (tables()["greek"].get(char, "") if self._lone(place) else "")
        return list(self._spoken([Part(spoken, place, place + 1)])), place + 1

    def _lone(self, place: int) -> bool:
        around = self.text[max(0, place - 1) : place] + self.text[place + 1 : place + 2]
        return not any(char.isalpha() and not char.isascii() and not is_han(char) for char in around)
