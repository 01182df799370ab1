"""Recognises inline markup in a window of the stream: links, citations, tags, entities, special tokens, bare URLs."""

from __future__ import annotations

import re
from html import unescape
from typing import NamedTuple

from voice_agent.text.links import link_target_end
from voice_agent.text.regions import Element, Verdict

# Brackets.

LABEL_CHARS = 200
_LABEL_DEPTH = 4
_BRACKETS = re.compile(r"[\[\]\\\n]")
_CITATION = re.compile(
    r"\[(?:\d{1,3}(?:\s{0,2}[-–—,，、;；]\s{0,2}\d{1,3}){0,20}|\^[^\[\]\s]{1,32}|\d{1,3}(?::\d{1,3})?†[^\[\]\n]{0,80})\]"
)
_CITATION_JOINT = re.compile(r"[,，、][ \t]?(?=\[[\d^])")
_CITATION_JOINT_START = re.compile(r"[,，、](?:[ \t]?\[?)\Z")
_WIDE_CITATION = re.compile(r"【\d{1,3}(?::\d{1,3})?†[^【】\n]{0,80}】")
_WIDE_CITATION_START = re.compile(r"【(?:\d{1,3}(?::\d{0,3})?(?:†[^【】\n]{0,80})?)?\Z")
_REFERENCE = re.compile(r"\[[^\[\]\n]{0,100}\]")
_REFERENCE_START = re.compile(r"\[[^\[\]\n]{0,100}\Z")
_INSTRUCTION = re.compile(r"\[/?(?:INST|TOOL_CALLS|AVAILABLE_TOOLS|TOOL_RESULTS)\]", re.IGNORECASE)
_INDEXED = re.compile(r"(?:^|\W)(?:[A-Za-z]|\w*_\w*|args|argv|arr|nums)$|\[\w+\]$")


class Link(NamedTuple):
    """Where the label and the whole of a link end. A citation has no label: ``label_start`` equals ``label_end``."""

    label_start: int
    label_end: int
    end: int
    rule: str


def read_link(text: str, start: int, context: str, final: bool) -> Link | Verdict:
    """The link, citation or model's token that the bracket at ``start`` begins.

    ``context`` is the spoken text before it: a bracket behind ``a`` or ``max_n`` is an index.
    """
    closed = _label_end(text, start, final)
    if isinstance(closed, Verdict):
        return closed
    label_end, end = closed - 1, closed
    token = _INSTRUCTION.fullmatch(text, start, end)
    if token is not None:
        return Link(end, end, end, "special token")
    if end == len(text) and not final:
        return Verdict.MORE
    cited = _CITATION.fullmatch(text, start, end) is not None
    following = text[end : end + 1]
    if following == "(":
        target = link_target_end(text, end, final)
        if target is Verdict.MORE:
            return Verdict.MORE
        if isinstance(target, int):
            return Link(end, end, target, "citation") if cited else Link(start + 1, label_end, target, "link target")
    if cited:
        if text[start + 1 : label_end] == "0" or (text[start + 1] != "^" and _INDEXED.search(context)):
            return Verdict.NO
        joint = _CITATION_JOINT.match(text, end)
        if joint is None and not final and _CITATION_JOINT_START.match(text, end):
            return Verdict.MORE
        return Link(end, end, joint.end() if joint is not None else end, "citation")
    if following == "[" and label_end > start + 1:
        reference = _REFERENCE.match(text, end)
        if reference is not None:
            return Link(start + 1, label_end, reference.end(), "link reference")
        if not final and len(text) - end < LABEL_CHARS and _REFERENCE_START.match(text, end):
            return Verdict.MORE
    return Verdict.NO


def _label_end(text: str, start: int, final: bool) -> int | Verdict:
    depth = 0
    position = start
    limit = start + LABEL_CHARS
    while (found := _BRACKETS.search(text, position, limit)) is not None:
        position = found.end()
        mark = found.group()
        if mark == "\n":
            return Verdict.NO
        if mark == "\\":
            position += 1
        else:
            depth += 1 if mark == "[" else -1
            if depth == 0:
                return position
            if depth > _LABEL_DEPTH:
                return Verdict.NO
    return Verdict.MORE if len(text) < limit and not final else Verdict.NO


def read_wide_citation(text: str, start: int, final: bool) -> int | Verdict:
    """Where ``【3†source】`` at ``start`` ends."""
    citation = _WIDE_CITATION.match(text, start)
    if citation is not None:
        return citation.end()
    return Verdict.MORE if not final and _WIDE_CITATION_START.match(text, start) else Verdict.NO


