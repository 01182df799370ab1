"""The front end: an utterance's text to phoneme ids, with the text span and the prosody fields of each.

Tags inside the text become numbers on phonemes here: speed, pitch and volume from their place on, breaks as pauses at the
mark that stands there (a comma is put in where there is none).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Protocol

from tts_engine.text.language import detect_language
from tts_engine.text.tokens import Pronounced, Token
from tts_engine.types import Language, Utterance

if TYPE_CHECKING:
    from tts_engine.text.user_lexicon import UserLexicon

EDGE_ID = 0
"""Opens and closes every sentence."""
PAUSE_SYMBOLS = ",.!?;:—…"


class Pronouncer(Protocol):
    """One language's pronunciation: a Pronounced for each token, in order."""

    def pronounce(self, tokens: Sequence[Token]) -> list[Pronounced]: ...


@dataclass(frozen=True, slots=True)
class SpokenWord:
    """A token and the ids ``[first, last)`` that sound it; ``start`` and ``end`` are text offsets."""

    start: int
    end: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Pause:
    """A break that was asked for: phoneme ``position`` of the ids shall last ``ms`` and be silent."""

    position: int
    ms: float


@dataclass(slots=True)
class Script:
    """What the acoustic model is told: ids with both edges, and one number of each field an id.

    ``lead_ms`` and ``tail_ms`` are breaks that the text asks for before its first and after its last word.
    """

    language: Language
    ids: list[int] = field(default_factory=list)
    speed: list[float] = field(default_factory=list)
    pitch: list[float] = field(default_factory=list)
    volume: list[float] = field(default_factory=list)
    words: list[SpokenWord] = field(default_factory=list)
    pauses: list[Pause] = field(default_factory=list)
    lead_ms: float = 0.0
    tail_ms: float = 0.0

    @property
    def silent(self) -> bool:
        """There is nothing in it that sounds."""
        return not self.words


class FrontEnd:
    """Text to :class:`Script`, for the symbols of one voice. Dictionaries load with the first sentence that needs them."""

    def __init__(self, symbols: Mapping[str, int], user: UserLexicon | None = None) -> None:
        self._symbols = symbols
        self._user = user
        self._pronouncers: dict[Language, Pronouncer] = {}

    def pronounce(self, text: str, language: Language | None = None) -> list[Pronounced]:
        """The spoken tokens of ``text`` with their phonemes, in order. ``language`` None: by the text."""
        from tts_engine.text.normalize import normalize  # its patterns are compiled when they are first needed

        tokens = normalize(text, language)
        if self._user is not None:
            tokens = self._user.apply(tokens)
        out: list[Pronounced] = []
        for spoken, stretch in groupby(tokens, key=lambda token: token.language):
            out.extend(self._pronouncer(spoken).pronounce(list(stretch)))
        return out

    def read(self, utterance: Utterance) -> Script:
        """The script of an utterance. Text without anything that can be spoken gives a silent script."""
        writer = _Writer(self._symbols, utterance)
        for item in self.pronounce(utterance.text, utterance.language):
            writer.apply_marks(item.token.start)
            writer.write(item)
        writer.close()
        return writer.script

    def _pronouncer(self, language: Language) -> Pronouncer:
        if language not in self._pronouncers:
            if language == "zh":
                from tts_engine.text.g2p_zh import ChineseG2P

                self._pronouncers[language] = ChineseG2P()
            else:
                from tts_engine.text.g2p_en import EnglishG2P

                self._pronouncers[language] = EnglishG2P()
        return self._pronouncers[language]


class _Writer:
    """Writes a script: keeps the fields that are in force and the marks that are still to come."""

    def __init__(self, symbols: Mapping[str, int], utterance: Utterance) -> None:
        self._symbols = symbols
        self._pause_ids = {symbols[symbol] for symbol in PAUSE_SYMBOLS if symbol in symbols}
        self._marks = list(utterance.marks)
        self._speed, self._pitch, self._volume = utterance.speed, utterance.pitch, utterance.volume
        self.script = Script(utterance.language or detect_language(utterance.text))
        self._put(EDGE_ID)

    def apply_marks(self, index: int) -> None:
        """Lets the marks up to text ``index`` take effect."""
        pause_ms = 0.0
        while self._marks and self._marks[0].index <= index:
            tag = self._marks.pop(0).tag
            if tag.name == "break":
                pause_ms += tag.value
            elif tag.name == "speed":
                self._speed = tag.value
            elif tag.name == "pitch":
                self._pitch = tag.value
            else:
                self._volume = tag.value
        if not pause_ms:
            return
        if not self.script.words:
            self.script.lead_ms += pause_ms
            return
        if self.script.ids[-1] not in self._pause_ids:
            self._say(",")
        self.script.pauses.append(Pause(len(self.script.ids) - 1, pause_ms))

    def write(self, item: Pronounced) -> None:
        """Appends a token's phonemes."""
        if item.space and len(self.script.ids) > 1:
            self._say(" ")
        first = len(self.script.ids)
        self._say(item.phonemes)
        token, words = item.token, self.script.words
        if token.kind != "word":
            return
        if len(self.script.ids) > first:
            words.append(SpokenWord(token.start, token.end, first, len(self.script.ids)))
        elif words and not item.phonemes:  # it sounds with the word before it
            words[-1] = replace(words[-1], end=max(words[-1].end, token.end))

    def close(self) -> None:
        """Ends the script; breaks that are left stand after the last word, and so do those before the marks that follow it."""
        script = self.script
        said = script.words[-1].last if script.words else 0
        behind = [pause for pause in script.pauses if pause.position >= said]
        script.pauses = [pause for pause in script.pauses if pause.position < said]
        left_ms = sum(mark.tag.value for mark in self._marks if mark.tag.name == "break")
        script.tail_ms = left_ms + sum(pause.ms for pause in behind)
        self._put(EDGE_ID)

    def _say(self, symbols: str) -> None:
        for symbol in symbols:
            if symbol in self._symbols:
                self._put(self._symbols[symbol])

    def _put(self, id_: int) -> None:
        script = self.script
        script.ids.append(id_)
        script.speed.append(self._speed)
        script.pitch.append(self._pitch)
        script.volume.append(self._volume)
