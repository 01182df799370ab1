"""How a word is used in its sentence, as far as its sound depends on it: noun, verb, past, adjective, pointer or sense.

Rules over the neighbouring words: function words and endings to the left and right, from the lists of
``data/heteronyms_en.json``. The classes are those of :class:`tts_engine.text.lexicon_en.Word`; ``""`` means the word's
default sound.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from tts_engine.text.heteronym_lists import Sense, lists

_REACH = 24
"""How many words to each side are looked at."""


def use_in(words: Sequence[str], index: int, uses: Collection[str]) -> str:
    """Which of ``uses`` word ``index`` of a sentence has; ``""`` for none of them.

    ``words``: the sentence as lower-case words and marks.
    """
    word = words[index]
    if "D" in uses:
        return "D" if _points(words, index) else ""
    if "X" in uses and word in lists().senses and _has_cue(words, index, lists().senses[word]):
        return "X"
    judge = _JUDGES.get(word)
    use = judge(words, index) if judge is not None else _general_use(words, index, uses)
    return use if use in uses else ""


def _general_use(words: Sequence[str], index: int, uses: Collection[str]) -> str:
    known = lists()
    tag = _part_of_speech(words, index, verb_by_default="V" not in uses and "N" in uses)
    if tag in uses or "V" in uses:
        return tag
    # The default is the verb here, or the adjective.
    if tag == "N":
        return "J" if _noun_or_adjective(_word_at(words, index + 1)) == "J" else ""
    left = _word_at(words, _left_of(words, index))
    if (
        tag == "J"
        and (left in known.determiners or left in known.prepositions)
        and words[index] not in known.adjectives_by_default
    ):
        return "N"
    return tag


def is_pointed_at(words: Sequence[str], index: int) -> bool:
    """Whether a determiner stands before the word, so that it is a noun."""
    known = lists()
    return _word_at(words, index - 1) in known.determiners


def _has_cue(words: Sequence[str], index: int, sense: Sense) -> bool:
    if _word_at(words, index - 1) in sense.before or _word_at(words, index + 1) in sense.after:
        return True
    return not sense.around.isdisjoint(words[max(0, index - _REACH) : index + _REACH])


def _word_at(words: Sequence[str], index: int) -> str:
    return words[index] if 0 <= index < len(words) else ""


def _left_of(words: Sequence[str], index: int) -> int:
    """The place of the nearest word to the left that is no adverb; -1 at the start."""
    known = lists()
    index -= 1
    furthest = index - _REACH
    while index >= max(furthest, 0):
        word = words[index]
        skipped = word in known.skipped or (word.endswith("ly") and len(word) > 4)
        if not skipped and not (word in ("all", "each") and _word_at(words, index - 1) in known.plural_subjects):
            break
        index -= 1
    return index


def _part_of_speech(words: Sequence[str], index: int, *, verb_by_default: bool = False) -> str:
    """``N``, ``V``, ``P`` or ``J`` for a word that may be several; a doubtful one at a clause start is the default."""
    known = lists()
    word = words[index]
    at = _left_of(words, index)
    left = _word_at(words, at)
    right = _word_at(words, index + 1)
    if word.endswith("s") and not word.endswith("ss"):
        return _noun_or_third_person(left, right)
    if left == "to":
        return "N" if _word_at(words, at - 1) in known.nouns_before_to and right not in known.verb_followers else "V"
    if left in known.modals or left in known.do:
        return "V"
    if left in known.have:
        return "P" if right not in {"of"} else "N"
    if left in known.plural_subjects or left in ("why", "how") or (left == "better" and _word_at(words, at - 1).endswith("d")):
        return "V"
    if left in known.singular_subjects:
        return "V" if left not in ("that", "which") or right in known.verb_followers else "N"
    if left in known.be or _word_at(words, index - 1) in known.degrees - {"that", "such"}:
        return "J"
    if left in known.determiners or left.endswith("'s"):
        return _noun_or_adjective(right)
    if left in known.prepositions:
        return _noun_or_adjective(right)
    if (
        left in known.adjectives
        or left.endswith(known.adjective_endings)
        or (left.endswith("ing") and right not in known.sure_verb_followers)
    ):
        return "N"
    starts = not left or left in known.pauses
    if starts or left in known.conjunctions:
        if right in known.verb_followers or (verb_by_default and starts and right and right not in known.after_noun):
            return "V"
        return _noun_or_adjective(right) if starts else "N"
    if left in known.objects:
        return "V"
    if right in known.sure_verb_followers:
        return "V"
    if right and right not in known.pauses and right not in ("of", "that") and _is_plural(words, at):
        return "V"
    return "V" if _is_inverted(words, at, known.do | known.modals) else "N"


def _is_plural(words: Sequence[str], at: int) -> bool:
    """Whether word ``at`` is a plural noun, and no verb after its subject: "metals", not "the price includes"."""
    known = lists()
    if not words[at].endswith("s") or words[at].endswith(("ss", "'s")):
        return False
    before = _word_at(words, at - 1)
    return not before or before in known.after_noun or before in known.adjectives or before.endswith(known.adjective_endings)


def _is_inverted(words: Sequence[str], last: int, auxiliaries: Collection[str]) -> bool:
    """Whether words up to ``last`` end in an auxiliary and a short subject, as in "when does the museum"."""
    known = lists()
    for place in range(last, max(last - 5, -1), -1):
        word = words[place]
        if word in auxiliaries:
            before = _word_at(words, place - 1)
            return place < last and (
                not before or before in known.pauses or before in known.question_words or before in known.conjunctions
            )
        if word in known.pauses or word in known.prepositions or word == "to":
            return False
    return False


def _noun_or_adjective(right: str) -> str:
    """For the place after a determiner: an adjective where a word of content follows."""
    known = lists()
    return "N" if not right or right in known.after_noun else "J"


def _noun_or_third_person(left: str, right: str) -> str:
    known = lists()
    if left in known.singular_subjects:
        return "V"
    if (
        left in known.determiners
        or left in known.prepositions
        or left == "to"
        or not left
        or left in known.pauses
        or left in known.conjunctions
    ):
        return "N"
    if right.endswith("ly"):
        return "V"
    if left in known.adjectives or left.endswith(known.adjective_endings):
        return "N"
    if right in known.verb_followers or right in ("in", "on", "at", "here", "there", "with", "very", "well"):
        return "V"
    return "V" if right and right not in known.after_noun and right not in known.reporting else "N"


def _is_attributive(words: Sequence[str], index: int) -> bool:
    """Whether the word stands as an adjective before a noun: "a learned judge"."""
    known = lists()
    left, right = _word_at(words, index - 1), _word_at(words, index + 1)
    before = left in known.determiners or left in known.adjectives or left in known.degrees or left in known.prepositions
    return before and _noun_or_adjective(right) == "J"


def _use_of_read(words: Sequence[str], index: int) -> str:
    known = lists()
    at = _left_of(words, index)
    left = _word_at(words, at)
    if left == "to" or left in known.modals or left in known.do:
        return ""
    if left in known.have or left in known.be or left in ("he", "she", "it", "who") or _is_inverted(words, at, known.have):
        return "P"
    if _is_inverted(words, at, known.do | known.modals):
        return ""
    if left in known.plural_subjects or left in known.conjunctions or left in known.pauses or not left or left.endswith("s"):
        told_before = any(
            word in known.past_cues or (word.endswith("ed") and len(word) > 4) for word in words[max(0, index - _REACH) : index]
        )
        around = words[max(0, index - _REACH) : index + _REACH]
        return "P" if told_before or _word_at(words, index - 1) == "just" or "yesterday" in around or "ago" in around else ""
    return "" if left in known.determiners or left in known.prepositions or left in known.objects else "P"


def _use_of_close(words: Sequence[str], index: int) -> str:
    known = lists()
    left, right = _word_at(words, index - 1), _word_at(words, index + 1)
    if left in known.degrees or left in known.be or right in ("together", "enough"):
        return ""
    tag = _part_of_speech(words, index)
    if tag == "N":
        return "N" if left in ("the", "a") and (not right or right in known.pauses or right == "of") else ""
    return tag if right != "to" or left == "to" or left in known.modals else ""


def _use_of_live(words: Sequence[str], index: int) -> str:
    known = lists()
    left, right = _word_at(words, _left_of(words, index)), _word_at(words, index + 1)
    if left == "to" or left in known.modals or left in known.do or left in known.plural_subjects:
        return "V"
    if (
        left in known.determiners
        or left in known.be
        or left in known.broadcasting
        or right in known.broadcasts
        or right.endswith("ing")
    ):
        return ""
    return "" if left in known.prepositions else "V"


def _use_of_used(words: Sequence[str], index: int) -> str:
    """``P`` in "used to go" and "get used to it", not in "is used to cut"."""
    known = lists()
    if _word_at(words, index + 1) != "to":
        return ""
    left, after = _word_at(words, _left_of(words, index)), _word_at(words, index + 2)
    if left in ("is", "are", "was", "were", "be", "been", "being"):
        return (
            "P"
            if after.endswith("ing") or after in known.determiners or after in known.objects or after in known.adjectives
            else ""
        )
    return "P"


def _use_of_minute(words: Sequence[str], index: int) -> str:
    known = lists()
    left, right = _word_at(words, index - 1), _word_at(words, index + 1)
    if left in known.degrees and left not in ("as", "more", "how"):
        return "J"
    return "J" if right.endswith(known.small_things) and left not in known.numbers else ""


def _use_of_wound(words: Sequence[str], index: int) -> str:
    known = lists()
    if _moves_along(words, index):
        return "P"
    tag = _part_of_speech(words, index)
    return "P" if tag in ("V", "P") and _word_at(words, _left_of(words, index)) not in (known.modals | {"to"}) else ""


def _use_of_dove(words: Sequence[str], index: int) -> str:
    return "V" if _moves_along(words, index) else _part_of_speech(words, index)


def _moves_along(words: Sequence[str], index: int) -> bool:
    """Whether a noun or pronoun stands before the word and a way after it: "the path wound up the hill"."""
    known = lists()
    left = _word_at(words, _left_of(words, index))
    bound = (
        left in known.determiners or left in known.adjectives or left in known.prepositions or left in known.pauses or not left
    )
    return not bound and _word_at(words, index + 1) in known.along


def _use_of_subject(words: Sequence[str], index: int) -> str:
    known = lists()
    tag = _part_of_speech(words, index)
    left = _word_at(words, _left_of(words, index))
    if _word_at(words, index + 1) == "to" and left != "to" and left not in known.modals:
        return ""
    return tag


def _use_before_noun(words: Sequence[str], index: int) -> str:
    return "J" if _is_attributive(words, index) else ""


def _use_of_closer(words: Sequence[str], index: int) -> str:
    known = lists()
    right = _word_at(words, index + 1)
    return "N" if _word_at(words, index - 1) in ("the", "a") and right in known.finite else ""


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
    known = lists()
    left, right = _word_at(words, index - 1), _word_at(words, index + 1)
    if words[index] == "that's":
        return not left or left in known.pauses or left in known.conjunctions or left in known.clause_verbs
    if not right or right in ".!?…":
        return True
    if right in known.pauses:
        return left not in known.clause_verbs or left in ("is", "was", "but", "in")
    if not left or left in known.pauses:
        return right not in known.subject_starts and (left not in (",", ";") or right not in known.finite)
    if left in known.pointing_verbs or (left in known.prepositions and left not in ("in", "than", "except")):
        return right not in known.subject_starts
    if right in known.pointed_at:
        return True
    if right in known.subject_starts:
        return False
    if left == "in":
        return True
    if left in known.objects:
        return _word_at(words, index - 2) not in known.telling_verbs
    if right in known.finite or right in known.modals or right.endswith("ly"):
        return left in known.conjunctions or left in ("if", "because", "when", "is", "was", "what", "how", "why")
    return left in known.conjunctions and right not in known.modals and left != "or"
