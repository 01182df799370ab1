"""Names of the net and of code: URLs, e-mail, domains, files, paths, hashtags, handles, flags, identifiers."""

from __future__ import annotations

import re
from itertools import pairwise

from tts_engine.text.english import numbers
from tts_engine.text.english.codes import read_mixed
from tts_engine.text.english.plain import RAISED
from tts_engine.text.english.scan import Scan
from tts_engine.text.english.vocabulary import vocabulary
from tts_engine.text.english.words import say_address, say_short_form, say_word

_URL = re.compile(
    r"(?:(?:https?|ftp|wss?|file|git|ssh|s3|rtsp)://|mailto:|www\.(?=[\w-]))([^\s<>\"'“”‘’`{}|\\^\u3000-\uffef]+)",
    re.IGNORECASE,
)
_EMAIL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._%+-]{0,63}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}(?<!-)")
_DOTTED = re.compile(r"[A-Za-z0-9_][\w-]{0,62}(?:\.[A-Za-z0-9_][\w-]{0,62}){1,12}", re.ASCII)
_AFTER_HOST = re.compile(r"(?::\d{2,5})?(?:/[^\s<>\"'“”`{}|\\^\u3000-\uffef]*)?(?:\?[\w=&%.+-]+)?")
_LOCALHOST = re.compile(r"localhost:\d{2,5}(?:/[^\s<>\"'“”`]*)?")
_HASHTAG = re.compile(r"#(?=\w{0,100}[^\W\d_])\w+")
_COLOR = re.compile(r"#(?=\d{0,7}[A-Fa-f])(?=[A-Fa-f]{0,7}\d)(?:[0-9A-Fa-f]{6}|[0-9A-Fa-f]{8}|[0-9A-Fa-f]{3})(?!\w)")
_HANDLE = re.compile(r"@[A-Za-z0-9_][\w-]{0,62}(?:\.[A-Za-z0-9_][\w-]{0,62}){0,4}", re.ASCII)
_PATH = re.compile(r"(?:~|\.{1,2})?(?:/[\w.@+-]+){1,64}/?|~/(?!\S)")
_WINDOWS_PATH = re.compile(r"[A-Za-z]:\\[\w.\\-]*")
_FLAG = re.compile(r"--[A-Za-z][\w-]*|-[A-Za-z](?!\w)")
_VARIABLE = re.compile(r"\$(?:\{[A-Za-z_]\w{0,62}\}|[A-Za-z_]\w{0,62})")
_SNAKE = re.compile(r"_{0,2}[A-Za-z][A-Za-z0-9]*(?:_+[A-Za-z0-9]+)+_{0,2}|__?[A-Za-z][A-Za-z0-9]*_{0,2}")
_CALL = re.compile(r"\(\)")
_GLOB = re.compile(r"\*\.[A-Za-z]\w*")
_DOT_FILE = re.compile(r"\.[A-Za-z][\w-]{1,30}(?:\.[A-Za-z]\w{0,20})?")
_TRAILING = ".,;:!?)]}>…*_~-"
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[A-Z]|\d+|[^\W\d_a-zA-Z" + RAISED + "]+")
_CODE_PARTS = re.compile(r"[^\W_]+|.", re.ASCII)
_FLAG_PARTS = re.compile(r"[^\W_]+")


def _trimmed(text: str, start: int, end: int) -> int:
    """Without the marks at the end that belong to the sentence, but with a closing bracket that the address opened."""
    unopened = text.count(")", start, end) - text.count("(", start, end)
    while end > start and text[end - 1] in _TRAILING:
        if text[end - 1] == ")":
            if unopened <= 0:
                break
            unopened -= 1
        end -= 1
    return end