# HTML.

HTML_CHARS = 512
_BLOCK_NAMES = (
    "address article aside blockquote br center dd details dialog div dl dt fieldset figcaption figure footer "
    "form h1 h2 h3 h4 h5 h6 header hr legend li main menu nav ol optgroup option p pre section select summary "
    "table tbody td tfoot th thead tr ul"
)
_INLINE_NAMES = (
    "a abbr acronym audio b bdi bdo big body button canvas caption cite code col data del dfn em embed font "
    "head html i iframe img input ins kbd label link map mark meta meter noscript object output param picture "
    "progress q rp rt ruby s samp small source span strike strong style sub sup svg template textarea time "
    "title tt u var video wbr break desc emphasis expr lang mstts phoneme prosody say-as speak token voice w"
)
_TYPE_NAMES = "any bool boolean byte char double float int integer k long number object str string t u v void"
_BLOCK_TAGS = frozenset(_BLOCK_NAMES.split())
_INLINE_TAGS = frozenset(_INLINE_NAMES.split())
_TYPES = frozenset(_TYPE_NAMES.split())
_TAG_NAME = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9:_.-]{0,40})")
_TAG_REST = re.compile(
    r"""(?:\s{1,16}[A-Za-z_:@][\w:.@-]{0,60}(?:\s{0,8}=\s{0,8}(?:"[^"<>]{0,400}"|'[^'<>]{0,400}'|[^\s"'<>=`]{1,400}))?){0,16}"""
    r"\s{0,16}/?>"
)
_TAG_REST_START = re.compile(r"""(?:[/\s][^<>]{0,511})?\Z""")
_HAS_WORD_ATTRIBUTE = re.compile(r"\s[A-Za-z]\w*(?=\s+[^\s=]|\s*/?>)(?!\s*=)")
_BOOLEANS = re.compile(
    r"\s(?:disabled|checked|hidden|required|open|selected|async|defer|controls|autoplay|loop|muted|readonly|reversed)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r""""[^"]*"|'[^']*'""")
_AUTOLINK = re.compile(r"<([A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>]{1,500})>")
_ADDRESS = re.compile(r"<([\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,8})>")
_AUTOLINK_START = re.compile(r"<[A-Za-z][\w+.-]{0,63}(?:[:@][^\s<>]{0,500})?\Z")
_DECLARATION = re.compile(r"<[!?][^<>]{0,500}>")
_DECLARATION_START = re.compile(r"<[!?][^<>]{0,500}\Z")
_TOKEN = re.compile(r"<[|｜][^<>|｜\n]{1,64}[|｜]>")
_TOKEN_START = re.compile(r"<[|｜][^<>|｜\n]{0,64}[|｜]?\Z")
_ROLE_TOKENS = re.compile(r"<\|(?:im_start|start|channel|start_header_id)\|>", re.IGNORECASE)
_ROLE = re.compile(r"\s?(?:system|user|assistant|tool|developer|final|analysis|commentary)(?!\w)", re.IGNORECASE)
_ROLE_START = re.compile(r"\s?[a-z]{0,12}\Z", re.IGNORECASE)


class Angle(NamedTuple):
    """What ``length`` characters in angle brackets are: ``tag``, ``address``, ``special token`` or ``declaration``."""

    rule: str
    length: int
    name: str = ""
    closing: bool = False

    @property
    def is_block(self) -> bool:
        """A tag that stands like a blank between the words beside it."""
        return self.name in _BLOCK_TAGS


def read_angle(text: str, start: int, before: str, final: bool) -> Angle | Verdict:
    """The tag, autolink or special token that the ``<`` at ``start`` begins. ``before`` is the character in front."""
    following = text[start + 1 : start + 2]
    if not following:
        return Verdict.NO if final else Verdict.MORE
    if following in "|｜":
        return _read_token(text, start, final)
    if following in "!?":
        declaration = _DECLARATION.match(text, start)
        if declaration is not None:
            return Angle("declaration", len(declaration.group()))
        return Verdict.MORE if not final and _DECLARATION_START.match(text, start) else Verdict.NO
    if following not in "/_" and not following.isalnum():
        return Verdict.NO
    for pattern in (_AUTOLINK, _ADDRESS):
        address = pattern.match(text, start)
        if address is not None and (pattern is _ADDRESS or ":" in address[1]):
            return Angle("address", len(address.group()))
    if not final and _AUTOLINK_START.match(text, start):
        return Verdict.MORE
    return _read_tag(text, start, before, final)


