"""Writes a turn down while it is spoken: partial words on the way, and the whole text as soon as the turn ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from voice_agent.ears.decisions import TurnEnded
from voice_agent.ears.hearing import Hearing
from voice_agent.ears.recognizer import Recognizer, SpokenLanguage, Transcript
from voice_agent.errors import SaylineError

__all__ = ["Scribe"]

T = TypeVar("T")

_PAUSE_S = 0.12
"""Silence after which the user may be done: what was said is written down at once, and is there when the turn ends."""
_FIRST_S = 0.35
"""Speech over the agent's that may hold a word."""
_REST = 2.0
"""Rest between two drafts, in times that the last one took: what a pause asks for then mostly finds the recogniser free."""
_LACKING_S = 0.05
"""Speech that a draft may lack and still be the text of the turn."""


@dataclass(frozen=True, slots=True)
class _Draft:
    """The text of what was said up to ``spoken_s``, or the work on it."""

    spoken_s: float
    text: asyncio.Task[Transcript]


class Scribe:
    """Uses a recogniser for one pair of ears. Of a turn one draft is worked on at a time, so no work piles up.

    ``partial_s``: the rest between two drafts of the growing turn, longer if they take long; None: only where the user
    pauses, or speaks over the agent. ``tell`` gets each draft, and the second of audio up to which it goes.
    """

    def __init__(
        self,
        ears: Hearing,
        recognizer: Recognizer,
        language: SpokenLanguage,
        partial_s: float | None,
        tell: Callable[[Transcript, float], None],
    ) -> None:
        self._ears = ears
        self._recognizer = recognizer
        self.language = language
        self._partial_s = partial_s
        self._tell = tell
        self._moved = asyncio.Event()
        self._following: asyncio.Task[None] | None = None
        self._draft: _Draft | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    def begin(self) -> None:
        """The user speaks: write until :meth:`drop` or :meth:`finish`."""
        self.drop()
        self._following = self._start(self._follow())

    def moved(self) -> None:
        """The ears have heard more."""
        self._moved.set()

    def drop(self) -> None:
        """It was no turn."""
        draft = self._stop_following()
        if draft is not None:
            draft.text.cancel()

    def finish(self, turn: TurnEnded) -> asyncio.Task[Transcript]:
        """The text of a turn that has ended: the draft of it, if there is one, else a new transcription.

        It raises what the recogniser raises.
        """
        return self._start(self._finish(turn, self._stop_following()))

    async def aclose(self) -> None:
        """Gives up all work."""
        self.drop()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = asyncio.create_task(work, name="sayline-scribe")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _stop_following(self) -> _Draft | None:
        following, draft = self._following, self._draft
        self._following = self._draft = None
        if following is not None:
            following.cancel()
        return draft

    async def _follow(self) -> None:
        clock = asyncio.get_running_loop().time
        began_s, next_s = self._ears.heard_s, clock() + (self._partial_s or 0.0)
        while True:
            while not self._due(began_s, next_s, clock()):
                self._moved.clear()
                await self._moved.wait()
            upto_s = self._ears.heard_s
            draft = self._draft = _Draft(
                upto_s - self._ears.silence_s,
                self._start(self._recognizer.transcribe(self._ears.speech(), self.language)),
            )
            started_s = clock()
            draft.text.add_done_callback(lambda _: self._moved.set())
            while not draft.text.done() and not self._outrun(draft):
                self._moved.clear()
                await self._moved.wait()
            if not draft.text.done():
                draft.text.cancel()
                continue
            if draft.text.cancelled() or draft.text.exception() is not None:
                return  # the end of the turn tries once more, and tells
            next_s = clock() + max(self._partial_s or 0.0, _REST * (clock() - started_s))
            self._tell(replace(draft.text.result(), final=False), upto_s)

    def _outrun(self, draft: _Draft) -> bool:
        """The user pauses and has said more than the draft will hold: another is worth more."""
        return self._ears.silence_s >= _PAUSE_S and self._ears.heard_s - self._ears.silence_s > draft.spoken_s + _LACKING_S

    def _due(self, began_s: float, next_s: float, now_s: float) -> bool:
        ears = self._ears
        spoken_s = ears.heard_s - ears.silence_s
        known_s = self._draft.spoken_s if self._draft is not None else began_s
        if spoken_s <= known_s + _LACKING_S:
            return False
        if ears.barging:
            return ears.silence_s >= _PAUSE_S or ears.heard_s - known_s >= _FIRST_S
        return ears.silence_s >= _PAUSE_S or (self._partial_s is not None and now_s >= next_s)

    async def _finish(self, turn: TurnEnded, draft: _Draft | None) -> Transcript:
        if draft is not None and draft.spoken_s >= turn.ended_s - _LACKING_S:
            await asyncio.wait({draft.text})
            if not draft.text.cancelled():  # by the recogniser, say when it was closed
                try:
                    return replace(draft.text.result(), final=True)
                except SaylineError:
                    pass  # once more: what failed may pass
        elif draft is not None:
            draft.text.cancel()
        return await self._recognizer.transcribe(turn.samples, self.language)
