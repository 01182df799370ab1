"""A spoken conversation: a chat model answers, the answer is spoken while it is written, the history is kept."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Self

from tts_engine.scheduler import Scheduler
from voice_agent.api import ENGINE_FORMAT, play
from voice_agent.conversation import Conversation
from voice_agent.llm.deltas import ChatModel
from voice_agent.sinks.base import Sink
from voice_agent.sinks.opening import open_sink
from voice_agent.text.prosody import ProsodyConfig
from voice_agent.turn import Report, Synthesizer, Turn, TurnConfig


class Agent:
    """Answers with a model's words in Sayline's voice. Use it as ``async with Agent(model) as agent``.

    ``model``: anything with ``reply(messages)`` (``voice_agent.llm.openai_client.OpenAIChat``, ``voice_agent.llm.demo.DemoChat``, your
    own). ``sink`` as in :func:`voice_agent.speak`. ``synthesizer``: an engine shared with others; None starts an own one.
    """

    def __init__(
        self,
        model: ChatModel,
        sink: Sink | str | os.PathLike[str] = "speaker",
        *,
        voice: str = "auto",
        speed: float = 1.0,
        config: TurnConfig | None = None,
        synthesizer: Synthesizer | None = None,
    ) -> None:
        self.conversation = Conversation()
        self.turn: Turn | None = None
        self._model = model
        self._sink = open_sink(sink) if isinstance(sink, str | os.PathLike) else sink
        self._config = config or TurnConfig(prosody=ProsodyConfig(voice=voice, speed=speed))
        self._own = Scheduler() if synthesizer is None else None
        self._synthesizer = synthesizer or self._own
        assert self._synthesizer is not None

    async def __aenter__(self) -> Self:
        """Opens the sink and loads the voice, so that both fail before anything is asked."""
        if self._own is not None:
            self._own.start()
        await self._sink.start(ENGINE_FORMAT)
        assert self._synthesizer is not None
        await self._synthesizer.ready()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._sink.__aexit__(kind, error, trace)
        finally:
            if self._own is not None:
                self._own.close()

    async def reply(self, text: str) -> Report:
        """Asks the model and speaks its answer; returns when the last sample was heard. Both go into the conversation.

        Raises SourceError when the model fails; what it had said by then is spoken and kept.
        """
        self.conversation.user(text)
        return await self._speak(self._model.reply(self.conversation.messages))

    async def say(self, text: str) -> Report:
        """Speaks ``text`` as the assistant's own words."""
        return await self._speak(text)

    async def _speak(self, source: object) -> Report:
        assert self._synthesizer is not None
        self.turn = Turn(self._synthesizer, self._config, pending_s=lambda: self._sink.playhead.pending_s)
        try:
            return await play(self.turn, source, self._sink)
        finally:
            self.conversation.assistant(self.turn.report().text)