def _read_token(text: str, start: int, final: bool) -> Angle | Verdict:
    token = _TOKEN.match(text, start)
    if token is None:
        if _TOKEN_START.match(text, start):
            return Angle("special token", len(text) - start) if final else Verdict.MORE
        return Verdict.NO
    if _ROLE_TOKENS.fullmatch(token.group()):
        role = _ROLE.match(text, token.end())
        if not final and _ROLE_START.match(text, token.end()):
            return Verdict.MORE
        if role is not None:
            return Angle("special token", role.end() - start)
    return Angle("special token", len(token.group()))


def _read_tag(text: str, start: int, before: str, final: bool) -> Angle | Verdict:
    named = _TAG_NAME.match(text, start)
    if named is None:
        return Verdict.MORE if not final and text[start:] == "</" else Verdict.NO
    name = named[2].lower()
    known = name in _BLOCK_TAGS or name in _INLINE_TAGS
    rest = _TAG_REST.match(text, named.end())
    if rest is None:
        if not _TAG_REST_START.match(text, named.end()) or len(text) - start > HTML_CHARS:
            return Verdict.NO
        if not final:
            return Verdict.MORE
        cut = (known and named.end() < len(text)) or (len(name) > 1 and not before.isalnum())
        return Angle("tag", len(text) - start, name) if cut else Verdict.NO
    if not known and before.isalnum() and not named[1] and (name in _TYPES or named[2][0].isupper()):
        return Verdict.NO
    bare = _BOOLEANS.sub("", _QUOTED.sub('""', rest.group()))
    if _HAS_WORD_ATTRIBUTE.search(bare) and not (known and "=" in bare):
        return Verdict.NO
    return Angle("tag", rest.end() - start, name, bool(named[1]))


# Entities.

_ENTITY = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]{1,31}|#\d{1,7}|#[xX][0-9A-Fa-f]{1,6});")
_ENTITY_START = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]{0,31}|#\d{0,7}|#[xX][0-9A-Fa-f]{0,6})?\Z")


def read_entity(text: str, start: int, final: bool) -> tuple[str, int] | Verdict:
    """The character that the entity at ``start`` stands for, and where the entity ends."""
    entity = _ENTITY.match(text, start)
    if entity is not None:
        decoded = unescape(entity.group())
        return Verdict.NO if decoded == entity.group() else (decoded, entity.end())
    return Verdict.MORE if not final and _ENTITY_START.match(text, start) else Verdict.NO


# URLs.

URL_CHARS = 2048
_URL_END = r"\s<>\"`\\^{}|“”‘’«»…—\u2e80-\U0010ffff"
URL_START = re.compile(r"(?<![A-Za-z0-9])(?:https?://|ftp://|www\.)(?=[^\W_]|[\[%_]|\Z)", re.IGNORECASE)
MAY_BECOME_URL = re.compile(
    r"(?<![A-Za-z0-9])(?:h(?:t(?:t(?:p(?:s?(?::/{0,2})?)?)?)?)?|f(?:t(?:p(?::/{0,2})?)?)?|w(?:w(?:w\.?)?)?)\Z",
    re.IGNORECASE,
)
_URL = re.compile(f"[^{_URL_END}]+")
_TRAILING = ".,;:!?'\"*_~-"


def url_tail() -> Element:
    """The rest of a URL that is longer than ``URL_CHARS``."""
    return Element("url", re.compile(f"(?=[{_URL_END}])"))


def url_end(text: str, start: int, final: bool) -> int | Verdict:
    """Where the bare URL at ``start`` ends; marks and brackets that belong to the sentence around it are left out."""
    found = _URL.match(text, start, start + URL_CHARS)
    assert found is not None
    end = found.end()
    if end == len(text) and end - start < URL_CHARS and not final:
        return Verdict.MORE
    if end - start == URL_CHARS:
        return end
    spare = {")": text.count(")", start, end) - text.count("(", start, end)}
    spare["]"] = text.count("]", start, end) - text.count("[", start, end)
    while text[end - 1] in _TRAILING or spare.get(text[end - 1], 0) > 0:
        end -= 1
        if text[end] in spare:
            spare[text[end]] -= 1
    return end
