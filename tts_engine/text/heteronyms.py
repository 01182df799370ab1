"""How a word is used in its sentence, as far as its sound depends on it: noun, verb, past, adjective, pointing word, or sense.

Rules over the neighbouring words: function words and endings to the left and right. The classes are those of
:class:`tts_engine.text.lexicon_en.Word`; ``""`` means the word's default sound.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

_DETERMINERS = frozenset(
    "a an the this these those my your his her its our their every each some any no another either neither whose "
    "one's enough several many few both all two three four five six seven eight nine ten".split()
)
_MODALS = frozenset(
    "will would can could shall should may might must cannot can't won't couldn't wouldn't shouldn't mustn't "
    "i'll you'll he'll she'll it'll we'll they'll i'd you'd he'd she'd we'd they'd let's gonna wanna gotta ought".split()
)
_DO = frozenset("do does did don't doesn't didn't".split())
_BE = frozenset(
    "be am is are was were been being isn't aren't wasn't weren't i'm you're he's she's it's we're they're that's there's "
    "get gets got getting become becomes became seem seems seemed feel feels felt look looks looked stay stays stayed "
    "remain remains remained sound sounds sounded".split()
)
_HAVE = frozenset("have has had having haven't hasn't hadn't i've you've we've they've who've could've would've should've".split())
_PLURAL_SUBJECTS = frozenset("i you we they who people".split())
_SINGULAR_SUBJECTS = frozenset(
    "he she it everyone everybody someone somebody anyone anybody nobody everything something nothing that which".split()
)
_OBJECTS = frozenset("me you him her it us them this that these those myself yourself himself herself itself everything anything".split())
_PREPOSITIONS = frozenset(
    "of in on at by for with from into onto about over under between through during without within against among across "
    "after before behind beyond near per than as via toward towards upon until since like despite except".split()
)
_SKIPPED = frozenset(
    "not never always often also just really still ever even only then sometimes usually rarely seldom soon already "
    "please so very too quite rather n't both".split()
)
_CONJUNCTIONS = frozenset("and or but nor".split())
_NOUNS_BEFORE_TO = frozenset(
    "due according prior subject thanks access response addition reference relation regard contrary owing similar close "
    "back opposed lead leads led leading key answer next switch switched return returned limited used".split()
)
"""After these, "to" is a preposition: a noun follows."""
_ADJECTIVES = frozenset(
    "new old good bad big small great high low long short main own same other last next first second third full free "
    "fresh final total public real whole best worst better more less most common recent present current modern sharp "
    "major minor poor rich hard soft strong weak deep front parking world fishing white black red blue green "
    "pay sales merge video code child drug land data time parking internal external only".split()
)
_ADJECTIVE_ENDINGS = ("al", "ous", "ive", "ful", "less", "able", "ible", "ic", "ary", "ish", "ical")
_PAST_CUES = frozenset(
    "yesterday ago last was were had did said wrote went came told asked earlier once when then before after".split()
)
_VERB_FOLLOWERS = _DETERMINERS | _OBJECTS | frozenset("up down out off away back over around along together again".split())
_CLAUSE_VERBS = frozenset(
    "think thinks thought say says said know knows knew believe believes believed hope hopes hoped see sees saw mean means "
    "meant tell tells told feel feels felt find finds found show shows showed shown suggest suggests suggested require "
    "requires required ensure ensures make sure certain glad sorry afraid aware happy so such fact idea now given provided "
    "assume assumes assumed claim claims claimed notice noticed realize realized understand understood remember suspect "
    "suspects agree agreed argue argued explain explained learn learned note noted admit admitted guess wish is was but "
    "and or except in me you him her us them discovered concluded reported announced decided doubt confirm check".split()
)
_FINITE = frozenset(
    "is was are were has had have will would can could should may might must does did do isn't wasn't doesn't didn't won't "
    "can't means meant makes made seems seemed looks looked sounds sounded works worked happens happened".split()
)
_SUBJECT_STARTS = frozenset(
    "i you he she it we they there the a an this these those my your his her its our their if when what people who one some "
    "all each every no i'm you're he's she's it's we're they're i've you've we've they've i'll you'll he'll she'll".split()
)
_PAUSES = frozenset(";:,.!?—…()“”\"")


def use_in(words: Sequence[str], index: int, uses: Collection[str]) -> str:
    """Which of ``uses`` word ``index`` of a sentence has; ``""`` for none of them.

    ``words``: the sentence as lower-case words and marks.
    """
    word = words[index]
    if "D" in uses:
        return "D" if _points(words, index) else ""
    tag = _part_of_speech(words, index)
    if word in _SENSES and "X" in uses and _has_cue(words, index, *_SENSES[word]):
        return "X"
    if tag == "V" and "P" in uses and word in ("read", "reread") and not _is_past(words, index):
        return ""
    if tag == "V" and word == "wound" and "P" in uses:
        return "P"
    if word == "used":
        return "P" if _is_habit(words, index) else ""
    if word == "minute":
        return "J" if _is_tiny(words, index) else ""
    if tag == "J" and "J" not in uses:
        return ""
    return tag if tag in uses else ""


def is_pointed_at(words: Sequence[str], index: int) -> bool:
    """Whether a determiner stands before the word, so that it is a noun."""
    return _word_at(words, index - 1) in _DETERMINERS


# Word with a rarer sense: words that show it when they stand next before, next after, anywhere in the sentence.
_SENSES: dict[str, tuple[frozenset[str], frozenset[str], frozenset[str]]] = {
    "lead": (
        frozenset("of with molten liquid contains containing".split()),
        frozenset("pipe pipes paint poisoning sheet sheets pencil pencils bullet bullets acid batteries battery content levels "
                  "exposure shot weights solder ore mine crystal singer".split()) - {"singer"},
        frozenset("metal zinc copper tin mercury toxic heavy-metal arsenic cadmium".split()),
    ),
    "row": (
        frozenset("terrible huge blazing big fierce furious diplomatic".split()),
        frozenset("erupted broke".split()),
        frozenset("quarrel argument neighbours neighbors shouting argued".split()),
    ),
    "rows": (frozenset("terrible constant family".split()), frozenset(), frozenset("quarrel quarrels arguments".split())),
    "bass": (
        frozenset("sea striped largemouth smallmouth freshwater grilled fried caught catch".split()),
        frozenset("fishing boat".split()),
        frozenset("fish fishing lake river caught catch trout angler".split()),
    ),
    "does": (frozenset("two three four some many female".split()), frozenset(), frozenset("stag stags bucks fawn fawns deer".split())),
    "bow": (
        frozenset("low".split()),
        frozenset("down out before".split()),
        frozenset("curtsy curtain applause ship stern hull audience".split()),
    ),
    "sow": (frozenset(), frozenset(), frozenset("pig pigs piglets piglet boar farmyard".split())),
}


def _has_cue(words: Sequence[str], index: int, before: frozenset[str], after: frozenset[str], around: frozenset[str]) -> bool:
    return _word_at(words, index - 1) in before or _word_at(words, index + 1) in after or not around.isdisjoint(words)


def _word_at(words: Sequence[str], index: int) -> str:
    return words[index] if 0 <= index < len(words) else ""


def _left_of(words: Sequence[str], index: int) -> int:
    """The place of the nearest word to the left that is no adverb; -1 at the start."""
    index -= 1
    while index >= 0 and (words[index] in _SKIPPED or (words[index].endswith("ly") and len(words[index]) > 4)):
        index -= 1
    return index


def _part_of_speech(words: Sequence[str], index: int) -> str:
    """``N``, ``V``, ``P`` or ``J`` for a word that may be several of them."""
    word = words[index]
    at = _left_of(words, index)
    left = _word_at(words, at)
    right = _word_at(words, index + 1)
    if word.endswith("s") and not word.endswith("ss"):
        return _noun_or_third_person(words, at, left, right)
    if left == "to":
        return "N" if _word_at(words, at - 1) in _NOUNS_BEFORE_TO and right not in _VERB_FOLLOWERS else "V"
    if left in _MODALS or left in _DO:
        return "V"
    if left in _HAVE:
        return "P" if right not in {"of"} else "N"
    if left in _PLURAL_SUBJECTS:
        return "V"
    if left in _SINGULAR_SUBJECTS:
        return "V" if left not in ("that", "which") or right in _VERB_FOLLOWERS else "N"
    if left in _BE:
        return "J"
    if left in _DETERMINERS or left.endswith("'s"):
        return _noun_or_adjective(right)
    if left in _PREPOSITIONS:
        return _noun_or_adjective(right)
    if left in _ADJECTIVES or left.endswith(_ADJECTIVE_ENDINGS):
        return "N"
    if not left or left in _PAUSES:
        return "V" if right in _VERB_FOLLOWERS else _noun_or_adjective(right)
    if left in _CONJUNCTIONS:
        return "V" if right in _VERB_FOLLOWERS else "N"
    if left in _OBJECTS:
        return "V"
    if right in _VERB_FOLLOWERS or (left.endswith("s") and not left.endswith("ss") and right not in _PAUSES and right != "of"):
        return "V"
    return "N"


def _noun_or_adjective(right: str) -> str:
    if not right or right in _PAUSES or right in _PREPOSITIONS or right in _FINITE or right in _CONJUNCTIONS or right == "to":
        return "N"
    return "J"


def _noun_or_third_person(words: Sequence[str], at: int, left: str, right: str) -> str:
    if left in _SINGULAR_SUBJECTS:
        return "V"
    if left in _DETERMINERS or left in _PREPOSITIONS or left in _ADJECTIVES or left.endswith(_ADJECTIVE_ENDINGS) or left == "to":
        return "N"
    if not left or left in _PAUSES or left in _CONJUNCTIONS:
        return "N"
    if right in _VERB_FOLLOWERS or right in ("in", "on", "at", "here", "there", "with", "very", "well") or right.endswith("ly"):
        return "V"
    return "N"


def _is_past(words: Sequence[str], index: int) -> bool:
    """Whether "read" is past or a participle."""
    at = _left_of(words, index)
    left = _word_at(words, at)
    if left in _HAVE or left in _BE or left in ("he", "she", "it"):
        return True
    return any(word in _PAST_CUES for word in words)


def _is_habit(words: Sequence[str], index: int) -> bool:
    """Whether "used" is that of "used to go" or "get used to it", and not "is used to cut"."""
    if _word_at(words, index + 1) != "to":
        return False
    left = _word_at(words, _left_of(words, index))
    after = _word_at(words, index + 2)
    if left in ("is", "are", "was", "were", "be", "been", "being"):
        return after.endswith("ing") or after in _DETERMINERS or after in _OBJECTS
    return True


def _is_tiny(words: Sequence[str], index: int) -> bool:
    left, right = _word_at(words, index - 1), _word_at(words, index + 1)
    if left in ("so", "very", "most", "too", "extremely", "such"):
        return True
    return left in ("a", "the", "these", "in", "only", "of") and right.endswith(
        ("ence", "ences", "tity", "tities", "ount", "ounts", "detail", "details", "icle", "icles", "ance", "changes", "traces")
    )


def _points(words: Sequence[str], index: int) -> bool:
    """Whether "that" points ("that book", "I like that") and does not join clauses."""
    left, right = _word_at(words, index - 1), _word_at(words, index + 1)
    if not right or right in _PAUSES:
        return True
    if not left or left in _PAUSES:
        return right not in _SUBJECT_STARTS
    if right in _SUBJECT_STARTS:
        return False
    if left in _PREPOSITIONS and left != "in":
        return True
    if right in _FINITE or right in _MODALS or right.endswith("ly"):
        return left in _CONJUNCTIONS or left in ("if", "because", "when", "is", "was", "what", "how", "why")
    if left in _CLAUSE_VERBS:
        return False
    return left.endswith("e") or left in ("hang", "want", "need", "do", "did", "got", "get", "put", "at", "all")