def read_url(scan: Scan, at: int) -> int | None:
    """https://example.com/docs is example dot com slash docs; the scheme and a slash at the end are silent."""
    text = scan.text
    match = _URL.match(text, at)
    if match is None:
        match = _LOCALHOST.match(text, at)
        if match is None:
            return None
        end = _trimmed(text, at, match.end())
        say_address(scan, at, end)
        return end
    end = _trimmed(text, match.start(1), match.end())
    if end == match.start(1):
        return None
    begin = at if match[0][:4].lower() == "www." else match.start(1)
    spoken_end = end - 1 if text[end - 1] == "/" else end
    if spoken_end <= begin:
        return None
    said = len(scan.out)
    say_address(scan, begin, spoken_end)
    return end if len(scan.out) > said else None


def read_email(scan: Scan, at: int) -> int | None:
    match = _EMAIL.match(scan.text, at)
    if match is None:
        return None
    say_address(scan, at, match.end())
    return match.end()


def read_dotted(scan: Scan, at: int) -> int | None:
    """example.com/docs, main.py, foo.bar(), Node.js; a full stop that lacks its blank is none of these."""
    text = scan.text
    match = _DOTTED.match(text, at)
    if match is None:
        return None
    end = _trimmed(text, at, match.end())
    labels = text[at:end].split(".")
    if len(labels) < 2 or all(label.isdecimal() for label in labels):
        return None
    if labels[0].isdecimal() and not (
        len(labels) > 2
        or labels[-1]
        in ("com", "org", "net", "io", "cn", "py", "js", "md", "txt", "pdf", "jpg", "png", "json", "csv", "html", "zip")
    ):
        return None
    last = labels[-1]
    if any(left[-1:].isdecimal() and right[:1].isdecimal() for left, right in pairwise(labels)):
        return None
    known = last.lower() in vocabulary().extensions or last in ("com", "org", "net", "NET", "app", "dev", "info", "co")
    sentence = (
        last[:1].isupper() and not last.isupper() and not known and text[end : end + 1] != "(" and not labels[0].isupper()
    )
    if sentence and (labels[0][1:].islower() or len(labels[0]) == 1):
        return None
    if all(len(label) == 1 for label in labels):
        return None
    rest = _AFTER_HOST.match(text, end)
    if rest is not None and rest.end() > end and (known or len(labels) > 1):
        end = _trimmed(text, end, rest.end())
        spoken_end = end - 1 if text[end - 1] == "/" else end
    else:
        spoken_end = end
    _say_code(scan, at, spoken_end)
    call = _CALL.match(text, end)
    return call.end() if call else end


def _say_code(scan: Scan, start: int, end: int) -> None:
    """Dotted names: signs by name, underscores as blanks, figures as in addresses."""
    text = scan.text
    for part in _CODE_PARTS.finditer(text, start, end):
        piece, low, high = part[0], part.start(), part.end()
        if piece == "_":
            continue
        if piece.isalpha():
            say_short_form(scan, piece, low, high)
        elif piece[0].isalnum() and not piece.isdecimal():
            read_mixed(scan, low)
        else:
            say_address(scan, low, high)


def _say_parts(scan: Scan, start: int, end: int) -> None:
    """The words of a run without blanks: #MondayMotivation, snake_case."""
    for part in _WORDS.finditer(scan.text, start, end):
        piece, low, high = part[0], part.start(), part.end()
        if piece.isdecimal():
            year = len(piece) == 4 and piece[:2] in ("19", "20")
            scan.say(numbers.year(int(piece)) if year else numbers.whole(piece), low, high)
        else:
            say_word(scan, piece, low, high)


