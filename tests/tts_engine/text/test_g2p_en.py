"""English pronunciation: each rule, the reference, heteronyms, unknown words, and whatever else may arrive."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.pronunciation_score import joined, read_references, score, symbol_error_rate
from tts_engine.text.g2p_en import EnglishG2P
from tts_engine.text.letters_en import GOLD_STYLE, SILVER_STYLE, LetterToSound
from tts_engine.text.lexicon_en import LONGEST_WORD, Lexicon, Word, write_lexicon
from tts_engine.text.normalize_en import normalize_en
from tts_engine.text.phonemes import PRIMARY, SECONDARY, symbol_ids
from tts_engine.text.tokens import Token

TESTS = Path(__file__).parents[2]
G2P = EnglishG2P()


def tokens_of(text: str) -> list[Token]:
    """Words and single marks, by blanks."""
    tokens: list[Token] = []
    at = 0
    for word in text.split(" "):
        body = word.rstrip(".,!?")
        if body:
            tokens.append(Token(body, at, at + len(body), space=at > 0))
        tokens += [Token(mark, at, at + 1, "mark", space=False) for mark in word[len(body) :]]
        at += len(word) + 1
    return tokens


def say(text: str) -> str:
    return joined(G2P.pronounce(tokens_of(text)))


def plain(sound: str) -> str:
    return sound.replace(PRIMARY, "").replace(SECONDARY, "")


class TestSentences:
    @pytest.mark.parametrize(
        ("text", "sound"),
        [
            ("the apple", "ði ˈæpᵊl"),
            ("the pear", "ðə pˈɛɹ"),
            ("the hour", "ði ˈWəɹ"),
            ("the union", "ðə jˈunjən"),
            ("a dog", "ɐ dˈɔɡ"),
            ("an egg", "ɐn ˈɛɡ"),
            ("to eat", "tʊ ˈit"),
            ("to go", "tə ɡˌO"),
            ("go to.", "ɡˌO tu."),
            ("I am here.", "ˌI ɐm hˈɪɹ."),
            ("yes I am.", "jˈɛs ˌI æm."),
            ("It is in.", "ˌɪt ɪz ˈɪn."),
            ("in it", "ɪn ɪt"),
            ("can you", "kæn ju"),
            ("Yes, we can.", "jˈɛs, wi kˈæn."),
            ("His was his.", "hˌɪz wʌz hˌɪz."),
        ],
    )
    def test_function_words_follow_their_neighbours(self, text: str, sound: str) -> None:
        assert say(text) == sound

    def test_a_pause_decides_like_the_end(self) -> None:
        assert say("I want to, but no") == "ˌI wˈɑnt tu, bˌʌt nˈO"

    def test_a_sentence_in_capitals_is_no_acronym(self) -> None:
        assert plain(say("TELL US WHO IT IS")) == plain(say("tell us who it is"))

    def test_every_token_has_one_answer_in_order(self) -> None:
        tokens = normalize_en("The API's 3 GPUs (fast!) cost $5.50.")
        spoken = G2P.pronounce(tokens)
        assert [item.token for item in spoken] == tokens

    def test_fixed_phonemes_stay(self) -> None:
        spoken = G2P.pronounce([Token("the", 0, 3), Token("x", 4, 5, phonemes="ˈɑpə")])
        assert [item.phonemes for item in spoken] == ["ði", "ˈɑpə"]


class TestWords:
    @pytest.mark.parametrize(
        ("word", "sound"),
        [
            ("cats", "kˈæts"),
            ("dogs", "dˈɔɡz"),
            ("boxes", "bˈɑksᵻz"),
            ("parties", "pˈɑɹTiz"),
            ("boss's", "bˈɔsᵻz"),
            ("walked", "wˈɔkt"),
            ("played", "plˈAd"),
            ("waited", "wˈATᵻd"),
            ("carried", "kˈɛɹid"),
            ("baking", "bˈAkɪŋ"),
            ("running", "ɹˈʌnɪŋ"),
            ("writing", "ɹˈITɪŋ"),
            ("googling", "ɡˈuɡᵊlɪŋ"),
            ("happily", "hˈæpəli"),
            ("occasionally", "əkˈAʒᵊnəli"),
            ("hopelessness", "hˈOpləsnəs"),
            ("reinstallable", "ɹˌiənstˈɔləbᵊl"),
            ("minutes", "mˈɪnəts"),
            ("daybook", "dˈAbˌʊk"),
            ("doorbell", "dˈɔɹbˌɛl"),
        ],
    )
    def test_endings_prefixes_compounds(self, word: str, sound: str) -> None:
        assert G2P.word(word).default == sound

    @pytest.mark.parametrize(
        ("word", "sound"),
        [
            ("HTML", "ˌAʧtˌiˌɛmˈɛl"),
            ("MSDOS", "ˌɛmˌɛsdˌiˌOˈɛs"),
            ("grpc", "ʤˌiˌɑɹpˌisˈi"),
            ("GPUs", "ʤˌipˌijˈuz"),
            ("APIs", "ˌApˌiˈIz"),
            ("NASA", "nˈæsə"),
            ("LEDs", "ˌɛlˌidˈiz"),
        ],
    )
    def test_acronyms(self, word: str, sound: str) -> None:
        assert G2P.word(word).default == sound

    @pytest.mark.parametrize(
        ("word", "sound"),
        [
            ("YouTube", "jˈutˌub"),
            ("GitHub", "ɡˈɪthˌʌb"),
            ("iPhone", "ˈIfˌOn"),
            ("OpenSSL", "ˌOpᵊnˌɛsˌɛsˈɛl"),
            ("ChatGPT", "ʧˌætʤˌipˌitˈi"),
            ("higher-order", "hˌIəɹˈɔɹdəɹ"),
            ("PyTorch", "pˈItˌɔɹʧ"),
            ("café", "kæfˈA"),
            ("résumé", "ɹˈɛzəmˌA"),
            ("don’t", "dˈOnt"),
        ],
    )
    def test_names_and_written_forms(self, word: str, sound: str) -> None:
        assert G2P.word(word).default == sound

    def test_a_word_in_parts_sounds_as_one(self) -> None:
        parts = [Token("higher", 0, 6), Token("order", 7, 12, space=False)]
        assert joined(G2P.pronounce(parts)) == "hˌIəɹˈɔɹdəɹ"

    def test_letters_of_one_acronym_cling(self) -> None:
        letters = [
            Token("A", 4, 7, spell=True),
            Token("P", 4, 7, spell=True, space=False),
            Token("I's", 4, 9, space=False),
        ]
        assert joined(G2P.pronounce([Token("the", 0, 3), *letters])) == "ði ˌApˌiˈIz"

    def test_lexicon_round_trip(self, tmp_path: Path) -> None:
        words = {"read": Word("ɹˈid", {"P": "ɹˈɛd"}), "A": Word("ˈA"), "it's": Word("ɪts")}
        write_lexicon(words.items(), tmp_path / "small.bin")
        lexicon = Lexicon(tmp_path / "small.bin")
        assert {word: lexicon.find(word) for word in words} == words
        assert lexicon.find("rea") is None
        assert lexicon.find("read\tɹ") is None

    def test_another_file_is_no_lexicon(self, tmp_path: Path) -> None:
        (tmp_path / "other.bin").write_bytes(b"something else")
        with pytest.raises(ValueError, match="is not a lexicon"):
            Lexicon(tmp_path / "other.bin")


def test_reference_symbol_error_rate() -> None:
    references = [item for item in read_references(TESTS / "data" / "g2p_reference.jsonl") if item.language == "en"]
    scored = score(references, lambda text: joined(G2P.pronounce(normalize_en(text))))
    worst = max(scored, key=lambda item: item.edits)
    assert symbol_error_rate(scored) <= 0.005, worst


@pytest.mark.parametrize(("name", "least"), [("heteronyms", 0.98), ("heteronyms_unseen", 0.85)])
def test_heteronyms(name: str, least: float) -> None:
    words = yaml.safe_load((TESTS / "cases_more" / f"{name}.yaml").read_text(encoding="utf-8"))
    wrong, total = [], 0
    for word, entry in words.items():
        for sense, marked in entry["cases"]:
            at = marked.index("*")
            spoken = G2P.pronounce(normalize_en(marked.replace("*", "")))
            got = next(item.phonemes for item in spoken if item.token.start >= at)
            total += 1
            if got != entry["senses"][sense]:
                wrong.append((word, sense, got, marked))
    assert 1 - len(wrong) / total >= least, wrong


def test_letter_to_sound_on_held_out_words() -> None:
    lines = (TESTS / "data" / "letters_held_out.tsv").read_text(encoding="utf-8").splitlines()
    models = [LetterToSound(style=GOLD_STYLE), LetterToSound(style=SILVER_STYLE)]
    wrong = []
    for word, sound, style in (line.split("\t") for line in lines):
        got = models[int(style)].pronounce(word)
        if plain(got) != plain(sound):
            wrong.append((word, sound, got))
    assert len(wrong) / len(lines) <= 0.25, wrong[:20]


class TestHostile:
    @pytest.mark.parametrize(
        "text", ["", " ", "\0", "\ud800", "\u202e", "'", "-", "''''", "----", "不", "ไทย", "العربية", "💥", "\n\t"]
    )
    def test_what_cannot_be_spoken_is_silent(self, text: str) -> None:
        assert [item.phonemes for item in G2P.pronounce([Token(text, 0, len(text))])] == [""]

    def test_no_tokens(self) -> None:
        assert G2P.pronounce([]) == []

    def test_an_unknown_mark_is_silent(self) -> None:
        assert G2P.pronounce([Token("\0", 0, 1, "mark")])[0].phonemes == ""

    @pytest.mark.parametrize(
        "text", ["a" * 1_000_000, "A" * 1_000_000, "ab-" * 300_000, "Ab" * 500_000, "'" * 1_000_000, "é" * 1_000_000]
    )
    def test_a_huge_word_takes_bounded_work(self, text: str) -> None:
        start = time.perf_counter()
        sound = G2P.word(text).default
        assert time.perf_counter() - start < 10
        assert len(sound) < 2_000

    def test_many_tokens_take_linear_time(self) -> None:
        start = time.perf_counter()
        G2P.pronounce(
            [Token("bass", 0, 4)] * 5_000 + [Token("really", 0, 6)] * 5_000 + [Token("read", 0, 4, space=False)] * 5_000
        )
        assert time.perf_counter() - start < 30

    @settings(max_examples=examples(120))
    @given(st.lists(st.tuples(st.text(max_size=80), st.booleans(), st.sampled_from(["word", "mark"])), max_size=12))
    def test_only_symbols_of_the_voice_come_out(self, parts: list[tuple[str, bool, str]]) -> None:
        tokens = [Token(text, 0, len(text), "mark" if kind == "mark" else "word", space=space) for text, space, kind in parts]
        spoken = G2P.pronounce(tokens)
        assert len(spoken) == len(tokens)
        assert set("".join(item.phonemes for item in spoken)) <= set(symbol_ids())

    @settings(max_examples=examples(120))
    @given(st.text("abcdefghijklmnopqrstuvwxyzABCXYZ'-’é", min_size=1, max_size=2 * LONGEST_WORD))
    def test_a_word_with_letters_sounds(self, text: str) -> None:
        sound = G2P.word(text).default
        assert bool(sound) == any(letter.isalpha() for letter in text)
