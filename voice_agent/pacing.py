"""Time and place of playback: a clock that is handed in, pacing to absolute deadlines, and how much was heard."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass
from typing import Protocol

__all__ = ["Clock", "MonotonicClock", "Pacer", "PlayLine", "Playhead", "Playout"]


class Clock(Protocol):
    """Where time comes from; tests hand in a virtual one."""

    def now_s(self) -> float:
        """Seconds since some fixed moment; never runs backwards."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class MonotonicClock:
    """Real time."""

    def now_s(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class Pacer:
    """Lets frames pass at the speed of sound: each is due one frame length after the one before.

    Deadlines are absolute, so neither late wake-ups nor the work between frames add up. After a stall the frames that
    are due pass at once, but at most ``max_burst_s`` of them; what is later than that moves all later deadlines.
    """

    def __init__(self, clock: Clock | None = None, *, max_burst_s: float = 0.1) -> None:
        self._clock = clock or MonotonicClock()
        self._max_burst_s = max_burst_s
        self._due_s: float | None = None

    async def wait(self, duration_s: float) -> None:
        """Return when a frame that lasts ``duration_s`` is due. A cancelled wait leaves the frame due as it was."""
        now_s = self._clock.now_s()
        due_s = now_s if self._due_s is None else max(self._due_s, now_s - self._max_burst_s)
        if due_s > now_s:
            await self._clock.sleep(due_s - now_s)
        self._due_s = due_s + duration_s

    def reset(self) -> None:
        """The next frame is due at once: the stream was cut or has paused."""
        self._due_s = None


class Playout:
    """Answers how many frames were heard at a given moment, from the moments at which stretches of frames sound.

    One thread offers, any thread asks; no lock is taken. The last 512 stretches are remembered, which must cover the
    device's latency (stretches that follow each other without a gap count as one).
    """

    _SLOTS = 512

    def __init__(self, sample_rate: int) -> None:
        self._rate = sample_rate
        self._slots: list[tuple[float, int, int]] = [(0.0, 0, 0)] * self._SLOTS  # (due_s, frames before, frames)
        self._newest = 0

    def offer(self, due_s: float, frames: int) -> None:
        """The next ``frames`` frames begin to sound at ``due_s`` and go on without a gap."""
        last_due_s, before, count = self._slots[self._newest % self._SLOTS]
        if count and abs(last_due_s + count / self._rate - due_s) < 0.25 / self._rate:
            self._slots[self._newest % self._SLOTS] = (last_due_s, before, count + frames)
            return
        self._slots[(self._newest + 1) % self._SLOTS] = (due_s, before + count, frames)
        self._newest += 1

    def heard(self, now_s: float) -> int:
        """Frames that have sounded by ``now_s``."""
        newest = self._newest
        before = 0
        for back in range(min(newest + 1, self._SLOTS)):
            due_s, before, count = self._slots[(newest - back) % self._SLOTS]
            if due_s <= now_s:
                # A frame that ends at now_s was heard; a millionth of a frame covers the rounding of the product.
                return before + min(count, int((now_s - due_s) * self._rate + 1e-6))
        return before

    def due_s(self, frame: int) -> float:
        """When frame ``frame`` begins to sound; of the next one to be offered: when the last one ends."""
        newest = self._newest
        due_s, before = 0.0, 0
        for back in range(min(newest + 1, self._SLOTS)):
            due_s, before, _ = self._slots[(newest - back) % self._SLOTS]
            if before <= frame:
                break
        return due_s + (frame - before) / self._rate

    def stop(self, frames: int) -> None:
        """Only the first ``frames`` frames sound, as long as no more are offered. For a sink of one thread only."""
        due_s = self.due_s(frames)
        self._slots[(self._newest + 1) % self._SLOTS] = (due_s, frames, 0)
        self._newest += 1

    def end_s(self) -> float:
        """When the last offered frame has sounded."""
        due_s, _, count = self._slots[self._newest % self._SLOTS]
        return due_s + count / self._rate


@dataclass(frozen=True, slots=True)
class Playhead:
    """How far a sink has come. Samples are counted per channel, at the rate that their chunk had when it was written.

    The line of audio has no holes: what ``clear`` dropped is taken off ``accepted_samples`` and added to
    ``dropped_samples``, so the next sample written is number ``accepted_samples``. ``heard_samples`` and ``heard_s``
    never shrink and count the latency of the device (``latency_s``), as far as it is known: what is still inside it
    was not heard.
    """

    accepted_samples: int = 0
    heard_samples: int = 0
    dropped_samples: int = 0
    heard_s: float = 0.0
    pending_s: float = 0.0
    latency_s: float = 0.0
    underruns: int = 0


@dataclass(slots=True)
class _Stretch:
    """Samples of one rate that became frames of the sink; ``whole``: the frames stand for all the samples."""

    rate: int
    samples: int = 0
    frames: int = 0
    whole: bool = False


class PlayLine:
    """Maps the frames that a sink plays, at its own rate, to the samples that were written to it, at theirs."""

    def __init__(self, frame_rate: int) -> None:
        """``frame_rate``: the sink's own, in Hz."""
        self._frame_rate = frame_rate
        self._stretches: deque[_Stretch] = deque()
        self._past_samples = 0  # of stretches that were heard to their end
        self._past_s = 0.0
        self._past_frames = 0
        self._heard_frames = 0
        self._dropped_samples = 0
        self._frames = 0

    @property
    def frames(self) -> int:
        """Frames given to the sink so far, less those that were cut."""
        return self._frames

    def accept(self, samples: int, rate: int, frames: int) -> None:
        """``samples`` of ``rate`` Hz were taken and gave ``frames``; a resampler makes the frames come later."""
        if not self._stretches or self._stretches[-1].whole:
            self._stretches.append(_Stretch(rate))
        assert self._stretches[-1].rate == rate, "a change of rate needs end() first"
        self._stretches[-1].samples += samples
        self._stretches[-1].frames += frames
        self._frames += frames

    def end(self, frames: int) -> None:
        """The resampler was flushed and gave the last ``frames`` for all samples so far."""
        if self._stretches:
            self._stretches[-1].frames += frames
            self._stretches[-1].whole = True
            self._frames += frames

    def hear(self, frames: int) -> None:
        """``frames`` frames were heard since the start; fewer than before changes nothing."""
        self._heard_frames = max(self._heard_frames, min(frames, self._frames))
        while self._stretches:
            first = self._stretches[0]
            if not first.whole or self._past_frames + first.frames > self._heard_frames:
                break
            self._past_samples += first.samples
            self._past_s += first.samples / first.rate
            self._past_frames += first.frames
            self._stretches.popleft()

    def cut(self, frames: int) -> None:
        """Only the first ``frames`` frames will ever be heard: forget the samples behind them."""
        self.hear(frames)
        accepted = sum(stretch.samples for stretch in self._stretches)
        heard = self._heard_in_first()
        self._dropped_samples += accepted - heard
        if self._stretches:
            self._past_samples += heard
            self._past_s += heard / self._stretches[0].rate
        self._stretches.clear()
        self._past_frames = self._frames = self._heard_frames

    def playhead(self, *, latency_s: float = 0.0, underruns: int = 0) -> Playhead:
        heard = self._heard_in_first()
        heard_s = self._past_s + (heard / self._stretches[0].rate if heard else 0.0)
        accepted_s = self._past_s + sum(stretch.samples / stretch.rate for stretch in self._stretches)
        return Playhead(
            accepted_samples=self._past_samples + sum(stretch.samples for stretch in self._stretches),
            heard_samples=self._past_samples + heard,
            dropped_samples=self._dropped_samples,
            heard_s=heard_s,
            pending_s=accepted_s - heard_s,
            latency_s=latency_s,
            underruns=underruns,
        )

    def _heard_in_first(self) -> int:
        """Samples heard of the first stretch, the only one that can be heard in part."""
        if not self._stretches:
            return 0
        first = self._stretches[0]
        return min(first.samples, (self._heard_frames - self._past_frames) * first.rate // self._frame_rate)
