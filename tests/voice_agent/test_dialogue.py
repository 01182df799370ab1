"""The dialogue in virtual time: scripted ears and a scripted recogniser, the real agent on a simulated device."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
import pytest

from tests.voice_agent.scripted import Device, ScriptedModel
from tts_engine.types import AudioFormat
from voice_agent.agent import Agent
from voice_agent.captions import (
    Ducked,
    Event,
    Held,
    Interruption,
    Level,
    Listening,
    RecognitionFailed,
    Resumed,
    Speaking,
    Thinking,
    Transcribed,
)
from voice_agent.captions import TurnEnded as AgentTurnEnded
from voice_agent.dialogue import Dialogue, DialogueConfig
from voice_agent.ears.decisions import Decision, Duck, Hold, Interrupt, Resume, SpeechBegan, SpeechDropped, TurnEnded
from voice_agent.ears.recognizer import Transcript
from voice_agent.errors import InputError, RecognizerError, SourceError
from voice_agent.testing.clock import LoopClock, run_virtual
from voice_agent.testing.fake_engine import FakeSynthesizer

MICROPHONE = AudioFormat(16_000)
LONG = "This is the first sentence of a rather long answer. And here comes the second one of them. The third ends it."


class ScriptedEars:
    """Ears that decide what the test says; the user speaks from ``begin`` to ``end``."""

    def __init__(self) -> None:
        self.level_db = -60.0
        self.heard_s = 0.0
        self.barging = False
        self.began_s: float | None = None
        self.quiet_since_s: float | None = None
        self.waiting: list[Decision] = []
        self.words: list[str] = []
        self.played: list[np.ndarray | None] = []

    @property
    def speaking(self) -> bool:
        return self.began_s is not None

    @property
    def silence_s(self) -> float:
        return 0.0 if self.quiet_since_s is None else self.heard_s - self.quiet_since_s

    def speech(self) -> np.ndarray:
        assert self.began_s is not None
        return np.ones(round((self.heard_s - self.began_s) * 16_000), np.float32)

    def hear(self, words: str, upto_s: float | None = None) -> None:
        self.words.append(words)

    def feed(self, samples, format, played=None) -> list[Decision]:
        self.heard_s = round(self.heard_s + len(samples) / format.sample_rate, 6)
        self.played.append(played)
        decisions, self.waiting = self.waiting, []
        return decisions

    def begin(self) -> None:
        self.began_s, self.quiet_since_s = self.heard_s, None
        self.waiting.append(SpeechBegan(self.heard_s, self.heard_s))

    def pause(self) -> None:
        self.quiet_since_s = self.heard_s

    def end(self) -> None:
        assert self.began_s is not None
        ended_s = self.heard_s if self.quiet_since_s is None else self.quiet_since_s
        self.waiting.append(TurnEnded(self.heard_s, self.began_s, ended_s, self.speech()))
        self.began_s = self.quiet_since_s = None

    def drop(self) -> None:
        self.began_s = self.quiet_since_s = None
        self.waiting.append(SpeechDropped(self.heard_s, "noise"))


class ScriptedRecognizer:
    """Gives its texts one after another, each after ``takes_s``; an exception is raised."""

    def __init__(self, *texts: str | BaseException, takes_s: float = 0.3) -> None:
        self.texts = list(texts)
        self.takes_s = takes_s
        self.asked_s: list[float] = []
        self.languages: list[str] = []
        self.running = self.most_running = 0

    async def ready(self) -> None:
        pass

    async def transcribe(self, samples, language="auto") -> Transcript:
        self.asked_s.append(len(samples) / 16_000)
        self.languages.append(language)
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await asyncio.sleep(self.takes_s)
        finally:
            self.running -= 1
        text = self.texts.pop(0) if len(self.texts) > 1 else self.texts[0]
        if isinstance(text, BaseException):
            raise text
        return Transcript(text, "en", doubt="" if text else "silence")

    async def aclose(self) -> None:
        pass


class Scene:
    """What a scene works with."""

    def __init__(self, agent, device, dialogue, ears, recognizer, model, events) -> None:
        self.agent, self.device, self.dialogue, self.ears = agent, device, dialogue, ears
        self.recognizer, self.model, self.events = recognizer, model, events

    def said(self) -> list[tuple[str, str]]:
        return [(message["role"], message["content"]) for message in self.agent.conversation.messages]

    def states(self) -> list[str]:
        return [type(event).__name__ for event in self.events if isinstance(event, Listening | Thinking | Speaking)]

    def transcripts(self, final: bool = True) -> list[str]:
        return [event.text for event in self.events if isinstance(event, Transcribed) and event.final is final]

    def of(self, *kinds: type) -> list[Event]:
        return [event for event in self.events if isinstance(event, kinds)]

    async def listen(self, seconds: float) -> None:
        """The microphone gives silence for so long."""
        for _ in range(round(seconds / 0.02)):
            await self.dialogue.hear(np.zeros(320, np.float32), MICROPHONE)
            await asyncio.sleep(0.02)

    async def turn(self, seconds: float = 1.0, silence_s: float = 0.4) -> None:
        """The user speaks for so long, and the ears notice the end after the silence."""
        self.ears.begin()
        await self.listen(seconds)
        self.ears.pause()
        await self.listen(silence_s)
        self.ears.end()
        await self.listen(0.02)


def talk(
    scene: Callable[[Scene], Awaitable[None]],
    recognizer: ScriptedRecognizer | None = None,
    model: ScriptedModel | None = None,
    config: DialogueConfig | None = None,
    **options: Any,
) -> None:
    """Plays a scene in virtual time; afterwards no task is left."""

    async def main() -> None:
        device, ears, events = Device(), ScriptedEars(), []
        scripted = model or ScriptedModel([LONG])
        heard = recognizer or ScriptedRecognizer("Where is my parcel?")
        agent = Agent(scripted, device, synthesizer=FakeSynthesizer(), **options)

        async def collect() -> None:
            async for event in agent.events():
                events.append(event)  # noqa: PERF401 — they are looked at while they come

        collecting = asyncio.create_task(collect())
        await asyncio.sleep(0)
        async with agent:
            async with Dialogue(agent, ears, heard, config, clock=LoopClock()) as dialogue:
                await scene(Scene(agent, device, dialogue, ears, heard, scripted, events))
            assert device.monitor is None
        await collecting
        assert [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()] == []

    run_virtual(main())


# ---- a turn -------------------------------------------------------------------------------------------------------


def test_a_turn_is_written_down_answered_and_remembered() -> None:
    async def scene(s: Scene) -> None:
        await s.turn()
        await s.listen(12)
        assert s.said() == [("user", "Where is my parcel?"), ("assistant", LONG)]
        assert s.states() == ["Listening", "Thinking", "Speaking", "Listening"]
        assert s.transcripts() == ["Where is my parcel?"]
        assert s.recognizer.most_running == 1
        levels = s.of(Level)
        assert len(levels) == pytest.approx(s.ears.heard_s / 0.1, rel=0.2)
        heard = np.concatenate([np.zeros(320) if played is None else played for played in s.ears.played])
        assert np.abs(heard).max() > 0.2, "the ears are told what the agent sounds"

    talk(scene)


def test_the_text_is_there_when_the_turn_ends() -> None:
    """What was said is transcribed in the pause that ends the turn, so the answer is asked for at once."""

    async def scene(s: Scene) -> None:
        await s.turn(1.0, silence_s=0.5)
        assert s.transcripts() == ["Where is my parcel?"]
        assert len(s.model.asked) == 1
        assert len(s.recognizer.asked_s) == 1

    talk(scene, config=DialogueConfig(partial_s=None))


def test_partial_words_come_while_the_user_speaks_and_reach_the_ears() -> None:
    async def scene(s: Scene) -> None:
        s.ears.begin()
        await s.listen(2.2)
        assert s.transcripts(final=False) == ["I would", "I would like"]
        assert s.ears.words == ["I would", "I would like"]
        assert s.recognizer.asked_s == sorted(s.recognizer.asked_s)

    talk(scene, ScriptedRecognizer("I would", "I would like", "I would like to go"), config=DialogueConfig(partial_s=0.6))


def test_a_recogniser_slower_than_speech_piles_up_no_work() -> None:
    async def scene(s: Scene) -> None:
        s.ears.begin()
        await s.listen(20)
        assert s.recognizer.most_running == 1
        assert 3 <= len(s.recognizer.asked_s) <= 6
        s.ears.end()
        await s.listen(4)
        assert s.transcripts() == ["Where is my parcel?"]

    talk(scene, ScriptedRecognizer("Where is my parcel?", takes_s=2.5), config=DialogueConfig(partial_s=0.2))


def test_a_draft_of_less_than_the_turn_is_not_taken_for_it() -> None:
    async def scene(s: Scene) -> None:
        s.ears.begin()
        await s.listen(1.0)
        s.ears.pause()
        await s.listen(0.2)  # a draft begins
        s.ears.quiet_since_s = None
        await s.listen(1.0)
        s.ears.end()
        await s.listen(1.0)
        assert s.recognizer.asked_s[-1] == pytest.approx(2.2, abs=0.05)
        assert s.transcripts() == ["A table for two, please."]

    talk(
        scene,
        ScriptedRecognizer("A table", "A table for two, please.", takes_s=0.6),
        config=DialogueConfig(partial_s=None),
    )


@pytest.mark.parametrize("text", ["", " "])
def test_a_turn_without_words_is_not_answered(text: str) -> None:
    async def scene(s: Scene) -> None:
        await s.turn()
        await s.listen(2)
        assert s.said() == []
        assert s.transcripts() == []
        assert s.states() == ["Listening", "Thinking", "Listening"]

    talk(scene, ScriptedRecognizer(text.strip()))


# ---- over the agent's speech --------------------------------------------------------------------------------------


async def answering(s: Scene, after_s: float = 2.0) -> None:
    """The agent has answered, and is heard for so long."""
    await s.turn()
    async with asyncio.timeout(60):
        while not isinstance((s.of(Listening, Thinking, Speaking) or [None])[-1], Speaking):
            await s.listen(0.02)
    await s.listen(after_s)


def test_a_cough_ducks_and_holds_and_the_agent_goes_on_at_the_same_sample() -> None:
    async def scene(s: Scene) -> None:
        await answering(s)
        s.ears.begin()
        s.ears.waiting.append(Duck(s.ears.heard_s))
        await s.listen(0.1)
        assert s.device.gain_db == -12
        s.ears.waiting.append(Hold(s.ears.heard_s))
        await s.listen(0.1)
        held = s.device.playhead.heard_samples
        await s.listen(0.5)
        assert s.device.playhead.heard_samples == held
        s.ears.waiting.append(Resume(s.ears.heard_s, "noise"))
        s.ears.drop()
        await s.listen(0.5)
        assert s.device.gain_db == 0
        assert s.device.playhead.heard_samples > held
        await s.listen(12)
        assert s.said()[1:] == [("assistant", LONG)]
        assert [type(event) for event in s.of(Ducked, Held, Resumed, Interruption)] == [Ducked, Held, Resumed]
        assert s.states() == ["Listening", "Thinking", "Speaking", "Listening"]

    talk(scene)


def test_an_interruption_takes_the_turn_and_the_history_holds_what_was_heard() -> None:
    async def scene(s: Scene) -> None:
        await answering(s)
        s.ears.begin()
        s.ears.waiting += [Duck(s.ears.heard_s), Hold(s.ears.heard_s)]
        await s.listen(0.3)
        s.ears.waiting.append(Interrupt(s.ears.heard_s, s.ears.heard_s))
        await s.listen(0.5)
        s.ears.pause()
        await s.listen(0.4)
        s.ears.end()
        await s.listen(0.1)
        interruption = s.of(Interruption)[0]
        assert isinstance(interruption, Interruption)
        assert 0 < len(interruption.heard) < len(LONG)
        assert LONG.startswith(interruption.heard)
        await s.listen(12)
        assert s.said() == [
            ("user", "Where is my parcel?"),
            ("assistant", interruption.heard),
            ("user", "No, the other one."),
            ("assistant", LONG),
        ]
        assert s.device.gain_db == 0

    talk(scene, ScriptedRecognizer("Where is my parcel?", "No, the other one."), config=DialogueConfig(partial_s=None))


def test_words_over_the_agents_speech_are_written_down_at_once() -> None:
    async def scene(s: Scene) -> None:
        await answering(s)
        asked = len(s.recognizer.asked_s)
        s.ears.begin()
        s.ears.barging = True
        s.ears.waiting.append(Duck(s.ears.heard_s))
        await s.listen(0.7)
        assert len(s.recognizer.asked_s) > asked
        assert s.ears.words[-1] == "Wait a moment"

    talk(scene, ScriptedRecognizer("Where is my parcel?", "Wait a moment"), config=DialogueConfig(partial_s=None))


async def spoken_over(s: Scene) -> None:
    """The agent answers, and what is heard over it does not interrupt it."""
    await answering(s)
    before = len(s.ears.words)
    s.ears.begin()
    s.ears.barging = True
    await s.listen(0.8)
    assert s.ears.words[before:] == [""]


@pytest.mark.parametrize("draft", ["sentence", "Thank you."])
def test_a_word_like_the_agents_or_like_none_does_not_interrupt_it(draft: str) -> None:
    talk(spoken_over, ScriptedRecognizer("Where is my parcel?", draft), config=DialogueConfig(partial_s=None))


def test_the_agents_own_words_are_neither_an_interruption_nor_a_turn() -> None:
    async def scene(s: Scene) -> None:
        await spoken_over(s)
        s.ears.barging = False
        s.ears.end()
        await s.listen(12)
        assert [role for role, _ in s.said()] == ["user", "assistant"]
        final = [event for event in s.of(Transcribed) if isinstance(event, Transcribed) and event.final]
        assert [event.unanswered for event in final] == ["", "the agent's own words"]

    talk(
        scene,
        ScriptedRecognizer("Where is my parcel?", "the first sentence of a rather"),
        config=DialogueConfig(partial_s=None),
    )


# ---- while the agent thinks ---------------------------------------------------------------------------------------

SLOW = [2.0, LONG]


def test_a_cough_while_the_agent_thinks_only_delays_the_answer() -> None:
    async def scene(s: Scene) -> None:
        await s.turn()
        await s.listen(0.5)
        assert s.dialogue.state == "thinking"
        s.ears.begin()
        await s.listen(3)
        assert s.device.playhead.heard_samples == 0
        s.ears.drop()
        await s.listen(12)
        assert s.said() == [("user", "Where is my parcel?"), ("assistant", LONG)]
        assert len(s.model.asked) == 1

    talk(scene, model=ScriptedModel(SLOW))


@pytest.mark.parametrize("text", ["", "uh-huh", "okay"])
def test_a_sign_of_listening_while_the_agent_thinks_only_delays_the_answer(text: str) -> None:
    async def scene(s: Scene) -> None:
        await s.turn()
        await s.listen(0.5)
        await s.turn(0.5)
        await s.listen(14)
        assert s.said() == [("user", "Where is my parcel?"), ("assistant", LONG)]
        assert len(s.model.asked) == 1

    talk(scene, ScriptedRecognizer("Where is my parcel?", text), ScriptedModel(SLOW), DialogueConfig(partial_s=None))


def test_what_the_user_adds_while_the_agent_thinks_is_answered_together() -> None:
    async def scene(s: Scene) -> None:
        await s.turn()
        await s.listen(0.5)
        await s.turn()
        await s.listen(14)
        assert s.said() == [
            ("user", "Where is my parcel?"),
            ("user", "The one with the shoes."),
            ("assistant", LONG),
        ]
        assert len(s.model.asked) == 2
        assert s.model.asked[1] == [
            {"role": "user", "content": "Where is my parcel?"},
            {"role": "user", "content": "The one with the shoes."},
        ]

    talk(
        scene,
        ScriptedRecognizer("Where is my parcel?", "The one with the shoes."),
        ScriptedModel(SLOW),
        DialogueConfig(partial_s=None),
    )


def test_what_the_user_adds_before_the_text_is_known_is_one_turn() -> None:
    async def scene(s: Scene) -> None:
        await s.turn(1.0, silence_s=0.0)
        s.ears.begin()
        await s.listen(1.5)  # the first text is known by now
        assert s.model.asked == []
        s.ears.end()
        await s.listen(14)
        assert s.said()[0] == ("user", "I would like to return the shoes.")
        assert len(s.model.asked) == 1

    talk(scene, ScriptedRecognizer("I would like", "to return the shoes."), config=DialogueConfig(partial_s=None))


# ---- what goes wrong ----------------------------------------------------------------------------------------------


def test_a_recogniser_that_fails_is_told_and_the_dialogue_goes_on() -> None:
    async def scene(s: Scene) -> None:
        await s.turn()
        await s.listen(2)
        assert [event.error for event in s.of(RecognitionFailed)] == ["the server is tired"]
        assert s.dialogue.state == "listening"
        await s.turn()
        await s.listen(12)
        assert s.said() == [("user", "Where is my parcel?"), ("assistant", LONG)]

    tired = RecognizerError("the server is tired")
    # The draft, then the whole turn.
    talk(scene, ScriptedRecognizer(tired, tired, "Where is my parcel?"), config=DialogueConfig(partial_s=None))


def test_a_draft_that_failed_is_tried_again_at_the_end_of_the_turn() -> None:
    async def scene(s: Scene) -> None:
        await s.turn()
        await s.listen(12)
        assert s.said() == [("user", "Where is my parcel?"), ("assistant", LONG)]
        assert s.of(RecognitionFailed) == []

    talk(scene, ScriptedRecognizer(RecognizerError("once"), "Where is my parcel?"), config=DialogueConfig(partial_s=None))


def test_a_draft_that_the_recogniser_gave_up_is_tried_again_at_the_end_of_the_turn() -> None:
    async def scene(s: Scene) -> None:
        await s.turn()
        await s.listen(12)
        assert s.said() == [("user", "Where is my parcel?"), ("assistant", LONG)]

    talk(scene, ScriptedRecognizer(asyncio.CancelledError(), "Where is my parcel?"), config=DialogueConfig(partial_s=None))


def test_a_model_that_fails_is_told_and_the_dialogue_goes_on() -> None:
    async def scene(s: Scene) -> None:
        await s.turn()
        await s.listen(2)
        ended = s.of(AgentTurnEnded)[0]
        assert isinstance(ended, AgentTurnEnded)
        assert ended.error == "the model is tired"
        assert s.dialogue.state == "listening"
        await s.turn()
        await s.listen(12)
        assert s.said()[-1] == ("assistant", LONG)

    talk(scene, model=ScriptedModel([SourceError("the model is tired")], [LONG]))


def test_a_defect_is_raised_where_it_is_seen() -> None:
    async def scene(s: Scene) -> None:
        await s.turn()
        with pytest.raises(ZeroDivisionError):
            await s.listen(2)

    talk(scene, ScriptedRecognizer(ZeroDivisionError()))


@pytest.mark.parametrize("moment", ["in a turn", "in recognition", "thinking", "speaking", "held"])
def test_closing_at_any_moment_leaves_nothing(moment: str) -> None:
    async def scene(s: Scene) -> None:
        if moment == "in a turn":
            s.ears.begin()
            await s.listen(1.0)
        elif moment == "in recognition":
            await s.turn(silence_s=0.0)
        elif moment == "thinking":
            await s.turn()
            await s.listen(0.5)
        else:
            await answering(s)
            if moment == "held":
                s.ears.begin()
                s.ears.waiting += [Duck(0), Hold(0)]
                await s.listen(0.3)
        await s.dialogue.aclose()
        await s.dialogue.aclose()
        names = {task.get_name() for task in asyncio.all_tasks()}
        assert not {
            name for name in names if name.startswith(("sayline-dialogue", "sayline-scribe", "sayline-reply", "sayline-turn"))
        }
        played = s.device.playhead.heard_samples
        await asyncio.sleep(5)
        assert s.device.playhead.heard_samples == played

    talk(scene, model=ScriptedModel(SLOW if moment == "thinking" else [LONG]))


# ---- waking, typing, settings -------------------------------------------------------------------------------------


def test_only_what_follows_the_wake_phrase_is_answered_until_the_agent_falls_asleep_again() -> None:
    async def scene(s: Scene) -> None:
        await s.turn()
        await s.listen(1)
        assert s.said() == []
        await s.turn()
        await s.listen(1)
        assert s.said()[0] == ("user", "where is my parcel?")
        await s.listen(12)
        await s.turn()
        await s.listen(12)
        assert s.said()[2] == ("user", "Thanks, and my letter?")
        await s.listen(20)
        await s.turn()
        await s.listen(2)
        assert len(s.said()) == 4
        assert [e.unanswered for e in s.of(Transcribed) if isinstance(e, Transcribed) and e.final] == [
            "not addressed",
            "",
            "",
            "not addressed",
        ]

    texts = ("How was your day?", "Hey Computer, where is my parcel?", "Thanks, and my letter?", "So, as I said")
    talk(scene, ScriptedRecognizer(*texts), config=DialogueConfig(partial_s=None, wake="hey computer", awake_s=15))


def test_the_wake_phrase_alone_wakes() -> None:
    async def scene(s: Scene) -> None:
        await s.turn()
        await s.listen(1)
        await s.turn()
        await s.listen(1)
        assert s.said()[0] == ("user", "Where is my parcel?")

    talk(
        scene,
        ScriptedRecognizer("Hey, computer!", "Where is my parcel?"),
        config=DialogueConfig(partial_s=None, wake="hey computer"),
    )


def test_a_typed_question_is_answered_in_place_of_what_is_said() -> None:
    async def scene(s: Scene) -> None:
        await answering(s)
        await s.dialogue.ask("And my letter?")
        await s.listen(12)
        assert [role for role, _ in s.said()] == ["user", "assistant", "user", "assistant"]
        assert s.said()[2] == ("user", "And my letter?")
        assert len(s.said()[1][1]) < len(LONG)

    talk(scene)


def test_a_typed_yes_while_the_agent_thinks_is_no_sign_of_listening() -> None:
    async def scene(s: Scene) -> None:
        await s.dialogue.ask("Tell me a story.")
        await s.listen(0.5)
        assert s.dialogue.state == "thinking"
        await s.dialogue.ask("Yes")
        await s.listen(14)
        assert s.said() == [("user", "Tell me a story."), ("user", "Yes"), ("assistant", LONG)]
        assert len(s.model.asked) == 2

    talk(scene, model=ScriptedModel(SLOW))


def test_a_typed_question_does_not_wait_for_a_noise_to_end() -> None:
    async def scene(s: Scene) -> None:
        s.ears.begin()
        await s.listen(0.5)
        await s.dialogue.ask("And my letter?")
        await s.listen(3)
        assert s.ears.speaking
        assert s.said()[0] == ("user", "And my letter?")
        assert s.device.playhead.heard_samples > 0

    talk(scene)


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ({"language": "de"}, "auto, en or zh"),
        ({"partial_s": 0.0}, "partial_s"),
        ({"awake_s": -1}, "awake_s"),
        ({"wake": "…"}, "has no word"),
    ],
)
def test_settings_that_cannot_be_are_refused(options: dict[str, Any], names: str) -> None:
    with pytest.raises(InputError, match=names):
        DialogueConfig(**options)


def test_half_a_character_that_was_typed_is_a_question_mark() -> None:
    async def scene(s: Scene) -> None:
        await s.dialogue.ask("\ud800 And my letter?")
        await s.listen(3)
        assert s.said()[0] == ("user", "? And my letter?")

    talk(scene)


def test_the_language_may_change_meanwhile() -> None:
    async def scene(s: Scene) -> None:
        await s.turn()
        s.dialogue.language = "zh"
        await s.turn()
        assert s.recognizer.languages[0] == "auto"
        assert s.recognizer.languages[-1] == s.dialogue.language == "zh"

    talk(scene)
