"""A spoken dialogue: the microphone goes to the ears, what they decide goes to the agent, what was said is answered."""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, Self

import numpy as np

from tts_engine.types import AudioFormat, Samples
from voice_agent.agent import Agent
from voice_agent.captions import Level, Listening, RecognitionFailed, Speaking, Thinking, Transcribed
from voice_agent.ears.backchannels import is_backchannel
from voice_agent.ears.config import RATE
from voice_agent.ears.decisions import (
    Decision,
    Duck,
    Hold,
    Interrupt,
    Resume,
    SpeechBegan,
    SpeechDropped,
    TurnEnded,
)
from voice_agent.ears.hearing import Hearing
from voice_agent.ears.no_speech import is_often_made_up
from voice_agent.ears.own_words import are_own_words, may_be_own_words
from voice_agent.ears.recognizer import Recognizer, SpokenLanguage, Transcript
from voice_agent.ears.reference import Reference, SampleClock
from voice_agent.ears.wake import WakePhrase
from voice_agent.errors import InputError, SaylineError
from voice_agent.pacing import Clock, MonotonicClock
from voice_agent.scribe import Scribe
from voice_agent.sinks.base import Sink
from voice_agent.text.characters import whole_characters

__all__ = ["Dialogue", "DialogueConfig", "State"]

State = Literal["listening", "thinking", "speaking"]
_EVENTS: dict[State, type[Listening | Thinking | Speaking]] = {
    "listening": Listening,
    "thinking": Thinking,
    "speaking": Speaking,
}
_LEVEL_S = 0.1
_AUDIBLE = 1e-3
_ON_ITS_WAY_S = 0.03
"""How long a piece without a moment was on its way here; a sink may tell of what it plays so much later."""
_SOUNDED_S, _SOUNDING_S = 3.0, 0.5  # what the agent has said and is about to say, whose echo a draft may be
_MORE_TO_SAY_S = 1.0  # of an agent who is not about to end: a word like one of its own is no answer yet
_QUIET_S = 0.5  # of an agent that speaks by itself: it is done


