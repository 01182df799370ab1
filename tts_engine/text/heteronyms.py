"""How a word is used in its sentence, as far as its sound depends on it: noun, verb, past, adjective, pointing word, or sense.

Rules over the neighbouring words: function words and endings to the left and right. The classes are those of
:class:`tts_engine.text.lexicon_en.Word`; ``""`` means the word's default sound.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

_REACH = 24
"""How many words to each side are looked at."""
_DETERMINERS = frozenset(
    "a an the this these those my your his her its our their every each some any no another either neither whose "
    "one's enough several many few both all two three four five six seven eight nine ten".split()
)
_NUMBERS = frozenset("one two three four five six seven eight nine ten twelve fifteen twenty thirty forty fifty sixty ninety hundred".split())
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
_PLURAL_SUBJECTS = frozenset("i you we they who people men women children".split())
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
_DEGREES = frozenset("so very too most more as how quite rather really extremely that such pretty".split())
_ADJECTIVES_BY_DEFAULT = frozenset(["invalid", "upset"])
_BROADCASTS = frozenset(
    "agent agents chat chats show shows music stream streams concert concerts event events tv television audience band "
    "coverage performance performances demo demos update updates video videos data entertainment animals bait wire "
    "ammunition from".split()
)
"""Before these, "live" is the opposite of recorded, or of dead."""
_BROADCASTING = frozenset("go goes going went gone streamed broadcast perform performed played recorded".split())
_SMALL_THINGS = (
    "ence", "ences", "tity", "tities", "ount", "ounts", "detail", "details", "icle", "icles", "ance", "ances", "change",
    "changes", "traces", "fraction", "fractions",
)  # fmt: skip
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
_PAST_CUES = frozenset("yesterday ago was were had did said wrote went came told asked earlier once took got".split())
_VERB_FOLLOWERS = _DETERMINERS | _OBJECTS | frozenset("up down out off away back over around along together again".split())
_ARTICLES = _VERB_FOLLOWERS - frozenset("that this these those some up down out off over around along".split())
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
_TELLING_VERBS = frozenset(
    "tell tells told telling show shows showed remind reminds reminded assure assured convince convinced inform informed warn "
    "warned promise promised teach taught persuade persuaded notify notified".split()
)
_POINTING_VERBS = frozenset(
    "like likes liked love loved hate want wanted need needed get got give gave take took do did does doing done use used "
    "using put hang try tried buy bought read keep kept change changed all just exactly open close call called stop fix".split()
)
_POINTED_AT = frozenset("way one much many kind sort time moment point day night year far simple easy".split())
_QUESTION_WORDS = frozenset("when where why how what who which whom whose often much many long far soon".split())
_ALONG = frozenset("into after off through along around up down across over under behind its his her their".split())
_REPORTING = frozenset("show showed shows indicate indicated suggest suggested reveal revealed say said include included".split())
_PAUSES = frozenset(";:,.!?—…()“”\"")
_AFTER_NOUN = _PAUSES | _PREPOSITIONS | _FINITE | _MODALS | _CONJUNCTIONS | _VERB_FOLLOWERS | _SUBJECT_STARTS | {"to", "that", "which"}


def use_in(words: Sequence[str], index: int, uses: Collection[str]) -> str:
    """Which of ``uses`` word ``index`` of a sentence has; ``""`` for none of them.

    ``words``: the sentence as lower-case words and marks.
    """
    word = words[index]
    if "D" in uses:
        return "D" if _points(words, index) else ""
    if "X" in uses and word in _SENSES and _has_cue(words, index, *_SENSES[word]):
        return "X"
    judge = _JUDGES.get(word)
    use = judge(words, index) if judge is not None else _general_use(words, index, uses)
    return use if use in uses else ""


def _general_use(words: Sequence[str], index: int, uses: Collection[str]) -> str:
    tag = _part_of_speech(words, index, verb_by_default="V" not in uses and "N" in uses)
    if tag in uses or "V" in uses:
        return tag
    # The default is the verb here, or the adjective.
    if tag == "N":
        return "J" if _noun_or_adjective(_word_at(words, index + 1)) == "J" else ""
    left = _word_at(words, _left_of(words, index))
    if tag == "J" and (left in _DETERMINERS or left in _PREPOSITIONS) and words[index] not in _ADJECTIVES_BY_DEFAULT:
        return "N"
    return tag


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
        frozenset("low deep slight polite formal final".split()),
        frozenset("down out before".split()),
        frozenset("curtsy curtain applause ship stern hull audience".split()),
    ),
    "sow": (frozenset(), frozenset(), frozenset("pig pigs piglets piglet boar farmyard".split())),
}


def _has_cue(words: Sequence[str], index: int, before: frozenset[str], after: frozenset[str], around: frozenset[str]) -> bool:
    if _word_at(words, index - 1) in before or _word_at(words, index + 1) in after:
        return True
    return not around.isdisjoint(words[max(0, index - _REACH) : index + _REACH])


def _word_at(words: Sequence[str], index: int) -> str:
    return words[index] if 0 <= index < len(words) else ""


def _left_of(words: Sequence[str], index: int) -> int:
    """The place of the nearest word to the left that is no adverb; -1 at the start."""
    index -= 1
    furthest = index - _REACH
    while index >= max(furthest, 0):
        word = words[index]
        skipped = word in _SKIPPED or (word.endswith("ly") and len(word) > 4)
        if not skipped and not (word in ("all", "each") and _word_at(words, index - 1) in _PLURAL_SUBJECTS):
            break
        index -= 1
    return index


def _part_of_speech(words: Sequence[str], index: int, *, verb_by_default: bool = False) -> str:
    """``N``, ``V``, ``P`` or ``J`` for a word that may be several of them; a doubtful one at a clause's start is as by default."""
    word = words[index]
    at = _left_of(words, index)
    left = _word_at(words, at)
    right = _word_at(words, index + 1)
    if word.endswith("s") and not word.endswith("ss"):
        return _noun_or_third_person(left, right)
    if left == "to":
        return "N" if _word_at(words, at - 1) in _NOUNS_BEFORE_TO and right not in _VERB_FOLLOWERS else "V"
    if left in _MODALS or left in _DO:
        return "V"
    if left in _HAVE:
        return "P" if right not in {"of"} else "N"
    if left in _PLURAL_SUBJECTS or left in ("why", "how") or (left == "better" and _word_at(words, at - 1).endswith("d")):
        return "V"
    if left in _SINGULAR_SUBJECTS:
        return "V" if left not in ("that", "which") or right in _VERB_FOLLOWERS else "N"
    if left in _BE or _word_at(words, index - 1) in _DEGREES - {"that", "such"}:
        return "J"
    if left in _DETERMINERS or left.endswith("'s"):
        return _noun_or_adjective(right)
    if left in _PREPOSITIONS:
        return _noun_or_adjective(right)
    if left in _ADJECTIVES or left.endswith(_ADJECTIVE_ENDINGS) or (left.endswith("ing") and right not in _ARTICLES):
        return "N"
    starts = not left or left in _PAUSES
    if starts or left in _CONJUNCTIONS:
        if right in _VERB_FOLLOWERS or (verb_by_default and starts and right and right not in _AFTER_NOUN):
            return "V"
        return _noun_or_adjective(right) if starts else "N"
    if left in _OBJECTS:
        return "V"
    plural = left.endswith("s") and not left.endswith(("ss", "'s"))
    if right in _ARTICLES or (plural and right and right not in _PAUSES and right not in ("of", "that")):
        return "V"
    return "V" if _is_inverted(words, at, _DO | _MODALS) else "N"


