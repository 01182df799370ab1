"""A live session: one client's turns, spoken in order, bounded on both sides. It knows no protocol and no socket.

The client's orders are plain calls; what is told back waits in a short line (:meth:`Session.next`) for whoever sends
it. Each turn is an *epoch*: what is cancelled never reaches the line again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

from voice_agent.llm.any_stream import stream_deltas
from voice_agent.llm.deltas import Delta, TextDelta
from voice_agent.protocols import Synthesizer
from voice_agent.server.config import Limits
from voice_agent.server.live_events import (
    Audio,
    Cancelled,
    Configured,
    Done,
    Event,
    Failed,
    Flushed,
    Heard,
    Leaving,
    Started,
    Words,
    Written,
)
from voice_agent.server.live_turn import LiveTurn
from voice_agent.server.refusals import RefusedError
from voice_agent.server.speaking import Speaking
from voice_agent.server.streams import Stream
from voice_agent.start_buffer import StartBuffer
from voice_agent.text.characters import whole_characters

__all__ = ["Session"]

_log = logging.getLogger(__name__)
_OF_A_TURN = (Started, Written, Audio, Words, Flushed, Done)
_REMEMBERED_TURNS = 16
_WAITING_TURNS = 64
_WAITING_ANSWERS = 64
_LEAST_WAIT_S = 0.001


class Session:
    """One client's turns. ``run`` speaks them; ``next`` gives what the client is to be told, in order."""

    def __init__(self, engine: Synthesizer, limits: Limits, stream: Stream, speaking: Speaking) -> None:
        self.epoch = 0
        self.speaking = speaking
        self.active_s = self._now_s()
        """When a turn last gave something, by the loop's clock."""
        self._engine = engine
        self._limits = limits
        self._stream = stream
        self._start = StartBuffer(common=stream.needs_s)
        self._waiting: deque[LiveTurn] = deque()  # the first one is spoken
        self._open: LiveTurn | None = None  # takes text
        self._recent: deque[LiveTurn] = deque(maxlen=_REMEMBERED_TURNS)
        self._line: deque[Event] = deque()
        self._audio_waits = 0  # events in the line
        self._told = asyncio.Event()  # something to take
        self._changed = asyncio.Event()  # room was made, turns came, or the session finishes
        self._task: asyncio.Task[None] | None = None
        self._sounds_until_s = 0.0
        self._cut_s: float | None = None  # when speech was interrupted, until the client is told
        self._reports = False
        self._finishing = False
        self._over = False

    # ---- the client's orders --------------------------------------------------------------------------------------

    def configure(self, speaking: Speaking) -> None:
        """Settings for the turns that begin from now on."""
        self.speaking = speaking
        self._tell(Configured())

    def append(self, text: str) -> None:
        """Text of the open turn; the first begins one. Raises RefusedError when too much waits: nothing of it is taken."""
        text = whole_characters(text)
        waiting = sum(turn.text.waiting_chars for turn in self._waiting)
        most = self._limits.text_chars
        if waiting + len(text) > most:
            raise RefusedError(
                429,
                f"{waiting} characters wait to be spoken, and {len(text)} more would exceed the limit of {most}: "
                "nothing of this message was taken; send it again when more has been spoken",
                code="too_much_text",
                param="text",
                retry_after_s=1.0,
            )
        self._turn().text.append(text)
        self._stream.asked()
        self._stream.text(len(text), text)

    def flush(self) -> None:
        """Speaks what the open turn has, without ending it; answered by Flushed."""
        self._turn().text.flush()

    def end(self) -> None:
        """The open turn is complete; answered by Done."""
        self._turn().text.end()
        self._open = None

    def say(self, source: Any) -> None:
        """A turn of its own for an LLM's stream; answered by Done."""
        if self._open is not None:
            self.end()
        self._begin(self._read(source))

    def cancel(self) -> None:
        """Drops everything that is not sent; answered by Cancelled. The client drops what it has not played."""
        now_s = self._now_s()
        playing = next((turn for turn in reversed(self._recent) if turn.position(now_s)), None)  # the newest that was heard
        heard = None if playing is None else playing.heard(playing.position(now_s))
        self._drop(lambda turn: turn.position(now_s))
        self._tell(Cancelled(self.epoch, heard))

    def truncate(self, epoch: int, samples: int) -> None:
        """The client has played ``samples`` of turn ``epoch`` and plays no more of anything; answered by Heard.

        Raises RefusedError for a turn that is not known (any more).
        """
        turn = self._known(epoch)
        self._stream.heard(turn.played(samples))
        self._drop(lambda other: samples if other is turn else other.sent if other.epoch < epoch else 0)
        self._tell(turn.heard(samples))

    def played(self, epoch: int, samples: int) -> None:
        """The client has played so many samples of a turn; from the first report on only reports count."""
        turn = self._known(epoch)
        self._reports = True
        for other in self._recent:
            if other.epoch <= epoch:
                self._stream.heard(other.played(samples if other is turn else other.sent))
        self._changed.set()

    def sample_rate(self, epoch: int) -> int:
        """In which the samples of a turn count, in Hz. Raises RefusedError for a turn that is not known (any more)."""
        return self._known(epoch).speaking.sample_rate

    def fail(self, error: RefusedError) -> None:
        """Tells of an order that could not be followed."""
        self._tell(Failed(error))

    def leave(self) -> None:
        """The server shuts down: speaks what is there, then finishes."""
        self._tell(Leaving())
        self.finish()

    def finish(self) -> None:
        """No more orders will come: what is there is spoken, then ``next`` gives None."""
        if self._open is not None:
            self.end()
        self._finishing = True
        self._changed.set()

    @property
    def quiet(self) -> bool:
        """Nothing is spoken or waits to be."""
        return not self._waiting

    async def settled(self) -> None:
        """Returns when few answers wait to be sent: a client that reads none is not read either."""
        await self._until(lambda: len(self._line) - self._audio_waits < _WAITING_ANSWERS)

    # ---- the two tasks that work for it ---------------------------------------------------------------------------

    async def run(self) -> None:
        """Speaks the turns until the session finishes; cancelled, nothing of it runs any more."""
        try:
            while True:
                # A turn whose audio still waits to be sent stays among the recent ones.
                await self._until(lambda: not self._audio_waits if self._waiting else self._finishing)
                if not self._waiting:
                    return
                await self._speak(self._waiting[0])
        finally:
            self._over = True
            self._told.set()

    async def next(self) -> Event | None:
        """The next thing to tell the client; None: that was all. What is taken counts as sent."""
        while not self._line:
            if self._over:
                return None
            self._told.clear()
            await self._told.wait()
        event = self._line.popleft()
        if isinstance(event, Audio):
            self._audio_waits -= 1
            turn = self._known(event.epoch)
            self._sounds_until_s = turn.sounds(max(self._now_s(), self._sounds_until_s), event.samples)
        elif isinstance(event, Done):
            self._stream.turn_over()
        elif isinstance(event, Cancelled | Heard) and self._cut_s is not None:
            self._stream.interrupted(self._now_s() - self._cut_s)
            self._cut_s = None
        self._changed.set()
        return event

    # ---- the inside -----------------------------------------------------------------------------------------------

    def _turn(self) -> LiveTurn:
        """The turn that takes text; begins one where none does."""
        if self._open is None:
            self._open = self._begin()
        return self._open

    def _begin(self, source: Any = None) -> LiveTurn:
        if len(self._waiting) >= _WAITING_TURNS:
            raise RefusedError(429, f"{_WAITING_TURNS} turns wait to be spoken", code="too_many_turns", retry_after_s=1.0)
        self.epoch += 1
        turn = LiveTurn(self.epoch, self.speaking, self._tell, self._stream, source, start=self._start)
        self._waiting.append(turn)
        self._changed.set()
        return turn

    async def _read(self, source: Any) -> AsyncGenerator[Delta, None]:
        """What an LLM writes, told to the client as it comes; not read faster than the client takes it."""
        epoch = self.epoch + 1
        async with aclosing(stream_deltas(source)) as deltas:
            async for delta in deltas:
                if isinstance(delta, TextDelta):
                    self._stream.text(len(delta.text), delta.text)
                    self._tell(Written(epoch, delta.text))
                    await self.settled()
                yield delta

    async def _speak(self, turn: LiveTurn) -> None:
        self._recent.append(turn)
        if self._reports:
            turn.played(0)
        self._task = asyncio.create_task(turn.run(self._engine, self._room, self._pending_s), name="sayline-live-turn")
        try:
            await asyncio.wait({self._task})
        finally:
            task, self._task = self._task, None
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a turn failed", exc_info=error)
            self._tell(Failed(RefusedError(500, "the turn failed inside the server", code="failed"), turn.epoch))
            turn.text.close()
        if self._waiting and self._waiting[0] is turn:
            self._waiting.popleft()

    def _drop(self, heard: Callable[[LiveTurn], int]) -> None:
        """Forgets all turns and what of them waits to be sent; ``heard`` tells how much of each was and will be heard."""
        if self._waiting or self._pending_s() > 0:
            self._cut_s = self._now_s()
        for turn in (*self._recent, *self._waiting):
            turn.stop(heard(turn))
        self._waiting.clear()
        self._open = None
        if self._task is not None:
            self._task.cancel()
        self._line = deque(event for event in self._line if not isinstance(event, _OF_A_TURN))
        self._audio_waits = 0
        self._sounds_until_s = 0.0
        self._changed.set()

    def _known(self, epoch: int) -> LiveTurn:
        for turn in self._recent:
            if turn.epoch == epoch:
                return turn
        raise RefusedError(
            400, f"turn {epoch} is none of the last {_REMEMBERED_TURNS} that were spoken", code="unknown_turn", param="epoch"
        )

    def _tell(self, event: Event) -> None:
        self._line.append(event)
        self._audio_waits += isinstance(event, Audio)
        if isinstance(event, _OF_A_TURN):
            self.active_s = self._now_s()
        self._told.set()

    def _pending_s(self) -> float:
        """Seconds of audio that were given out and are not played; none where the client sets the pace by taking them."""
        if self.speaking.whole:
            return 0.0
        if self._reports:
            return sum(turn.unplayed_s() for turn in self._recent)
        return max(0.0, self._sounds_until_s - self._now_s())

    async def _room(self) -> None:
        """Returns when the client may be sent more."""
        began_s = self._now_s()
        while self._audio_waits or self._pending_s() > self.speaking.ahead_s:
            self._changed.clear()
            excess_s = self._pending_s() - self.speaking.ahead_s
            by_time = not self._audio_waits and not self._reports
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(_LEAST_WAIT_S, excess_s) if by_time else None):
                    await self._changed.wait()
        self._stream.blocked(self._now_s() - began_s)

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._changed.clear()
            await self._changed.wait()

    def _now_s(self) -> float:
        return asyncio.get_running_loop().time()
