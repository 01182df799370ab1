"""``sayline chat --mic``: a spoken question, a spoken answer; both may be interrupted."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

from voice_agent.agent import Agent
from voice_agent.captions import Event, Transcribed, TurnEnded
from voice_agent.cli.chat import ChatOptions, logged, open_model
from voice_agent.cli.display import Display, LiveDisplay, PlainDisplay
from voice_agent.cli.keys import on_key
from voice_agent.cli.running import show_report, warn
from voice_agent.conversation import Conversation
from voice_agent.dialogue import Dialogue, DialogueConfig
from voice_agent.ears import Ears, EarsConfig
from voice_agent.ears.config import BargeInConfig
from voice_agent.ears.hearing import Hearing
from voice_agent.ears.push_to_talk import PushToTalk
from voice_agent.ears.recognizer import Recognizer, SpokenLanguage
from voice_agent.ears.remote import RemoteRecognizer
from voice_agent.ears.whisper import WhisperRecognizer
from voice_agent.llm.demo import DemoChat
from voice_agent.microphone import Microphone
from voice_agent.prompts import system_prompt
from voice_agent.sinks.base import Sink
from voice_agent.tools import load_tools

_WORDS_S, _REMOTE_WORDS_S = 0.6, 1.0
"""How long a short utterance over the agent's speech waits for its words."""
_UNREAD = "(listening; the standard input is not read, and its end does not end the conversation: Ctrl-C or SIGINT does)"
_MUTE_S = 3.0
_MUTE = "the microphone gives nothing but zeros: is it muted, or is this program not allowed to use it?"


@dataclass(frozen=True, slots=True)
class MicOptions:
    """The options of ``sayline chat --mic``.

    ``input``: a device's name or number; ``stt``: None for the installed base model, a folder, "remote", or the address of
    a server, which is asked for ``stt_model``.
    """

    input: str | None = None
    stt: str | None = None
    stt_model: str = "whisper-1"
    push_to_talk: bool = False
    headphones: bool = False
    language: SpokenLanguage = "auto"
    wake: str | None = None

    @property
    def remote(self) -> bool:
        return self.stt is not None and (self.stt == "remote" or self.stt.startswith(("http://", "https://")))

    def dialogue(self) -> DialogueConfig:
        """Partial words cost a request each where the recogniser is a server, so they are asked for in pauses only."""
        config = DialogueConfig(self.language, wake=self.wake)
        return replace(config, partial_s=None) if self.remote else config


async def converse_by_mic(
    options: ChatOptions, mic: MicOptions, sink: Sink, voice: str, speed: float, timeline: bool, json: bool
) -> int:
    """Runs the conversation until it is stopped, or the microphone is lost."""
    tools = load_tools(options.tools) if options.tools is not None else []
    conversation = Conversation.open(options.resume) if options.resume is not None else None
    config, ears = mic.dialogue(), _ears(mic)
    device = int(mic.input) if mic.input is not None and mic.input.isdecimal() else mic.input
    async with (
        open_model(options.llm, options.model, options.base_url, options.system or system_prompt("en")) as model,
        contextlib.AsyncExitStack() as stack,
    ):
        if isinstance(model, DemoChat):
            print(f"({model.label})", file=sys.stderr)
        recognizer = _recognizer(mic)
        stack.push_async_callback(recognizer.aclose)
        await recognizer.ready()
        # Before the sink: where there is no device at all, it is the microphone that cannot be done without.
        microphone = await stack.enter_async_context(Microphone(device))
        agent = Agent(model, sink, voice=voice, speed=speed, tools=tools, conversation=conversation)
        await stack.enter_async_context(logged(agent, options.events))
        await stack.enter_async_context(agent)
        await stack.enter_async_context(_shown(agent, _display(mic, json), timeline, json))
        dialogue = await stack.enter_async_context(Dialogue(agent, ears, recognizer, config))
        if isinstance(ears, PushToTalk):  # which refuses a standard input that is no terminal
            await stack.enter_async_context(on_key(" ", _toggle(ears)))
        elif sys.stdin is None or not sys.stdin.isatty():
            print(_UNREAD, file=sys.stderr)
        await _listen(microphone, dialogue)
    return 0


async def _listen(microphone: Microphone, dialogue: Dialogue) -> None:
    told = False
    async for sound in microphone:
        await dialogue.hear(sound.samples, microphone.format, sound.at_s)
        if microphone.silent_s > _MUTE_S and not told:
            warn(_MUTE)
            told = True


def _toggle(ears: PushToTalk) -> Callable[[], None]:
    return lambda: ears.release() if ears.pressed else ears.press()


def _recognizer(mic: MicOptions) -> Recognizer:
    if not mic.remote:
        return WhisperRecognizer(mic.stt)
    return RemoteRecognizer(mic.stt_model, base_url=None if mic.stt == "remote" else mic.stt)


def _ears(mic: MicOptions) -> Hearing:
    if mic.push_to_talk:
        return PushToTalk()
    barge_in = BargeInConfig(words_s=_REMOTE_WORDS_S if mic.remote else _WORDS_S)
    return Ears(EarsConfig(echo="headphones" if mic.headphones else "guard", barge_in=barge_in))


def _display(mic: MicOptions, json: bool) -> Display | None:
    if json:
        return None
    if sys.stdout.isatty():
        return LiveDisplay(hint="space: talk, space: done" if mic.push_to_talk else "")
    return PlainDisplay()


@contextlib.asynccontextmanager
async def _shown(agent: Agent, display: Display | None, timeline: bool, json: bool) -> AsyncGenerator[None, None]:
    """Shows what happens while the block runs."""
    asked: list[str] = []

    def report(event: Event) -> None:
        if isinstance(event, Transcribed) and event.final and not event.unanswered:
            asked.append(event.text)
        elif isinstance(event, TurnEnded):
            show_report(event.report, timeline, json, asked=" ".join(asked))
            asked.clear()

    async def follow() -> None:
        async with aclosing(agent.events()) as events:
            async for event in events:
                if display is not None:
                    display.show(event)
                report(event)

    with display if display is not None else contextlib.nullcontext():
        following = asyncio.create_task(follow())
        await asyncio.sleep(0)  # so that it listens before anything happens
        try:
            yield
        finally:
            following.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await following