def _is_inverted(words: Sequence[str], last: int, auxiliaries: Collection[str]) -> bool:
    """Whether words up to ``last`` end in an auxiliary and a short subject, as in a question: "when does the museum"."""
    for place in range(last, max(last - 5, -1), -1):
        word = words[place]
        if word in auxiliaries:
            before = _word_at(words, place - 1)
            return place < last and (not before or before in _PAUSES or before in _QUESTION_WORDS or before in _CONJUNCTIONS)
        if word in _PAUSES or word in _PREPOSITIONS or word == "to":
            return False
    return False


def _noun_or_adjective(right: str) -> str:
    """For the place after a determiner: an adjective where a word of content follows."""
    return "N" if not right or right in _AFTER_NOUN else "J"


def _noun_or_third_person(left: str, right: str) -> str:
    if left in _SINGULAR_SUBJECTS:
        return "V"
    if left in _DETERMINERS or left in _PREPOSITIONS or left == "to" or not left or left in _PAUSES or left in _CONJUNCTIONS:
        return "N"
    if right.endswith("ly"):
        return "V"
    if left in _ADJECTIVES or left.endswith(_ADJECTIVE_ENDINGS):
        return "N"
    if right in _VERB_FOLLOWERS or right in ("in", "on", "at", "here", "there", "with", "very", "well"):
        return "V"
    return "V" if right and right not in _AFTER_NOUN and right not in _REPORTING else "N"


