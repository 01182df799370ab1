"""A whole conversation on real audio paths: another engine's voice, noise and an echo at the microphone, real recognition.

Needs PulseAudio, flite, espeak-ng and sox as programs, PortAudio, and Whisper's base model from its packages.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import numpy as np
import pytest

from tests import recogniser
from tests.voice_agent import room
from tests.voice_agent.ears import sounds
from tests.voice_agent.ears.sounds import cough, sox, spoken
from tests.voice_agent.scripted import ScriptedModel
from tests.voice_agent.sinks import pulse
from tts_engine.engine import Engine
from tts_engine.scheduler import Scheduler
from tts_engine.types import AudioFormat
from voice_agent.agent import Agent
from voice_agent.captions import Caption, Event, Held, Interruption, Level, Resumed
from voice_agent.dialogue import Dialogue
from voice_agent.ears.config import BargeInConfig, EarsConfig
from voice_agent.ears.ears import Ears
from voice_agent.ears.whisper import WhisperRecognizer
from voice_agent.microphone import Microphone
from voice_agent.sinks.speaker import SpeakerSink

MISSING = "; ".join(filter(None, (pulse.missing(), sounds.missing())))
pytestmark = [pytest.mark.peer, pytest.mark.slow, pytest.mark.skipif(bool(MISSING), reason=MISSING or "all is there")]

WEATHER = (
    "Tomorrow will be mostly sunny, with a light wind from the west. In the morning it is still cold, about four degrees. "
    "By noon it gets warmer, and in the afternoon you can sit outside without a coat. In the evening a few clouds come in "
    "from the sea, but it stays dry until midnight. The day after tomorrow looks much the same."
)
INVOICE = "Of course. The invoice was sent on Monday."
ECHO = ((0.04, 12.0), (0.053, 20.0), (0.071, 26.0))
LOUD_ECHO = ((0.1, 6.0), (0.113, 14.0), (0.131, 20.0))


class Scene:
    """A dialogue in a room; ``events`` is what has happened, without levels and captions."""

    def __init__(self, agent: Agent, dialogue: Dialogue, place: room.Room) -> None:
        self.agent, self.dialogue, self.room = agent, dialogue, place
        self.events: list[Event] = []
        self.heard_at: list[tuple[type, int]] = []
        """Samples heard when the agent was held, and when it went on."""

    async def collect(self) -> None:
        async for event in self.agent.events():
            if isinstance(event, Held | Resumed):
                self.heard_at.append((type(event), self.agent.sink.playhead.heard_samples))
            if not isinstance(event, Level | Caption):
                self.events.append(event)

    def of(self, kind: type) -> list[Event]:
        return [event for event in self.events if isinstance(event, kind)]

    async def until(self, condition: Callable[[], object], limit_s: float = 30.0) -> None:
        async with asyncio.timeout(limit_s):
            while not condition():  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    def messages(self) -> list[tuple[str, str]]:
        return [(message["role"], message["content"]) for message in self.agent.conversation.messages]


@contextlib.asynccontextmanager
async def dialogue(model: ScriptedModel, engine: Engine, place: room.Room) -> AsyncIterator[Scene]:
    """The dialogue of ``sayline chat --mic``, with its parts in reach."""
    scheduler = Scheduler(lambda: engine)
    ears = Ears(EarsConfig(barge_in=BargeInConfig(words_s=0.6)))
    speaker = SpeakerSink(format=AudioFormat(room.RATE))
    try:
        async with (
            WhisperRecognizer() as whisper,
            Agent(model, speaker, synthesizer=scheduler) as agent,
            Microphone() as microphone,
            Dialogue(agent, ears, whisper) as talk,
        ):
            scene = Scene(agent, talk, place)
            collecting = asyncio.create_task(scene.collect())

            async def listen() -> None:
                async for sound in microphone:
                    await talk.hear(sound.samples, microphone.format, sound.at_s)

            listening = asyncio.create_task(listen())
            await asyncio.sleep(0.5)
            try:
                yield scene
                assert not listening.done(), "the microphone has failed"
                assert microphone.dropped_s == 0
            finally:
                listening.cancel()
                collecting.cancel()
    finally:
        scheduler.close()


async def test_asked_coughed_at_listened_to_and_interrupted(engine: Engine, tmp_path: Path) -> None:
    recogniser.require()
    noise = sox(20, "pinknoise", level=0.004)
    with room.running(tmp_path, echo=ECHO, noise=noise) as place:
        async with dialogue(ScriptedModel([WEATHER], [INVOICE]), engine, place) as scene:
            await place.say(spoken("What will the weather be like tomorrow?"))
            await scene.until(lambda: scene.dialogue.state == "speaking")
            await asyncio.sleep(2.5)
            await place.say(cough(1))
            await asyncio.sleep(2.5)
            await place.say(0.7 * spoken("uh-huh", "espeak-ng"))
            await asyncio.sleep(2.5)
            assert scene.of(Interruption) == [], f"a cough and a sign of listening stopped the agent: {scene.events}"
            assert scene.dialogue.state == "speaking"

            await place.say(spoken("Wait, stop. What about my invoice?"))
            await scene.until(lambda: len(scene.messages()) == 4)

            (interruption,) = scene.of(Interruption)
            assert isinstance(interruption, Interruption)
            assert 0 < len(interruption.heard) < len(WEATHER)
            assert WEATHER.startswith(interruption.heard)
            roles, contents = zip(*scene.messages(), strict=True)
            assert roles == ("user", "assistant", "user", "assistant")
            assert "weather" in contents[0].lower()
            assert contents[1] == interruption.heard
            assert "invoice" in contents[2].lower()
            assert contents[3] == INVOICE
            await scene.until(lambda: scene.dialogue.state == "listening")
            # Each hold that was undone went on where it stood: nothing was skipped, nothing played meanwhile.
            pairs = list(zip(scene.heard_at, scene.heard_at[1:], strict=False))
            undone = [resumed - held for (kind, held), (after, resumed) in pairs if (kind, after) == (Held, Resumed)]
            assert all(0 <= played < 2_400 for played in undone), undone


async def test_a_loud_echo_never_interrupts(engine: Engine, tmp_path: Path) -> None:
    recogniser.require()
    with room.running(tmp_path, echo=LOUD_ECHO) as place:
        async with dialogue(ScriptedModel([WEATHER]), engine, place) as scene:
            await place.say(spoken("What will the weather be like tomorrow?"))
            await scene.until(lambda: len(scene.messages()) == 2, limit_s=60)
            assert scene.of(Interruption) == [], f"the agent stopped itself: {scene.events}"
            assert scene.messages()[1] == ("assistant", WEATHER)
            await asyncio.sleep(1.5)
            assert len(scene.messages()) == 2, "the echo of the end is no turn"
            loudest = np.abs(place.server.heard()).max()
            assert loudest > 0.1
