"""English words made of known ones: endings, possessives, prefixes and compounds, with the sound that the joint has.

The endings -s, -ed and -ing follow the rules of misaki (Apache-2.0), whose lexicon they extend.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from tts_engine.text.lexicon_en import LONGEST_WORD, Word, lexicon
from tts_engine.text.phonemes import PRIMARY, demoted

Find = Callable[[str], Word | None]

_DEEPEST = 3
"""Most endings that are taken off one after another (use-less-ness-es has three)."""
_FLAPPING = frozenset("AIOWYiuæɑəɛɪɹʊʌ")
_USES_WITH_ENDING = frozenset("NVPX")
_SIBILANTS = frozenset("szʃʒʧʤ")
_VOICELESS = frozenset("ptkfθ")
_DOUBLED = frozenset("bcdgklmnprstvxz")
_SHORT_AND_OPEN = re.compile(r"[^aeiouy]*(?:qu)?[aeiouy][bcdgklmnprstvz]")

# Ending, its sound; longest first where one ends another.
_CONSONANT_ENDINGS = (
    ("'s", ""),
    ("fulness", "fᵊlnəs"),
    ("lessness", "ləsnəs"),
    ("ness", "nəs"),
    ("less", "ləs"),
    ("fully", "fᵊli"),
    ("ful", "fᵊl"),
    ("ment", "mənt"),
    ("ship", "ʃˌɪp"),
    ("hood", "hˌʊd"),
    ("like", "lˌIk"),
    ("wise", "wˌIz"),
    ("ware", "wˌɛɹ"),
    ("proof", "pɹˌuf"),
    ("most", "mˌOst"),
    ("ward", "wəɹd"),
    ("wards", "wəɹdz"),
    ("some", "səm"),
    ("ly", "li"),
)
_VOWEL_ENDINGS = (
    ("ability", "əbˌɪləTi"),
    ("able", "əbᵊl"),
    ("ably", "əbli"),
    ("izing", "ˌIzɪŋ"),
    ("ized", "ˌIzd"),
    ("izer", "ˌIzəɹ"),
    ("ize", "ˌIz"),
    ("ising", "ˌIzɪŋ"),
    ("ised", "ˌIzd"),
    ("ise", "ˌIz"),
    ("ism", "ˌɪzəm"),
    ("ist", "ɪst"),
    ("ish", "ɪʃ"),
    ("est", "ᵻst"),
    ("er", "əɹ"),
    ("or", "əɹ"),
    ("y", "i"),
)
# Prefixes that keep their sound before whatever word follows; those that often change it are left to letter-to-sound.
_PREFIXES = (
    ("counter", "kˌWntəɹ"),
    ("hyper", "hˌIpəɹ"),
    ("inter", "ˌɪntəɹ"),
    ("intra", "ˌɪntɹə"),
    ("macro", "mˌækɹO"),
    ("micro", "mˌIkɹO"),
    ("multi", "mˌʌlti"),
    ("neuro", "nˌʊɹO"),
    ("super", "sˌupəɹ"),
    ("ultra", "ˌʌltɹə"),
    ("under", "ˌʌndəɹ"),
    ("cyber", "sˌIbəɹ"),
    ("fore", "fˌɔɹ"),
    ("mega", "mˌɛɡə"),
    ("meta", "mˌɛTə"),
    ("mini", "mˌɪni"),
    ("nano", "nˌænO"),
    ("over", "ˌOvəɹ"),
    ("post", "pˌOst"),
    ("bio", "bˌIO"),
    ("mid", "mˌɪd"),
    ("mis", "mˌɪs"),
    ("non", "nˌɑn"),
    ("out", "ˌWt"),
    ("pre", "pɹi"),
    ("sub", "sˌʌb"),
    ("re", "ɹi"),
    ("un", "ˌʌn"),
    ("up", "ˌʌp"),
)
_SHORTEST_REST = 4
_SHORTEST_PART = 5
"""With shorter parts a split is wrong more often than letter-to-sound is."""


def plural(sound: str) -> str:
    """With -s or 's."""
    if not sound:
        return ""
    if sound[-1] in _VOICELESS:
        return sound + "s"
    return sound + ("ᵻz" if sound[-1] in _SIBILANTS else "z")


def past(sound: str) -> str:
    """With -ed."""
    if not sound:
        return ""
    if sound[-1] in "pkfθʃsʧ":
        return sound + "t"
    if sound[-1] == "d":
        return sound + "ᵻd"
    return before_vowel(sound) + "ᵻd" if sound[-1] == "t" else sound + "d"


def progressive(sound: str) -> str:
    """With -ing."""
    return before_vowel(sound) + "ɪŋ" if sound else ""


def before_vowel(sound: str) -> str:
    """A final t after a vowel or r is flapped before an ending that begins with a vowel."""
    if len(sound) > 1 and sound[-1] == "t" and sound[-2] in _FLAPPING:
        return sound[:-1] + "T"
    return sound


def derive(word: str, find: Find) -> Word | None:
    """The sound of ``word`` (lower case) from words that ``find`` knows: by endings, prefix, or as a compound."""
    if len(word) > LONGEST_WORD:
        return None
    return inflected(word, find) or _prefixed(word, find) or _compound(word, find)