def _is_attributive(words: Sequence[str], index: int) -> bool:
    """Whether the word stands as an adjective before a noun: "a learned judge"."""
    left, right = _word_at(words, index - 1), _word_at(words, index + 1)
    before = left in _DETERMINERS or left in _ADJECTIVES or left in _DEGREES or left in _PREPOSITIONS
    return before and _noun_or_adjective(right) == "J"


def _use_of_read(words: Sequence[str], index: int) -> str:
    at = _left_of(words, index)
    left = _word_at(words, at)
    if left == "to" or left in _MODALS or left in _DO:
        return ""
    if left in _HAVE or left in _BE or left in ("he", "she", "it", "who") or _is_inverted(words, at, _HAVE):
        return "P"
    if _is_inverted(words, at, _DO | _MODALS):
        return ""
    if left in _PLURAL_SUBJECTS or left in _CONJUNCTIONS or left in _PAUSES or not left or left.endswith("s"):
        told_before = any(word in _PAST_CUES or (word.endswith("ed") and len(word) > 4) for word in words[max(0, index - _REACH) : index])
        around = words[max(0, index - _REACH) : index + _REACH]
        return "P" if told_before or _word_at(words, index - 1) == "just" or "yesterday" in around or "ago" in around else ""
    return "" if left in _DETERMINERS or left in _PREPOSITIONS or left in _OBJECTS else "P"


def _use_of_close(words: Sequence[str], index: int) -> str:
    left, right = _word_at(words, index - 1), _word_at(words, index + 1)
    if left in _DEGREES or left in _BE or right in ("together", "enough"):
        return ""
    tag = _part_of_speech(words, index)
    if tag == "N":
        return "N" if left in ("the", "a") and (not right or right in _PAUSES or right == "of") else ""
    return tag if right != "to" or left == "to" or left in _MODALS else ""


def _use_of_live(words: Sequence[str], index: int) -> str:
    left, right = _word_at(words, _left_of(words, index)), _word_at(words, index + 1)
    if left == "to" or left in _MODALS or left in _DO or left in _PLURAL_SUBJECTS:
        return "V"
    if left in _DETERMINERS or left in _BE or left in _BROADCASTING or right in _BROADCASTS or right.endswith("ing"):
        return ""
    return "" if left in _PREPOSITIONS else "V"


def _use_of_used(words: Sequence[str], index: int) -> str:
    """``P`` in "used to go" and "get used to it", not in "is used to cut"."""
    if _word_at(words, index + 1) != "to":
        return ""
    left, after = _word_at(words, _left_of(words, index)), _word_at(words, index + 2)
    if left in ("is", "are", "was", "were", "be", "been", "being"):
        return "P" if after.endswith("ing") or after in _DETERMINERS or after in _OBJECTS or after in _ADJECTIVES else ""
    return "P"


