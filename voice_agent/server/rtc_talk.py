"""The conversation with one WebRTC peer: its microphone and messages to the agent, the agent's speech and events to it.

← {"type": "text", "text": "…"}            a typed question, in place of what is being said
← {"type": "interrupt"}
← {"type": "settings", "voice": "auto", "speed": 1.0, "language": null}
← {"type": "played", "delay_s": 0.12}      how long after it was sent the speech sounds at the peer's
← {"type": "close"}
→ {"event": "Hello", "model": "…", "microphone": true, "why": ""}
→ {"event": "SentenceTimes", "elapsed_s": 0.4, "index": 0, "text": "…", "token_s": 0.2, …}    again when more is known
→ {"event": "Failed", "message": "…"}
→ the agent's own events (``voice_agent.captions``), of TurnEnded only what a listener needs
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from types import TracebackType
from typing import Any, Self

from pydantic import ValidationError

from tts_engine.types import AudioChunk, AudioFormat
from voice_agent.agent import Agent
from voice_agent.captions import Event, Interruption, Level, TurnBegan, TurnEnded, as_json
from voice_agent.dialogue import Dialogue
from voice_agent.ears.config import BargeInConfig, EarsConfig
from voice_agent.ears.ears import Ears
from voice_agent.errors import SaylineError
from voice_agent.llm.deltas import ChatModel, Delta, Message, TextDelta
from voice_agent.protocols import Synthesizer
from voice_agent.server.rtc_messages import Settings
from voice_agent.server.rtc_peer import Peer
from voice_agent.server.service import Service
from voice_agent.server.streams import Stream
from voice_agent.sinks.webrtc import RATE, WebRtcSink
from voice_agent.text.prosody import ProsodyConfig
from voice_agent.turn import Turn, TurnConfig

__all__ = ["MeteredSink", "Talk"]

_LOOK_S = 0.5
_TIMES_S = 0.05
_MOST_DELAY_S = 3600.0
_MICROPHONE = AudioFormat(RATE)
_EARS = EarsConfig(echo="guard", barge_in=BargeInConfig(words_s=0.6))  # what is left of the browser's own cancelling


class MeteredSink(WebRtcSink):
    """Tells the server's stream what goes out. ``turn`` gives the one that is played."""

    turn: Callable[[], Turn | None] = staticmethod(lambda: None)

    def __init__(self, stream: Stream) -> None:
        super().__init__()
        self._stream = stream
        self._free_s = time.monotonic()  # since when the next packet is waited for

    async def write(self, chunk: AudioChunk) -> None:
        began_s = time.monotonic()
        if (turn := self.turn()) is not None:
            self._stream.waited(turn.timeline, chunk, began_s - self._free_s)
            if chunk.start_sample == 0 and chunk.utterance.index == 0:
                self._stream.complete(turn.timeline.elapsed_s() - (turn.timeline.sentences[0].closed_s or 0.0))
        self._stream.sent(chunk)
        await super().write(chunk)
        self._free_s = time.monotonic()
        self._stream.blocked(self._free_s - began_s)


class _Metered:
    """A model that tells the server's stream what it says."""

    def __init__(self, model: ChatModel, stream: Stream) -> None:
        self._model = model
        self._stream = stream

    async def reply(self, messages: Sequence[Message], *, tools: Sequence[Mapping[str, Any]] = ()) -> AsyncIterator[Delta]:
        self._stream.asked()
        async for delta in self._model.reply(messages, tools=tools):
            if isinstance(delta, TextDelta):
                self._stream.text(len(delta.text), delta.text)
            yield delta


