"""Turn taking: from one judged hop of 10 ms after another to decisions. A state machine without samples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, Protocol

from tts_engine.types import Samples
from voice_agent.ears.backchannels import is_backchannel, may_become_backchannel
from voice_agent.ears.background import LASTING
from voice_agent.ears.config import RATE, EarsConfig
from voice_agent.ears.decisions import (
    Decision,
    DropReason,
    Duck,
    Hold,
    Interrupt,
    Resume,
    SpeechBegan,
    SpeechDropped,
    TurnEnded,
)
from voice_agent.ears.endpoint import EndOfTurn

__all__ = ["HOP", "HOP_S", "BargeInClassifier", "Hop", "TurnTaking"]

HOP = 160
"""Samples of 16 kHz in a hop."""

HOP_S = HOP / RATE

_NEVER = -(10**9)
_JUDGED_EVERY = 10  # hops between two questions to a classifier
_LASTS = 2  # hops in which a mean over the last ones must be that of speech
_ONSET_GAP = 3  # hops without speech that two bits of an onset may be apart
_UNVOICED_GAP = 8  # hops: an s or t belongs to the word before it, a click after a pause does not
_TAKEN_UP = 4  # hops of speech in a row behind a pause, with which the user goes on
_FRAGMENT_GAP, _FRAGMENT_LENGTH = 100, 300  # hops behind a dropped word, and since it began, in which a turn may take it up
_AGENT_GAP = 10  # hops of silence within the agent's words
_VOICED_SHARE = 0.4  # of sustained speech
_WORDS_COME = 2.0  # times as much of it where a recogniser is asked: a long "mm-hmm" is no interruption
_AGENT_DONE = 80  # hops of silence after which it is no pause between sentences
_ENOUGH_S = 0.1  # silence after which a backchannel is known to be all that was said
_COVERED_GAP = 5  # hops of speech that words may lack and still be all of it; of silence behind the end of a word
_STALE_S = 0.4  # words that end so long before the speech does say nothing about its end


@dataclass(frozen=True, slots=True)
class Hop:
    """10 ms of the microphone; ``sounding``: and of the agent, who is heard.

    ``restless``: what is heard besides the user is often as loud as a quiet user, so that sound alone proves little.
    """

    speech: bool
    voiced: bool
    sounding: bool
    restless: bool = False


class BargeInClassifier(Protocol):
    """Tells an interruption from a sign of listening; a model may stand here. It is asked ten times a second."""

    def judge(self, samples: Samples, words: str | None) -> Literal["interruption", "backchannel"] | None:
        """``samples``: 16 kHz mono, what was said over the agent so far; ``words``: the same, if known. None: not yet."""
        ...


class _Barge(IntEnum):
    """How far an interruption has come."""

    none = 0
    ducked = 1
    held = 2
    confirmed = 3


@dataclass(slots=True)
class _Speech:
    """What has been heard of one go of the user. Counts and places are in hops.

    ``words_speech`` and ``words_voiced``: the counts up to where the words are known.
    """

    began: int
    last: int
    speech: int
    voiced: int
    barge: _Barge = _Barge.none
    words: str | None = None
    words_upto: int = 0
    words_speech: int = 0
    words_voiced: int = 0
    verdict: Literal["interruption", "backchannel"] | None = None


class TurnTaking:
    """``step`` takes the next hop and gives the decisions at its end."""

    def __init__(
        self,
        config: EarsConfig,
        end_of_turn: EndOfTurn,
        audio: Callable[[int, int], Samples],
        classifier: BargeInClassifier | None = None,
    ) -> None:
        """``audio``: gives the samples from one hop up to another."""
        self._config = config
        self._end_of_turn = end_of_turn
        self._audio = audio
        self._classifier = classifier
        self.reset()

    def reset(self) -> None:
        """Begin at hop 0 again."""
        self._now = 0  # hops heard
        self._onset = 0
        self._onset_voiced = 0
        self._onset_began = 0
        self._onset_last = _NEVER
        self._agent_heard = _NEVER
        self._run = 0  # hops of speech in a row, from a voiced one on
        self._speech: _Speech | None = None
        self._fragment: _Speech | None = None  # voiced speech that was dropped

    @property
    def began(self) -> int | None:
        """The hop at which the user's speech began, None while nobody speaks."""
        return None if self._speech is None else self._speech.began

    @property
    def quiet(self) -> bool:
        """Whether nobody speaks, nor has begun to sound like it."""
        return self._speech is None and self._now - self._onset_last > _ONSET_GAP

    @property
    def needed(self) -> int:
        """The first hop whose audio may still be part of a turn."""
        if self._speech is not None:
            return self._speech.began
        return self._first(self._onset_began if self._now - self._onset_last <= _ONSET_GAP else self._now)

    @property
    def silence_s(self) -> float:
        """Seconds since the user's last sound; 0 while nobody speaks."""
        return 0.0 if self._speech is None else (self._now - self._speech.last) * HOP_S

    @property
    def barging(self) -> bool:
        """Whether the agent is ducked or held, and nothing is decided."""
        return self._speech is not None and self._speech.barge in (_Barge.ducked, _Barge.held)

    def hear(self, words: str, upto_s: float | None) -> None:
        """The words of the user's speech so far, up to a moment (None: now)."""
        speech = self._speech
        if speech is not None and (upto_s is None or upto_s > speech.began * HOP_S):
            speech.words = words
            speech.words_upto = self._now if upto_s is None else round(upto_s / HOP_S)
            if words:
                since = self._now - speech.words_upto
                speech.words_speech = max(speech.speech - since, 0)
                speech.words_voiced = max(speech.voiced - since, 0)

    def step(self, hop: Hop) -> list[Decision]:
        self._now += 1
        if hop.sounding:
            self._agent_heard = self._now
        if self._speech is None:
            return self._look_for_speech(hop)
        self._run = self._run + 1 if hop.speech and (hop.voiced or self._run) else 0
        if hop.speech:
            self._speech.speech += 1
            self._speech.voiced += hop.voiced
            if self._now - self._speech.last <= _UNVOICED_GAP or self._run >= _TAKEN_UP:
                self._speech.last = self._now
        return self._follow(self._speech, hop)

    def flush(self) -> list[Decision]:
        """The recording is over: what is undecided is decided by what was heard."""
        if self._speech is None:
            return []
        if self.barging:
            return self._resume(self._speech, "short")
        return self._end(self._speech)

    def _look_for_speech(self, hop: Hop) -> list[Decision]:
        if not hop.speech:
            return []
        if self._now - self._onset_last > _ONSET_GAP:
            self._onset = self._onset_voiced = 0
            self._onset_began = self._now - 1
        self._onset_last = self._now
        self._onset += 1
        self._onset_voiced += hop.voiced
        before = LASTING - _LASTS if hop.restless else 0  # hops that each of these hops stands for
        if self._onset + before < _hops(self._config.start_s):
            return []
        self._onset_last = _NEVER
        began = self._first(max(self._onset_began - before, 0))
        self._speech = _Speech(began, self._now, self._onset + before, self._onset_voiced)
        return [SpeechBegan(self._at_s, began * HOP_S), *self._follow(self._speech, hop)]

    def _first(self, hop: int) -> int:
        """Where speech that begins at this hop really begins: with a word just before, which was taken for too little."""
        fragment = self._fragment
        if fragment is None or hop - fragment.last > _FRAGMENT_GAP or hop - fragment.began > _FRAGMENT_LENGTH:
            return hop
        return fragment.began

    def _follow(self, speech: _Speech, hop: Hop) -> list[Decision]:
        decisions = self._barge_in(speech) if hop.speech or self.barging else []
        if self.barging:
            return decisions + self._give_up(speech)
        return decisions + self._end_if_over(speech)

    def _barge_in(self, speech: _Speech) -> list[Decision]:
        config, decisions = self._config.barge_in, list[Decision]()
        if speech.barge is _Barge.none and self._agent_sounds and speech.speech >= _hops(config.duck_s):
            speech.barge = _Barge.ducked
            decisions.append(Duck(self._at_s))
        if speech.barge in (_Barge.ducked, _Barge.held) and self._interrupts(speech):
            speech.barge = _Barge.confirmed
            return [*decisions, Interrupt(self._at_s, speech.began * HOP_S)]
        if speech.barge is _Barge.ducked and self._agent_sounds and self._deserves_hold(speech):
            speech.barge = _Barge.held
            decisions.append(Hold(self._at_s))
        return decisions

    def _deserves_hold(self, speech: _Speech) -> bool:
        """Sustained; or short, and the words that are awaited will tell."""
        config = self._config.barge_in
        if speech.voiced < _hops(config.hold_voiced_s):
            return False
        return speech.speech >= _hops(config.hold_s) or (config.words_s > 0 and self.silence_s >= _ENOUGH_S)

    def _interrupts(self, speech: _Speech) -> bool:
        """By its words; or by its length, counted anew behind words that are no interruption."""
        config = self._config.barge_in
        if speech.words and not is_backchannel(speech.words) and not self._half_heard(speech):
            return True
        sustained, voiced = speech.speech - speech.words_speech, speech.voiced - speech.words_voiced
        confirm_s = config.confirm_s * (_WORDS_COME if config.words_s > 0 else 1.0)
        if sustained >= _hops(confirm_s) and voiced >= max(_hops(config.confirm_voiced_s), _VOICED_SHARE * sustained):
            return True
        return self._verdict(speech) == "interruption"

    def _half_heard(self, speech: _Speech) -> bool:
        """Whether the words known end before the speech does, and the rest may make them a sign of listening.

        A word's soft end is no speech, so only silence behind it shows that it was heard to its end.
        """
        ends_before = self.silence_s < _ENOUGH_S or speech.words_upto < speech.last + _COVERED_GAP
        return ends_before and may_become_backchannel(speech.words or "")

    def _verdict(self, speech: _Speech) -> str | None:
        if self._classifier is not None and (self._now - speech.began) % _JUDGED_EVERY == 0:
            samples = self._audio(speech.began - _hops(self._config.pre_roll_s), self._now)
            speech.verdict = self._classifier.judge(samples, speech.words)
        return speech.verdict

    def _give_up(self, speech: _Speech) -> list[Decision]:
        """Resume, if what was said over the agent is over and was no interruption."""
        config, silence_s = self._config.barge_in, self.silence_s
        quiet = self._now - self._agent_heard
        if speech.barge is _Barge.ducked and quiet >= (_AGENT_GAP if silence_s >= config.resume_s else _AGENT_DONE):
            speech.barge = _Barge.none
            return [Resume(self._at_s, "agent silent")]
        said = speech.verdict == "backchannel" or (speech.words is not None and is_backchannel(speech.words))
        if said and silence_s >= _ENOUGH_S:
            return self._resume(speech, "backchannel")
        open_words = speech.words is None or (speech.words != "" and self._half_heard(speech))
        awaited_s = config.words_s if speech.barge is _Barge.held and open_words else 0.0
        if silence_s >= max(config.resume_s, awaited_s):
            return self._resume(speech, "short")
        return []

    def _resume(self, speech: _Speech, reason: DropReason) -> list[Decision]:
        if speech.voiced < _hops(self._config.min_voiced_s):
            reason = "noise"
        return [Resume(self._at_s, reason), *self._drop(reason)]

    def _end_if_over(self, speech: _Speech) -> list[Decision]:
        if self._now - speech.began >= _hops(self._config.max_turn_s):
            return self._end(speech)
        if self.silence_s < _ENOUGH_S or self._run:
            return []
        if speech.voiced < _hops(self._config.min_voiced_s):
            return self._drop("noise") if self.silence_s >= self._config.barge_in.resume_s else []
        fresh = speech.words_upto >= speech.last - _hops(_STALE_S)
        delay_s = self._end_of_turn.delay_s(speech.words if fresh else None)
        return self._end(speech) if self.silence_s >= delay_s else []

    def _end(self, speech: _Speech) -> list[Decision]:
        config = self._config
        if speech.voiced < _hops(config.min_voiced_s):
            return self._drop("noise")
        if speech.barge is _Barge.none and self._agent_sounds and speech.speech < _hops(config.barge_in.confirm_s):
            return self._drop("short")  # said in a pause of the agent, who has gone on
        if speech.words == "" and speech.words_upto >= speech.last - _COVERED_GAP:
            return self._drop("noise")  # a recogniser has heard all of it, and no words
        self._speech = None
        last = min(speech.last + _hops(config.hang_over_s), self._now)
        samples = self._audio(speech.began - _hops(config.pre_roll_s), last)
        return [TurnEnded(self._at_s, speech.began * HOP_S, speech.last * HOP_S, samples)]

    def _drop(self, reason: DropReason) -> list[Decision]:
        self._fragment = self._speech if reason == "short" else None
        self._speech = None
        return [SpeechDropped(self._at_s, reason)]

    @property
    def _at_s(self) -> float:
        return self._now * HOP_S

    @property
    def _agent_sounds(self) -> bool:
        return self._now - self._agent_heard <= _AGENT_GAP


def _hops(seconds: float) -> int:
    return round(seconds / HOP_S)