def read_hash(scan: Scan, at: int) -> int | None:
    """#MondayMotivation, #1, #ff0000."""
    text = scan.text
    match = _COLOR.match(text, at)
    if match is not None:
        scan.say("hash", at, at + 1)
        for index in range(at + 1, match.end()):
            scan.say(numbers.digits(text[index]) if text[index].isdigit() else [text[index].upper()], index, index + 1)
        return match.end()
    match = _HASHTAG.match(text, at)
    if match is not None:
        scan.say("hashtag", at, at + 1)
        name = text[at + 1 : match.end()]
        if name in vocabulary().brands:
            say_word(scan, name, at + 1, match.end())
        else:
            _say_parts(scan, at + 1, match.end())
        return match.end()
    if text[at + 1 : at + 2].isdigit():
        if scan.word_before(at).lower() not in ("number", "no."):
            scan.say("number", at, at + 1)
        return at + 1
    if text.startswith("# of ", at):
        scan.say("number", at, at + 1)
        return at + 1
    if scan.word_before(at).lower() in ("press", "pressing", "hit", "dial", "key", "the", "a", "then", "by"):
        scan.say("pound", at, at + 1)
        return at + 1
    return None


def read_handle(scan: Scan, at: int) -> int | None:
    """@name."""
    match = _HANDLE.match(scan.text, at)
    if match is None:
        return None
    end = _trimmed(scan.text, at, match.end())
    say_address(scan, at, end)
    return end


def read_path(scan: Scan, at: int) -> int | None:
    """/usr/bin, ~/notes.txt, ./run.sh, ../up."""
    text = scan.text
    if at and not text[at - 1].isspace() and text[at - 1] not in "\"'(“`=:":
        return None
    match = _PATH.match(text, at)
    if match is None or not any(char.isalpha() for char in match[0]):
        return None
    place = at
    if text.startswith("..", at):
        scan.say("dot dot", at, at + 2)
        place = at + 2
    return _say_path(scan, place, match.end(), "/")


def read_windows_path(scan: Scan, at: int) -> int | None:
    r"""C:\Users\Bob."""
    match = _WINDOWS_PATH.match(scan.text, at)
    return None if match is None else _say_path(scan, at, match.end(), "\\")


def _say_path(scan: Scan, start: int, end: int, separator: str) -> int:
    """A separator at the end is silent, and marks there belong to the sentence."""
    if scan.text[end - 1] != separator:
        end = _trimmed(scan.text, start, end)
    _say_code(scan, start, end - 1 if scan.text[end - 1] == separator and end - start > 2 else end)
    return end


def read_flag(scan: Scan, at: int) -> int | None:
    """--flag, -v."""
    text = scan.text
    if at and not text[at - 1].isspace() and text[at - 1] not in "\"'(`[“":
        return None
    match = _FLAG.match(text, at)
    if match is None:
        return None
    dashes = 2 if match[0].startswith("--") else 1
    scan.say("dash dash" if dashes == 2 else "dash", at, at + dashes)
    for part in _FLAG_PARTS.finditer(text, at + dashes, match.end()):
        _say_parts(scan, part.start(), part.end()) if len(part[0]) > 1 else scan.say(
            [part[0].upper()], part.start(), part.end()
        )
    return match.end()


def read_variable(scan: Scan, at: int) -> int | None:
    """$HOME, ${NAME}."""
    match = _VARIABLE.match(scan.text, at)
    if match is None:
        return None
    scan.say("dollar", at, at + 1)
    _say_parts(scan, at + 1, match.end())
    return match.end()


def read_snake(scan: Scan, at: int) -> int | None:
    """snake_case, __init__: the words, the underscores silent."""
    match = _SNAKE.match(scan.text, at)
    if match is None:
        return None
    _say_parts(scan, at, match.end())
    call = _CALL.match(scan.text, match.end())
    return call.end() if call else match.end()


def read_glob(scan: Scan, at: int) -> int | None:
    """*.py."""
    match = _GLOB.match(scan.text, at)
    if match is None:
        return None
    _say_code(scan, at, match.end())
    return match.end()


def read_dot_file(scan: Scan, at: int) -> int | None:
    """.env, .NET."""
    text = scan.text
    if at and not text[at - 1].isspace() and text[at - 1] not in "\"'(`“":
        return None
    match = _DOT_FILE.match(text, at)
    if match is None:
        return None
    _say_code(scan, at, match.end())
    return match.end()