class Talk:
    """``async with Talk(…) as talk: await talk.run()`` lasts until the peer is gone, the time is up or the server ends."""

    def __init__(
        self, service: Service, stream: Stream, peer: Peer, sink: MeteredSink, settings: Settings, engine: Synthesizer
    ) -> None:
        """``sink``: the peer's. Raises RefusedError where there is no model, VoiceError for an unknown voice."""
        self._service = service
        self._stream = stream
        self._peer = peer
        self._model = service.chat_model()
        self._agent = Agent(
            _Metered(self._model, stream),
            sink,
            config=_config(service, settings, TurnConfig(source_stall_s=120.0, sink_stall_s=30.0)),
            synthesizer=engine,
        )
        sink.turn = lambda: self._agent.turn
        self._dialogue = Dialogue(self._agent, Ears(_EARS), service.recognizer)
        self._dialogue.language = settings.language or "auto"
        self._open = AsyncExitStack()
        self._told: dict[int, dict[str, object]] = {}  # the times of the turn's sentences, as the peer knows them
        self._complete = 0  # sentences of which all was told
        self._timed: Turn | None = None  # the turn that they belong to
        self._speech = False  # whether the peer was told that the user is heard
        self._active_s = time.monotonic()

    async def __aenter__(self) -> Self:
        await self._open.enter_async_context(self._agent)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._agent.interrupt()
        await self._open.__aexit__(kind, error, trace)

    async def run(self) -> None:
        """Serves the peer until it is over."""
        work = [
            asyncio.create_task(work, name=f"sayline-peer-{name}")
            for name, work in {
                "events": self._tell_events(),
                "times": self._tell_times(),
                "commands": self._obey(),
                "sound": self._hear(),
                "watch": self._watch(),
            }.items()
        ]
        try:
            await asyncio.sleep(0)  # the events are listened to before there are any
            async with self._dialogue:
                done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    task.result()
        finally:
            for task in work:
                task.cancel()
            await asyncio.wait(work)

    # ---- from the peer --------------------------------------------------------------------------------------------

    async def _hear(self) -> None:
        """The microphone, once it is known that speech can be recognised."""
        why = ""
        try:
            await self._service.recognizer.ready()
        except SaylineError as error:
            why = str(error)
        self._tell("Hello", model=getattr(self._model, "label", ""), microphone=not why, why=why)
        async for samples, at_s in self._peer.sound():
            if not why:
                await self._dialogue.hear(samples, _MICROPHONE, at_s - len(samples) / RATE)

    async def _obey(self) -> None:
        async for command in self._peer.commands():
            try:
                await self._do(command)
            except (SaylineError, ValidationError) as error:
                self._tell("Failed", message=_message(error))

    async def _do(self, command: dict[str, Any]) -> None:
        match command:
            case {"type": "played", "delay_s": int() | float() as delay_s}:
                self._peer.sink.sound_delay(float(max(-_MOST_DELAY_S, min(delay_s, _MOST_DELAY_S))))
                return  # no sign of a listener who is still interested
            case {"type": "text", "text": str(text)} if text.strip():
                await self._ask(text)
            case {"type": "interrupt"}:
                await self._agent.interrupt()
            case {"type": "settings", **values}:
                settings = Settings.model_validate(values)
                self._agent.config = _config(self._service, settings, self._agent.config)
                self._dialogue.language = settings.language or "auto"
            case {"type": "close"}:
                self._peer.end("ok")
            case _:
                self._tell("Failed", message="unknown message: there are text, interrupt, settings, played and close")
        self._active_s = time.monotonic()

    async def _ask(self, text: str) -> None:
        most = self._service.config.limits.text_chars
        if len(text) > most:
            self._tell("Failed", message=f"the text has {len(text)} characters, the limit is {most}")
            return
        await self._dialogue.ask(text)

    # ---- to the peer ----------------------------------------------------------------------------------------------

    def _tell(self, event: str, **values: object) -> None:
        self._peer.tell(json.dumps({"event": event, **values}, ensure_ascii=False))

    async def _tell_events(self) -> None:
        async with contextlib.aclosing(self._agent.events()) as events:
            async for event in events:
                if isinstance(event, Level):
                    self._tell_speech(event.speech)
                    continue
                self._active_s = time.monotonic()
                if isinstance(event, TurnBegan):
                    self._told.clear()
                    self._complete = 0
                    self._timed = self._agent.turn
                self._tell_new_times()
                self._account(event)
                self._peer.tell(_ended(event) if isinstance(event, TurnEnded) else as_json(event))

    async def _tell_times(self) -> None:
        while True:
            await asyncio.sleep(_TIMES_S)
            self._tell_new_times()

    def _tell_new_times(self) -> None:
        """What has become known of the turn's sentences since it was last told."""
        if self._timed is None:
            return
        timeline = self._timed.timeline
        for row in timeline.sentences[self._complete :]:
            times = row.as_dict()
            del times["audio_s"]  # grows with each packet
            if self._told.get(row.index) != times:
                self._told[row.index] = times
                between = self._timed.record.raw.between(timeline.sentences[row.index - 1].end if row.index else 0, row.start)
                elapsed_s = round(timeline.elapsed_s(), 5)
                self._tell("SentenceTimes", elapsed_s=elapsed_s, paragraph="\n" in between, **times)
        while self._told.get(self._complete, {}).get("heard_s") is not None:
            del self._told[self._complete]
            self._complete += 1

    def _tell_speech(self, speech: bool) -> None:
        if speech != self._speech:
            self._speech = speech
            self._tell("Hearing", speech=speech)

    def _account(self, event: Event) -> None:
        if isinstance(event, Interruption):
            self._stream.interrupted(event.silence_s)
        elif isinstance(event, TurnEnded):
            self._stream.heard(event.report.heard_s)
            self._stream.turn_over()

    # ---- the end --------------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        """Returns when it is over."""
        limits = self._service.config.limits
        began_s = time.monotonic()
        while not self._peer.over.is_set():
            now_s = time.monotonic()
            if self._stream.ending.is_set() and self._dialogue.state == "listening":
                self._peer.end("the server shuts down")
            elif now_s - began_s > limits.session_s:
                self._peer.end("the session's time is up")
            elif now_s - self._active_s > limits.idle_s:
                self._peer.end("idle")
            else:
                self._peer.look()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await self._peer.over.wait()
        if self._peer.why != "ok":
            self._tell("Failed", message=f"the conversation was ended: {self._peer.why}")


def _config(service: Service, settings: Settings, config: TurnConfig) -> TurnConfig:
    choice = service.voices.find(settings.voice)
    prosody = ProsodyConfig(voice=choice.speaker, pitch=choice.pitch, speed=settings.speed, language=settings.language)
    return replace(config, prosody=prosody)


def _ended(event: TurnEnded) -> str:
    report = event.report
    return json.dumps(
        {
            "event": "TurnEnded",
            "epoch": event.epoch,
            "error": event.error,
            "heard": report.heard,
            "interrupted": report.interrupted,
            "audio_s": round(report.audio_s, 3),
            "heard_s": round(report.heard_s, 3),
        },
        ensure_ascii=False,
    )


def _message(error: SaylineError | ValidationError) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return str(error)
