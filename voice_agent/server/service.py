"""What all routes share: the settings, one engine, the model, the gate, the live streams and their end."""

from __future__ import annotations

from voice_agent.llm.deltas import ChatModel
from voice_agent.llm.demo import DemoChat
from voice_agent.llm.openai_client import OpenAIChat
from voice_agent.prompts import system_prompt
from voice_agent.protocols import Synthesizer
from voice_agent.server.auth import Gate
from voice_agent.server.config import ServerConfig
from voice_agent.server.refusals import RefusedError
from voice_agent.server.streams import Streams

__all__ = ["Service"]


class Service:
    """One server's state. ``gate`` admits, ``streams`` knows what is live, ``engine`` speaks for all."""

    def __init__(self, config: ServerConfig, engine: Synthesizer, model: ChatModel | None = None) -> None:
        self.config = config
        self.engine = engine
        self.gate = Gate(config)
        self.streams = Streams(config)
        self._model = model

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
                self._model = OpenAIChat(llm.model, base_url=llm.base_url, api_key=llm.api_key, system=system)
        return self._model