@dataclass(frozen=True, slots=True)
class DialogueConfig:
    """How the user is understood.

    ``language``: "auto" tells English from Chinese turn by turn. ``partial_s``: the rest between two drafts of a turn
    while it is spoken; None: only where the user pauses or interrupts. ``wake``: a phrase without which nothing is
    answered, unless the last answer ended less than ``awake_s`` ago.
    """

    language: SpokenLanguage = "auto"
    partial_s: float | None = 0.6
    wake: str | None = None
    awake_s: float = 30.0

    def __post_init__(self) -> None:
        if self.language not in ("auto", "en", "zh"):
            raise InputError(f"language is {self.language!r}: use auto, en or zh")
        for name in ("partial_s", "awake_s"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise InputError(f"{name} is {value!r}: use a number above 0")
        if self.wake is not None:
            WakePhrase(self.wake)  # refuses one without a word


@dataclass(frozen=True, slots=True)
class _Turn:
    """Something to be answered. ``over``: it began while the agent sounded; ``typed``: nobody has to be woken for it."""

    transcript: asyncio.Future[Transcript]
    over: bool = False
    typed: bool = False


class Dialogue:
    """``async with Dialogue(agent, ears, recognizer) as dialogue``: then ``hear`` every piece of the microphone.

    ``agent`` and ``recognizer`` are open and stay so. The agent ducks, holds, goes on or is interrupted as the ears
    decide; with ``agent.sink.monitor`` the ears know what it sounds. What goes on comes as events of the agent.

    A turn's text is mostly there when the turn ends. The user who goes on while the agent thinks is waited for: what he
    said first and then makes one turn, or, where the model was asked already, its answer is dropped and it is asked with
    both. A cough meanwhile only delays the answer. When the recogniser fails, an event tells, and the dialogue goes on.
    """

    def __init__(
        self,
        agent: Agent,
        ears: Hearing,
        recognizer: Recognizer,
        config: DialogueConfig | None = None,
        *,
        clock: Clock | None = None,
    ) -> None:
        """``clock``: that of the agent's sink; the monotonic one."""
        self.state: State = "listening"
        self._agent = agent
        self._ears = ears
        self._time = clock or MonotonicClock()
        self._config = config or DialogueConfig()
        self._wake = WakePhrase(self._config.wake) if self._config.wake is not None else None
        self._awake_until_s = -math.inf
        self._scribe = Scribe(ears, recognizer, self._config.language, self._config.partial_s, self._take_draft)
        self._deeds: asyncio.Queue[Callable[[], Awaitable[object]]] = asyncio.Queue()
        self._turns: asyncio.Queue[_Turn] = asyncio.Queue()
        self._changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._replying: asyncio.Task[None] | None = None
        self._sounded = False  # the present reply was heard
        self._asked_at = 0  # the sample of time at which it was asked for
        self._paused = False  # the answer waits until it is known if the user has more to say
        self._over = False  # what the user says began over the agent's speech
        self._quiet_s = math.inf  # since the agent sounded
        self._sink: Sink | None = None
        self._reference: Reference | None = None
        self._clock: SampleClock | None = None
        self._received = 0  # samples of the microphone
        self._handed = 0  # samples of 16 kHz that stand for them
        self._place = 0  # of the next of them in time, on the sink's clock
        self._level_due_s = 0.0

    async def __aenter__(self) -> Self:
        for work in (self._act(), self._answer()):
            self._tasks.append(asyncio.create_task(work, name="sayline-dialogue"))
        self._agent.emit(Listening(self._agent.epoch))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Stops listening and silences an answer that is under way; nothing of the dialogue runs any more."""
        if self._sink is not None:
            self._sink.monitor = None
        tasks = self._running()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._scribe.aclose()
        self._tasks.clear()

    def _running(self) -> list[asyncio.Task[None]]:
        return [*self._tasks, *([self._replying] if self._replying is not None else [])]

    async def hear(self, samples: Samples, format: AudioFormat, at_s: float | None = None) -> None:
        """The next piece of the microphone, [samples] or [samples, channels], of any rate.

        ``at_s``: when its first sample was taken, on the sink's clock (``time.monotonic``); None: so that it would be here
        now.
        Raises InputError for audio that does not fit, and what has broken the dialogue.
        """
        for task in self._running():
            if task.done() and not task.cancelled():
                task.result()
        duration_s = len(samples) / format.sample_rate
        if at_s is None:
            at_s = self._time.now_s() - duration_s - _ON_ITS_WAY_S
        played = self._played(len(samples), format, at_s)
        decisions = self._ears.feed(samples, format, played)
        self._follow_agent(played is not None and float(np.abs(played).max()) > _AUDIBLE, duration_s)
        for decision in decisions:
            self._decide(decision)
        self._scribe.moved()
        self._changed.set()
        if self._ears.heard_s >= self._level_due_s:
            self._level_due_s = self._ears.heard_s + _LEVEL_S
            self._agent.emit(Level(round(self._ears.level_db, 1), self._ears.speaking))
        await asyncio.sleep(0)

    @property
    def language(self) -> SpokenLanguage:
        """What the user speaks, from the next draft on: "auto" tells English from Chinese turn by turn."""
        return self._scribe.language

    @language.setter
    def language(self, language: SpokenLanguage) -> None:
        self._scribe.language = language

    async def ask(self, text: str) -> None:
        """A typed question, in place of what is being said."""
        self._do(self._agent.interrupt)
        transcript: asyncio.Future[Transcript] = asyncio.get_running_loop().create_future()
        transcript.set_result(Transcript(whole_characters(text)))
        self._turns.put_nowait(_Turn(transcript, typed=True))

    # ---- what the ears decide -------------------------------------------------------------------------------------

    def _decide(self, decision: Decision) -> None:
        match decision:
            case SpeechBegan():
                self._over = self._quiet_s < _QUIET_S
                self._scribe.begin()
                if self._thinks:
                    self._paused = True
                    self._do(self._agent.hold)
            case Duck():
                self._do(self._duck)
            case Hold():
                self._do(self._agent.hold)
            case Resume():
                self._do(self._agent.resume)
            case Interrupt():
                self._paused = False
                self._do(self._agent.interrupt)
            case SpeechDropped():
                self._scribe.drop()
                self._go_on()
            case TurnEnded():
                self._turns.put_nowait(_Turn(self._scribe.finish(decision), self._over))
                self._enter("thinking")

    @property
    def _thinks(self) -> bool:
        """A reply is under way, and nothing of it was heard."""
        return self._replies and not self._sounded

    @property
    def _replies(self) -> bool:
        return self._replying is not None and not self._replying.done()

    def _go_on(self) -> None:
        """What the user said meanwhile was nothing: let the answer come."""
        if self._paused:
            self._paused = False
            self._do(self._agent.resume)

    def _take_draft(self, draft: Transcript, upto_s: float) -> None:
        words = "" if self._over and (self._is_own(draft.text) or self._proves_nothing(draft.text)) else draft.text
        self._ears.hear(words, upto_s)
        if words:
            self._agent.emit(Transcribed(self._agent.epoch, words, False, draft.language))

    def _is_own(self, words: str) -> bool:
        turn = self._agent.turn
        return turn is not None and are_own_words(words, str(turn.record.raw))

    def _proves_nothing(self, words: str) -> bool:
        """Whether a few words over an agent who has more to say may be its echo, or nothing: they do not interrupt it."""
        turn = self._agent.turn
        if turn is None or turn.unplayed_s() < _MORE_TO_SAY_S:
            return False
        record, rate = turn.record, self._agent.sink.format.sample_rate
        first, last = record.sample - _SOUNDED_S * rate, record.sample + _SOUNDING_S * rate
        sounding = [word.shown for word in record.words if word.end_sample > first and word.start_sample < last]
        return is_often_made_up(words) or may_be_own_words(words, " ".join(sounding))

    def _do(self, deed: Callable[[], Awaitable[object]]) -> None:
        self._deeds.put_nowait(deed)

    async def _duck(self) -> None:
        self._agent.duck()

    async def _act(self) -> None:
        """Does to the agent what was decided, in order."""
        while True:
            deed = await self._deeds.get()
            try:
                with contextlib.suppress(SaylineError):  # a sink that failed is told of by the turn that it played
                    await deed()
            finally:
                self._deeds.task_done()

    # ---- answers --------------------------------------------------------------------------------------------------

    async def _answer(self) -> None:
        """Turn by turn; what the user says before an answer is asked for is joined to what he said before."""
        said: list[str] = []
        while True:
            turn = await self._turns.get()
            if text := await self._text_of(turn):
                said.append(text)
            while self._turns.empty() and self._ears.speaking and not turn.typed:
                self._changed.clear()
                await self._changed.wait()
            if not self._turns.empty():
                continue
            if said and (turn.typed or not (self._thinks and is_backchannel(" ".join(said)))):
                await self._reply(" ".join(said))
            else:
                self._go_on()
                if not self._replies:
                    self._enter("listening")
            said.clear()

    async def _text_of(self, turn: _Turn) -> str:
        """What is to be answered of a turn, empty if nothing."""
        try:
            transcript = await turn.transcript
        except SaylineError as error:
            self._agent.emit(RecognitionFailed(self._agent.epoch, str(error)))
            return ""
        if not transcript.text:
            return ""
        text, unanswered = transcript.text, ""
        if turn.over and self._is_own(text):
            text, unanswered = "", "the agent's own words"
        elif self._wake is not None and not turn.typed and self._time.now_s() > self._awake_until_s:
            rest = self._wake.after(text)
            text, unanswered = rest or "", "not addressed" if rest is None else "" if rest else "woken"
            if rest is not None:
                self._stay_awake()
        self._agent.emit(Transcribed(self._agent.epoch, transcript.text, True, transcript.language, unanswered))
        return text

    async def _reply(self, text: str) -> None:
        if self._replies:
            self._do(self._agent.interrupt)
        self._paused = False
        await self._deeds.join()
        if self._replying is not None:
            await asyncio.wait({self._replying})
        self._sounded = False
        self._asked_at = round(self._time.now_s() * RATE)
        self._enter("thinking")
        self._replying = asyncio.create_task(self._speak(text), name="sayline-reply")

    async def _speak(self, text: str) -> None:
        with contextlib.suppress(SaylineError):  # told by the event that ends the turn
            await self._agent.reply(text)
        self._stay_awake()
        if self._turns.empty():
            self._enter("listening")

    def _stay_awake(self) -> None:
        self._awake_until_s = self._time.now_s() + self._config.awake_s

    # ---- what the agent sounds ------------------------------------------------------------------------------------

    def _played(self, count: int, format: AudioFormat, at_s: float) -> Samples | None:
        """What the agent sounded while ``count`` samples of the microphone were taken, 16 kHz mono."""
        reference = self._listen_to_sink()
        if self._clock is None:
            self._clock = SampleClock(format.sample_rate, scheduled=False)
        start_s = self._clock.feed(count, at_s)
        if start_s is not None:
            self._place = round(start_s * RATE)
        self._received += count
        handed = round(self._received * RATE / format.sample_rate)
        length, self._handed = handed - self._handed, handed
        first, self._place = self._place, self._place + length
        return reference.between(first, first + length) if length else None

    def _listen_to_sink(self) -> Reference:
        sink = self._agent.sink
        if self._reference is None or sink is not self._sink:
            # A lost speaker is replaced by another, perhaps of another rate.
            self._sink, self._reference = sink, Reference(sink.format.sample_rate)
            sink.monitor = self._reference.take
        return self._reference

    def _follow_agent(self, sounds: bool, duration_s: float) -> None:
        self._quiet_s = 0.0 if sounds else self._quiet_s + duration_s
        if sounds and self._place > self._asked_at:  # the microphone lags behind: this may be the reply before
            self._sounded = True
            if self._replies or self.state == "listening":
                self._enter("speaking")
        elif self.state == "speaking" and self._quiet_s > _QUIET_S and not self._replies:
            self._enter("listening")

    def _enter(self, state: State) -> None:
        if state != self.state:
            self.state = state
            self._agent.emit(_EVENTS[state](self._agent.epoch))