def _use_of_minute(words: Sequence[str], index: int) -> str:
    left, right = _word_at(words, index - 1), _word_at(words, index + 1)
    if left in _DEGREES and left not in ("as", "more", "how"):
        return "J"
    return "J" if right.endswith(_SMALL_THINGS) and left not in _NUMBERS else ""


def _use_of_wound(words: Sequence[str], index: int) -> str:
    if _moves_along(words, index):
        return "P"
    tag = _part_of_speech(words, index)
    return "P" if tag in ("V", "P") and _word_at(words, _left_of(words, index)) not in (_MODALS | {"to"}) else ""


def _use_of_dove(words: Sequence[str], index: int) -> str:
    return "V" if _moves_along(words, index) else _part_of_speech(words, index)


def _moves_along(words: Sequence[str], index: int) -> bool:
    """Whether a noun or pronoun stands before the word and a way after it: "the path wound up the hill"."""
    left = _word_at(words, _left_of(words, index))
    bound = left in _DETERMINERS or left in _ADJECTIVES or left in _PREPOSITIONS or left in _PAUSES or not left
    return not bound and _word_at(words, index + 1) in _ALONG


def _use_of_subject(words: Sequence[str], index: int) -> str:
    tag = _part_of_speech(words, index)
    left = _word_at(words, _left_of(words, index))
    if _word_at(words, index + 1) == "to" and left != "to" and left not in _MODALS:
        return ""
    return tag


def _use_before_noun(words: Sequence[str], index: int) -> str:
    return "J" if _is_attributive(words, index) else ""


def _use_of_closer(words: Sequence[str], index: int) -> str:
    right = _word_at(words, index + 1)
    return "N" if _word_at(words, index - 1) in ("the", "a") and right in _FINITE else ""


_JUDGES: dict[str, Callable[[Sequence[str], int], str]] = {
    "read": _use_of_read,
    "reread": _use_of_read,
    "close": _use_of_close,
    "closer": _use_of_closer,
    "live": _use_of_live,
    "used": _use_of_used,
    "minute": _use_of_minute,
    "wound": _use_of_wound,
    "dove": _use_of_dove,
    "subject": _use_of_subject,
    "learned": _use_before_noun,
    "blessed": _use_before_noun,
    "aged": _use_before_noun,
    "inside": _use_before_noun,
    "nearby": _use_before_noun,
    "unlearned": _use_before_noun,
}


def _points(words: Sequence[str], index: int) -> bool:
    """Whether "that" points ("that book", "I like that") and does not join clauses."""
    left, right = _word_at(words, index - 1), _word_at(words, index + 1)
    if words[index] == "that's":
        return not left or left in _PAUSES or left in _CONJUNCTIONS or left in _CLAUSE_VERBS
    if not right or right in ".!?…":
        return True
    if right in _PAUSES:
        return left not in _CLAUSE_VERBS or left in ("is", "was", "but", "in")
    if not left or left in _PAUSES:
        return right not in _SUBJECT_STARTS and (left not in (",", ";") or right not in _FINITE)
    if left in _POINTING_VERBS or (left in _PREPOSITIONS and left not in ("in", "than", "except")):
        return right not in _SUBJECT_STARTS
    if right in _POINTED_AT:
        return True
    if right in _SUBJECT_STARTS:
        return False
    if left == "in":
        return True
    if left in _OBJECTS:
        return _word_at(words, index - 2) not in _TELLING_VERBS
    if right in _FINITE or right in _MODALS or right.endswith("ly"):
        return left in _CONJUNCTIONS or left in ("if", "because", "when", "is", "was", "what", "how", "why")
    return left in _CONJUNCTIONS and right not in _MODALS and left != "or"
