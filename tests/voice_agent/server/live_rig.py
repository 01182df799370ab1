"""A live session in virtual time, with a client that takes everything at once and notes when."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from voice_agent.server.config import Limits
from voice_agent.server.live_events import Audio, Event, Words
from voice_agent.server.live_session import Session
from voice_agent.server.service import Service
from voice_agent.server.speaking import Speaking
from voice_agent.testing.fake_engine import FakeSynthesizer

E = TypeVar("E")


class Client:
    """Everything that a session told, in order."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.events: list[Event] = []
        self.times: list[float] = []
        self._reads = asyncio.Event()
        self._reads.set()
        self._new = asyncio.Event()

    async def take(self) -> None:
        while (event := await self.session.next()) is not None:
            self.events.append(event)
            self.times.append(asyncio.get_running_loop().time())
            self._new.set()
            await self._reads.wait()

    def read(self, reads: bool) -> None:
        """Whether events are taken from now on."""
        (self._reads.set if reads else self._reads.clear)()

    def of(self, kind: type[E], epoch: int | None = None) -> list[E]:
        return [e for e in self.events if isinstance(e, kind) and (epoch is None or e.epoch == epoch)]  # type: ignore[attr-defined]

    def audio(self, epoch: int) -> bytes:
        return b"".join(event.data for event in self.of(Audio, epoch))

    def words(self, epoch: int) -> list[tuple[str, float, float]]:
        """The words as they were told last."""
        last = {word.index: word for event in self.of(Words, epoch) for word in event.words}
        assert list(last) == list(range(len(last)))
        return [(word.text, word.start_ms, word.end_ms) for word in last.values()]

    async def until(self, kind: type[E], count: int = 1, limit_s: float = 600.0) -> E:
        """The ``count``-th event of a kind, when it is there."""
        async with asyncio.timeout(limit_s):
            while len(self.of(kind)) < count:
                self._new.clear()
                await self._new.wait()
        return self.of(kind)[count - 1]


@asynccontextmanager
async def session_with(
    config: Any, engine: Any = None, limits: Limits | None = None, **speaking: Any
) -> AsyncGenerator[tuple[Session, Client], None]:
    """A running session; at the end it finishes, and everything of it must have been told."""
    engine = engine or FakeSynthesizer()
    with Service(config, engine).streams.open("live", "test", "auto") as stream:
        session = Session(engine, limits or config.limits, stream, Speaking(**speaking))
        client = Client(session)
        before = asyncio.all_tasks()
        tasks = [asyncio.create_task(session.run()), asyncio.create_task(client.take())]
        try:
            yield session, client
            session.finish()
            async with asyncio.timeout(3600):
                await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        left = asyncio.all_tasks() - before
        assert not left, left
