"""A sink under test, how to look at what comes out of it, and what all checks share."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tts_engine.types import AudioChunk, AudioFormat, Samples, Utterance
from voice_agent.audio import Resampler
from voice_agent.pacing import Playhead
from voice_agent.sinks.base import Sink

RATE = 24_000
SEAM_S = 0.02  # around a cut the sound may fade


@dataclass(frozen=True)
class Rig:
    """A sink to be tested, and how to look at what came out of it.

    ``make`` gives a new sink, not started. ``output`` gives what was heard of it so far ([frames] float32) and its
    rate; None where that cannot be seen. ``real_time``: it plays, so writes block and ``clear`` can drop something.
    ``bound_s``: the most audio that may wait in it. ``tolerance``: of one sample (16-bit output is off by up to
    2**-16). ``hold_s``: the most that may still sound after ``hold`` was called, its fade and the device's latency
    included. ``remote``: another program plays, so the monitor cannot know where exactly a fade or ramp lies.

    ``lose`` takes away what is behind a sink, such as its device or its socket, and may be async; the sink has ``lost_s`` to
    notice. ``is_open`` tells whether a sink holds what it plays on. None: not checked.
    """

    make: Callable[[], Sink]
    output: Callable[[Sink], tuple[Samples, int]] | None = None
    real_time: bool = False
    bound_s: float = 5.0
    tolerance: float = 2**-15
    reaction_s: float = 0.5
    hold_s: float = 0.06
    remote: bool = False
    lose: Callable[[Sink], object] | None = None
    lost_s: float = 6.0
    is_open: Callable[[Sink], bool] | None = None


Check = Callable[[Rig], Awaitable[None]]


def tone(duration_s: float, frequency_hz: float = 440.0, rate: int = RATE, level: float = 0.5) -> Samples:
    """A sine that fades in and out within 5 ms: [samples] float32."""
    samples = level * np.sin(2 * np.pi * frequency_hz * np.arange(round(duration_s * rate)) / rate)
    fade = np.minimum(1.0, np.arange(len(samples)) / (0.005 * rate))
    faded: Samples = (samples * fade * fade[::-1]).astype(np.float32)
    return faded


def chunk_of(samples: Samples, rate: int = RATE, *, last: bool = False) -> AudioChunk:
    """A chunk as an engine gives it; ``samples`` are [samples] or [samples, channels]."""
    channels = 1 if samples.ndim == 1 else samples.shape[1]
    return AudioChunk(samples, AudioFormat(rate, channels), Utterance("la"), last=last)


def chunks_of(samples: Samples, size: int, rate: int = RATE) -> Iterator[AudioChunk]:
    """``samples`` in chunks of ``size``; the one at the end is the last."""
    for first in range(0, len(samples), size):
        yield chunk_of(samples[first : first + size], rate, last=first + size >= len(samples))


async def write_all(sink: Sink, samples: Samples) -> None:
    """In chunks of 50 ms, none of which says that it is the last."""
    for first in range(0, len(samples), 1200):
        await sink.write(chunk_of(samples[first : first + 1200]))


def require(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)


@contextlib.contextmanager
def expected(kind: type[BaseException], what: str) -> Iterator[None]:
    try:
        yield
    except kind:
        return
    raise AssertionError(f"{what} raised no {kind.__name__}")


def require_all_heard(head: Playhead, samples: int) -> None:
    require(head.accepted_samples == samples, f"{samples} samples written, {head.accepted_samples} accepted")
    require(head.heard_samples == samples, f"{samples} samples written, {head.heard_samples} heard")
    require(head.pending_s == 0.0, f"all was heard, but {head.pending_s} s wait")


def require_output(rig: Rig, sink: Sink, samples: Samples) -> None:
    if rig.output:
        out, rate = rig.output(sink)
        require_same(rig, out, resampled(samples, rate), "what was written")


def require_same(rig: Rig, out: Samples, expected: Samples, what: str) -> None:
    require(len(out) == len(expected), f"{what}: {len(expected)} frames expected, {len(out)} came out")
    worst = float(np.abs(out - expected).max(initial=0.0))
    require(worst <= rig.tolerance, f"{what} came out {worst:.6f} off")


def resampled(samples: Samples, rate: int) -> Samples:
    resampler = Resampler(RATE, rate)
    return np.concatenate([resampler.feed(samples), resampler.flush()])
