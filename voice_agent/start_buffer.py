"""How long to hold back the start of playing so that no gap is heard, learned from how packets have come so far."""

from __future__ import annotations

import asyncio
import statistics
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator

from tts_engine.types import AudioChunk

__all__ = ["StartBuffer", "hold_start"]

REMEMBERED = 32
"""Utterances that the estimate looks back on."""
MARGIN = 1.25


class StartBuffer:
    """Measures how late packets are and says how long the next start should wait.

    If each packet is played as it comes, those that come too late leave gaps; playing that starts as much later as the gaps
    of an utterance are long together has none in it. A wait between two utterances is no gap. An engine slower than real
    time falls behind more and more. The hold is the worst of the last ``REMEMBERED`` utterances and a quarter more, at most
    ``most_s``; nothing while all packets come in time.

    ``common``: what the last utterances of all who share the engine needed. What half of them needed is held back from a
    listener's first utterance on: then it is the engine that is slow, and not a moment that was bad.
    """

    def __init__(self, *, most_s: float = 2.0, common: deque[float] | None = None) -> None:
        self._most_s = most_s
        self._common: deque[float] = deque() if common is None else common
        self._needs_s: deque[float] = deque(maxlen=REMEMBERED)
        self._sounds_until_s: float | None = None
        self._inside = False  # an utterance
        self._need_s = 0.0

    @property
    def hold_s(self) -> float:
        """Seconds of audio to have in hand, or to wait for, before an utterance is played."""
        usual_s = statistics.median(self._common) if self._common else 0.0
        return min(self._most_s, MARGIN * max(self._need_s, usual_s, max(self._needs_s, default=0.0)))

    def feed(self, now_s: float, duration_s: float, *, last: bool = False) -> None:
        """A packet of ``duration_s`` has come; ``last``: the utterance's."""
        sounds_until_s = now_s if self._sounds_until_s is None else self._sounds_until_s
        if self._inside:
            self._need_s += max(0.0, now_s - sounds_until_s)
        self._sounds_until_s = max(now_s, sounds_until_s) + duration_s
        self._inside = not last
        if last:
            self._needs_s.append(self._need_s)
            self._common.append(self._need_s)
            self._need_s = 0.0

    def reset(self) -> None:
        """Another line of utterances begins; one that is under way was cut and is not counted."""
        self._sounds_until_s, self._inside, self._need_s = None, False, 0.0


async def hold_start(
    chunks: AsyncIterator[AudioChunk], buffer: StartBuffer, tempo: float = 1.0
) -> AsyncGenerator[AudioChunk, None]:
    """The same packets; an utterance is held back until so much is in hand as ``buffer`` says, while the engine works on.

    The wait falls before an utterance, where a pause does not disturb, never into it. What comes is measured by when it was
    made, so that a slow taker does not count as a slow engine. ``tempo``: how many times as fast they are played.
    """
    now_s = asyncio.get_running_loop().time
    sounds_until_s, inside = 0.0, False
    buffer.reset()
    async for chunk in chunks:
        sounds_s = chunk.duration_s / tempo
        buffer.feed(now_s() if chunk.made_s is None else chunk.made_s, sounds_s, last=chunk.last)
        if not inside:
            in_hand_s = max(0.0, sounds_until_s - now_s())
            await asyncio.sleep(max(0.0, buffer.hold_s - in_hand_s))
        sounds_until_s = max(sounds_until_s, now_s()) + sounds_s
        inside = not chunk.last
        yield chunk
