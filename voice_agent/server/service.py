"""What all routes share: the settings, one engine, the model, the gate, the live streams and their end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing

from tts_engine.scheduler import PROOF
from voice_agent.errors import BusyError, EngineError, SaylineError
from voice_agent.llm.deltas import ChatModel
from voice_agent.llm.demo import DemoChat
from voice_agent.llm.openai_client import OpenAIChat
from voice_agent.prompts import system_prompt
from voice_agent.protocols import Synthesizer
from voice_agent.server.auth import Gate
from voice_agent.server.config import ServerConfig
from voice_agent.server.encoders import load_codecs
from voice_agent.server.metrics import Metrics
from voice_agent.server.overload import WatchedEngine
from voice_agent.server.recognizers import make_recognizer
from voice_agent.server.refusals import RefusedError
from voice_agent.server.score import Score
from voice_agent.server.streams import Streams
from voice_agent.server.tracing import Tracer
from voice_agent.server.voices import Voices
from voice_agent.turn import Turn

__all__ = ["Service"]

_log = logging.getLogger(__name__)


class Service:
    """One server's state. ``gate`` admits, ``streams`` knows what is live, ``engine`` speaks for all.

    ``ready``: the engine is loaded; ``failure``: why it cannot be.
    """

    def __init__(self, config: ServerConfig, engine: Synthesizer, model: ChatModel | None = None) -> None:
        """Raises VoiceError where the configured voice does not exist."""
        self.config = config
        self.engine = WatchedEngine(engine, config.limits.wait_s, most=config.engine.sessions)
        self.ready = False
        self.failure: SaylineError | None = None
        self.voices = Voices.load()
        self.voices.find(config.voice)
        self.gate = Gate(config)
        self.metrics = Metrics()
        self.score = Score()
        self.streams = Streams(
            config,
            self.metrics,
            Tracer(config.logs.traces),
            answered=self.score.answered,
            waiting=lambda: self.rows()[2],
        )
        self._model = model
        self._own_model: OpenAIChat | None = None
        self.recognizer = make_recognizer(config.recognizer)
        self.on_start: list[Callable[[], None]] = []
        """What routes have to load, in a thread."""
        self.on_ready: list[Callable[[], None]] = []
        """What is to be done once it can speak."""
        self.on_close: list[Callable[[], Awaitable[None]]] = []
        """What routes have to end before the server is gone."""
        watch = self.metrics.watch
        watch("rows", "Places at the engine", lambda: self.rows()[0])
        watch("rows_used", "Places at the engine that are taken", lambda: self.rows()[1])
        watch("queue", "Sessions that wait for a place at the engine", lambda: self.rows()[2])
        watch("turns_limit", "How many turns may be spoken at once, as learned", lambda: self.engine.places)
        watch("engine_wait_seconds", "How long the listener waits that waits longest", lambda: self.engine.wait_s)
        watch("streams", "Streams that are live", lambda: len(self.streams.live))
        watch("health_score", "How quick the recent answers were, 0 to 100", lambda: self.score.value)

    async def start(self) -> None:
        """Waits for the engine, and speaks to nobody: what loads when it is first used shall not keep a request waiting.

        An error is kept: ``/health`` tells it, and so does every request that needs the engine.
        """
        try:
            for load in (load_codecs, *self.on_start):
                await asyncio.to_thread(load)
            await self.engine.ready()
            for text in PROOF.values():
                async with aclosing(Turn(self.engine).chunks(text)) as chunks:
                    async for _ in chunks:
                        pass
        except BusyError:  # requests that came while it loaded have taken what there is: it speaks
            self.ready = True
        except SaylineError as error:
            self.failure = error
        except Exception as error:  # nobody awaits this task: a failure is to be seen in /health
            _log.exception("the engine could not be started")
            self.failure = EngineError(f"the engine could not be started: {error!r}")
        else:
            self.ready = True
        if self.ready:
            for settle in self.on_ready:
                settle()

    def rows(self) -> tuple[int, int, int]:
        """Places at the engine, how many are taken, and how many sessions wait for one."""
        places = self.config.engine.sessions
        open_sessions = self.engine.sessions
        return places, min(places, open_sessions), max(0, open_sessions - places)

    def chat_model(self) -> ChatModel:
        """The model that answers, shared by all conversations. Raises RefusedError where none is set up."""
        if self._model is None:
            llm = self.config.llm
            if llm.kind == "none":
                raise RefusedError(501, "this server has no language model: set llm.kind (--llm)", code="no_model")
            if llm.kind == "demo":
                self._model = DemoChat()
            else:
                system = llm.system or system_prompt("en")
                self._model = self._own_model = OpenAIChat(llm.model, base_url=llm.base_url, api_key=llm.api_key, system=system)
        return self._model

    async def drain(self) -> None:
        """Lets nobody in any more, tells the live streams, and waits until all who are in have left or ``drain_s`` is over."""
        self.gate.draining = True
        self.streams.ending.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.config.drain_s):
                while self.streams.live or self.gate.open:  # noqa: ASYNC110 — they end in many places
                    await asyncio.sleep(0.05)

    async def close(self) -> None:
        """Ends what routes have begun, then releases the model's connections."""
        for end in self.on_close:
            await end()
        await self.recognizer.aclose()
        if self._own_model is not None:
            await self._own_model.aclose()
