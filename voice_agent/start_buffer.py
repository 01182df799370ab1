"""How long to hold back the start of playing so that no gap is heard, learned from how packets have come so far."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator

from tts_engine.types import AudioChunk
from voice_agent.pacing import Clock, MonotonicClock

__all__ = ["StartBuffer", "hold_start"]

REMEMBERED = 32
"""Utterances that the estimate looks back on."""
MARGIN = 1.25


class StartBuffer:
    """Measures how late packets are and says how long the next start should wait.

    A packet's *lateness* is how long after the first one it came, less the audio before it: playing that starts so much
    after the first packet hears no gap there. An engine slower than real time falls behind more and more; its lateness
    at the end of an utterance is what the start has to wait. The hold is the worst lateness of the last ``REMEMBERED``
    utterances and a quarter more, at most ``most_s``; nothing while all packets come in time.
    """

    def __init__(self, *, most_s: float = 2.0) -> None:
        self._most_s = most_s
        self._needs_s: deque[float] = deque(maxlen=REMEMBERED)
        self._first_s: float | None = None
        self._audio_s = 0.0
        self._need_s = 0.0

    @property
    def hold_s(self) -> float:
        """Seconds to wait after the first packet before it is played."""
        return min(self._most_s, MARGIN * max(self._need_s, max(self._needs_s, default=0.0)))

    def feed(self, now_s: float, duration_s: float, *, last: bool = False) -> None:
        """A packet of ``duration_s`` has come; ``last``: the utterance's."""
        if self._first_s is None:
            self._first_s = now_s
        self._need_s = max(self._need_s, now_s - self._first_s - self._audio_s)
        self._audio_s += duration_s
        if last:
            self._needs_s.append(self._need_s)
            self.reset()

    def reset(self) -> None:
        """The utterance under way was cut: it is not counted."""
        self._first_s, self._audio_s, self._need_s = None, 0.0, 0.0


async def hold_start(
    chunks: AsyncIterator[AudioChunk], buffer: StartBuffer, clock: Clock | None = None
) -> AsyncGenerator[AudioChunk, None]:
    """The same packets; the first one is held back as long as ``buffer`` says, while the engine works on.

    What comes is measured by when it was made, so that a slow taker does not count as a slow engine.
    """
    clock = clock or MonotonicClock()
    started = False
    buffer.reset()
    async for chunk in chunks:
        made_s = clock.now_s() if chunk.made_s is None else chunk.made_s
        buffer.feed(made_s, chunk.duration_s, last=chunk.last)
        if not started:
            started = True
            await clock.sleep(buffer.hold_s)
        yield chunk