def is_word(word: str) -> bool:
    """Whether ``word`` (lower case) is English: in the lexicon, or with an ending."""
    find = lexicon().find
    return find(word) is not None or inflected(word, find) is not None


def inflected(word: str, find: Find, depth: int = 0) -> Word | None:
    """The sound of ``word`` as a known word with endings; the nearest reading wins, at most three endings deep."""
    if depth == _DEEPEST:
        return None

    def known(stem: str) -> Word | None:
        return find(stem) or inflected(stem, find, depth + 1)

    for stems, sound_of in _endings(word):
        for stem in stems:
            if len(stem) > 1 and (found := known(stem)) is not None:
                return _with_ending(found, sound_of)
    return None


def each_form(word: Word, change: Callable[[str], str]) -> Word:
    """The word with ``change`` applied to the sound of each use."""
    return Word(change(word.default), {use: change(sound) for use, sound in word.forms.items()})


def _with_ending(word: Word, change: Callable[[str], str]) -> Word:
    """The same, for an ending: it leaves nouns, verbs and senses apart, and nothing else."""
    return Word(change(word.default), {use: change(sound) for use, sound in word.forms.items() if use in _USES_WITH_ENDING})


def _endings(word: str) -> Iterator[tuple[tuple[str, ...], Callable[[str], str]]]:
    if word.endswith("s") and len(word) > 2:
        if word.endswith("'s"):
            yield (word[:-2],), plural
        elif not word.endswith("ss"):
            yield (word[:-1],), plural
            if len(word) > 4 and word.endswith("ies"):
                yield (word[:-3] + "y",), plural
            elif len(word) > 4 and word.endswith("es"):
                yield (word[:-2],), plural
    elif word.endswith("s'"):
        yield (word[:-1], word[:-2]), lambda sound: sound if sound[-1:] in _SIBILANTS else plural(sound)
    elif word.endswith("'"):
        yield (word[:-1],), lambda sound: sound
    elif word.endswith("'d"):
        yield (word[:-2],), lambda sound: sound + "d"
    elif word.endswith("'ll"):
        yield (word[:-3],), lambda sound: sound + "ᵊl"
    elif word.endswith("'ve"):
        yield (word[:-3],), lambda sound: sound + "əv"
    elif word.endswith("d") and len(word) > 3:
        if word.endswith("ied"):
            yield (word[:-3] + "y",), past
        elif word.endswith("ed"):
            yield (word[:-1], *_stems(word[:-2])), past
    elif word.endswith("ing") and len(word) > 4:
        yield _stems(word[:-3]), progressive
    if len(word) < 5:
        return
    for ending, sound in _CONSONANT_ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            yield from _before_consonant(word[: -len(ending)], ending, sound)
            break
    for ending, sound in _VOWEL_ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            yield _stems(word[: -len(ending)]), _adding(sound)


def _stems(base: str) -> tuple[str, ...]:
    """What a word without an ending that begins with a vowel may be: bak(ing) bake, runn(ing) run, walk(ing) walk."""
    stems = [base, base + "e"]
    if _SHORT_AND_OPEN.fullmatch(base):  # dat(ing) is of date: dat would double its t
        stems.reverse()
    if len(base) > 2 and base[-1] == base[-2] and base[-1] in _DOUBLED:
        stems.append(base[:-1])
    if base.endswith("ck"):
        stems.append(base[:-1])
    if base.endswith("i"):
        stems.append(base[:-1] + "y")
    return tuple(stem for stem in stems if len(stem) > 1)


def _before_consonant(base: str, ending: str, sound: str) -> Iterator[tuple[tuple[str, ...], Callable[[str], str]]]:
    if ending != "ly":
        yield (base,), lambda stem: stem + sound
        if base.endswith("i"):
            yield (base[:-1] + "y",), lambda stem: stem + sound
        return
    yield (base,), lambda stem: stem + "i" if stem.endswith("l") else stem + sound
    if base.endswith("i"):
        yield (base[:-1] + "y",), lambda stem: stem[:-1] + "ə" + sound if stem.endswith("i") else stem + sound
    if base.endswith("al"):
        yield (base[:-2],), lambda stem: stem + "ᵊli"
    yield (base + "le",), lambda stem: stem.removesuffix("ᵊl").removesuffix("əl").removesuffix("l") + sound


def _adding(sound: str) -> Callable[[str], str]:
    return lambda stem: before_vowel(stem) + sound


def _prefixed(word: str, find: Find) -> Word | None:
    for prefix, sound in _PREFIXES:
        rest = word[len(prefix) :]
        if (
            word.startswith(prefix)
            and len(rest) >= _SHORTEST_REST
            and (found := find(rest) or inflected(rest, find)) is not None
        ):
            return each_form(found, lambda stem, sound=sound: sound + stem)  # type: ignore[misc]
    return None


def _compound(word: str, find: Find) -> Word | None:
    """The most even split into two words that both carry stress; the second is said with less."""
    cuts = range(_SHORTEST_PART, len(word) - _SHORTEST_PART + 1)
    for cut in sorted(cuts, key=lambda cut: abs(len(word) - 2 * cut)):
        first, second = find(word[:cut]), find(word[cut:])
        if first is not None and second is not None and PRIMARY in first.default and PRIMARY in second.default:
            return Word(first.default + demoted(second.default))
    return None
