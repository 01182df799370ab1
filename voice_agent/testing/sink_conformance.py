"""The conformance kit for sinks: every promise of ``voice_agent.sinks.Sink`` as a check that runs on any sink.

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    async def test_my_sink(check):
        await check(Rig(make=MySink, real_time=True))

A check raises AssertionError with the promise that was broken. With ``run_virtual`` around it a simulated device
takes no time.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tts_engine.types import AudioChunk, AudioFormat, Samples, Utterance
from voice_agent.audio import Resampler
from voice_agent.errors import InputError, SinkError
from voice_agent.pacing import Playhead
from voice_agent.sinks.base import Sink

__all__ = ["CHECKS", "Rig", "chunk_of", "chunks_of", "tone"]

_RATE = 24_000
_SEAM_S = 0.02  # around a cut the sound may fade


@dataclass(frozen=True)
class Rig:
    """A sink to be tested, and how to look at what came out of it.

    ``make`` gives a new sink, not started. ``output`` gives what was heard of it so far ([frames] float32) and its
    rate; None where that cannot be seen. ``real_time``: it plays, so writes block and ``clear`` can drop something.
    ``bound_s``: the most audio that may wait in it. ``tolerance``: of one sample (16-bit output is off by up to
    2**-16).
    """

    make: Callable[[], Sink]
    output: Callable[[Sink], tuple[Samples, int]] | None = None
    real_time: bool = False
    bound_s: float = 5.0
    tolerance: float = 2**-15
    reaction_s: float = 0.5


Check = Callable[[Rig], Awaitable[None]]
CHECKS: list[Check] = []


def _check(function: Check) -> Check:
    CHECKS.append(function)
    return function


def tone(duration_s: float, frequency_hz: float = 440.0, rate: int = _RATE, level: float = 0.5) -> Samples:
    """A sine that fades in and out within 5 ms: [samples] float32."""
    samples = level * np.sin(2 * np.pi * frequency_hz * np.arange(round(duration_s * rate)) / rate)
    fade = np.minimum(1.0, np.arange(len(samples)) / (0.005 * rate))
    faded: Samples = (samples * fade * fade[::-1]).astype(np.float32)
    return faded


def chunk_of(samples: Samples, rate: int = _RATE, *, last: bool = False) -> AudioChunk:
    """A chunk as an engine gives it; ``samples`` are [samples] or [samples, channels]."""
    channels = 1 if samples.ndim == 1 else samples.shape[1]
    return AudioChunk(samples, AudioFormat(rate, channels), Utterance("la"), last=last)


def chunks_of(samples: Samples, size: int, rate: int = _RATE) -> Iterator[AudioChunk]:
    """``samples`` in chunks of ``size``; the one at the end is the last."""
    for first in range(0, len(samples), size):
        yield chunk_of(samples[first : first + size], rate, last=first + size >= len(samples))


@_check
async def every_sample_comes_out_in_order(rig: Rig) -> None:
    samples = tone(0.4)
    async with rig.make() as sink:
        for chunk in chunks_of(samples, 1234):
            await sink.write(chunk)
        await sink.drain()
        await sink.drain()
        _require_all_heard(sink.playhead, len(samples))
        _require_output(rig, sink, samples)


@_check
async def close_keeps_the_tail(rig: Rig) -> None:
    samples = tone(0.3)
    sink = rig.make()
    await sink.start()
    for first in range(0, len(samples), 500):  # no chunk says that it is the last
        await sink.write(chunk_of(samples[first : first + 500]))
    await sink.close()
    await sink.close()
    _require_all_heard(sink.playhead, len(samples))
    _require_output(rig, sink, samples)


@_check
async def the_first_write_starts_the_sink(rig: Rig) -> None:
    sink = rig.make()
    await sink.drain()
    await sink.write(chunk_of(tone(0.1)))
    await sink.close()
    _require_all_heard(sink.playhead, round(0.1 * _RATE))


@_check
async def a_closed_sink_refuses_more(rig: Rig) -> None:
    sink = rig.make()
    await sink.start()
    await sink.close()
    with _expected(SinkError, "a write to a closed sink"):
        await sink.write(chunk_of(tone(0.1)))
    await sink.clear()


@_check
async def an_unused_sink_closes(rig: Rig) -> None:
    sink = rig.make()
    await sink.clear()
    await sink.close()
    _require(sink.playhead.accepted_samples == 0, "a sink that took nothing says that it did")


@_check
async def empty_chunks_do_no_harm(rig: Rig) -> None:
    samples = tone(0.2)
    nothing = np.zeros(0, dtype=np.float32)
    async with rig.make() as sink:
        for part in (nothing, samples[:2000], nothing, samples[2000:]):
            await sink.write(chunk_of(part))
        await sink.write(chunk_of(nothing, last=True))
        await sink.drain()
        _require_all_heard(sink.playhead, len(samples))
        _require_output(rig, sink, samples)


@_check
async def samples_that_do_not_fit_are_refused(rig: Rig) -> None:
    samples = tone(0.1)
    async with rig.make() as sink:
        for bad in (
            AudioChunk(samples, AudioFormat(_RATE, 2), Utterance("")),
            AudioChunk(np.zeros((10, 3), dtype=np.float32), AudioFormat(_RATE, 2), Utterance("")),
            AudioChunk(samples, AudioFormat(0, 1), Utterance("")),
        ):
            with _expected(InputError, "a chunk that does not fit its format"):
                await sink.write(bad)
        await sink.write(chunk_of(samples))
        await sink.drain()
        _require_all_heard(sink.playhead, len(samples))


@_check
async def wild_samples_are_tamed(rig: Rig) -> None:
    samples = tone(0.2)
    samples[100:110] = [np.nan, np.inf, -np.inf, 1e30, -1e30, 1.5, -1.5, np.nan, 0, 0]
    async with rig.make() as sink:
        await sink.write(chunk_of(samples))
        await sink.drain()
        _require_all_heard(sink.playhead, len(samples))
        if rig.output:
            out, rate = rig.output(sink)
            _require(bool(np.isfinite(out).all()), "NaN or infinity came out")
            tail = out[round(0.1 * rate) : round(0.2 * rate)]
            _require(0.1 < float(np.abs(tail).max()) < 0.6, "one bad sample spoiled those after it")


@_check
async def the_format_may_change(rig: Rig) -> None:
    parts = [(tone(0.2), _RATE), (tone(0.2, rate=48_000), 48_000), (np.stack([tone(0.2, rate=16_000)] * 2, 1), 16_000)]
    async with rig.make() as sink:
        for samples, rate in parts:
            for first in range(0, len(samples), 700):
                await sink.write(chunk_of(samples[first : first + 700], rate))
        await sink.drain()
        head = sink.playhead
        _require_all_heard(head, sum(len(samples) for samples, _ in parts))
        _require(abs(head.heard_s - 0.6) < 1e-6, f"0.6 s in three formats were {head.heard_s:.4f} s")
        if rig.output:
            out, rate = rig.output(sink)
            _require(abs(len(out) / rate - 0.6) < 0.001, f"0.6 s in three formats came out as {len(out) / rate:.4f} s")
            for index in range(3):
                part = out[round((0.2 * index + 0.05) * rate) : round((0.2 * index + 0.15) * rate)]
                crossings = int(np.count_nonzero(np.diff(np.signbit(part))))
                _require(abs(crossings - 88) <= 2, f"part {index + 1} has the wrong pitch")


@_check
async def the_playhead_never_runs_back(rig: Rig) -> None:
    samples = tone(0.5)
    async with rig.make() as sink:
        heads = [sink.playhead]

        async def watch() -> None:
            while True:
                heads.append(sink.playhead)
                await asyncio.sleep(0.005)

        watcher = asyncio.ensure_future(watch())
        for chunk in chunks_of(samples, 2400):
            await sink.write(chunk)
        await sink.drain()
        watcher.cancel()
        await asyncio.wait([watcher])
        heads.append(sink.playhead)
        for before, after in pairwise(heads):
            _require(after.heard_samples >= before.heard_samples, "heard_samples shrank")
            _require(after.heard_s >= before.heard_s, "heard_s shrank")
            _require(after.heard_samples <= after.accepted_samples, "more was heard than accepted")
        _require_all_heard(heads[-1], len(samples))


@_check
async def clear_tells_what_was_heard(rig: Rig) -> None:
    first, second = tone(1.0), tone(0.3, 880.0)
    async with rig.make() as sink:
        await sink.write(chunk_of(first))
        await asyncio.sleep(0.3)
        head = await sink.clear()
        _require(head.heard_samples == head.accepted_samples, "clear() leaves something to be heard")
        _require(head.heard_samples + head.dropped_samples == len(first), "heard and dropped are not all of it")
        if rig.real_time:
            _require(head.heard_s < 0.3 + rig.reaction_s, f"{head.heard_s:.2f} s were heard within 0.3 s")
        _require(sink.playhead.heard_samples == head.heard_samples, "the playhead moved after clear()")
        await sink.write(chunk_of(second, last=True))
        await sink.drain()
        _require_all_heard(sink.playhead, head.heard_samples + len(second))
        if rig.output:
            out, rate = rig.output(sink)
            cut, seam = round(head.heard_s * rate), round(_SEAM_S * rate)
            before = _resampled(first, rate)[: max(0, cut - seam)]
            _require_same(rig, out[: len(before)], before, "what was heard before clear()")
            behind = _resampled(second, rate)
            _require(abs(len(out) - cut - len(behind)) <= seam, "clear() left stale sound, or swallowed what came after it")
            _require_same(rig, out[-len(behind) :], behind, "what was written after clear()")


@_check
async def clear_releases_a_blocked_write(rig: Rig) -> None:
    if not rig.real_time:
        return
    sink = rig.make()
    await sink.start()
    writing = asyncio.ensure_future(sink.write(chunk_of(tone(rig.bound_s + 20.0))))
    await asyncio.sleep(0.1)
    _require(not writing.done(), f"{rig.bound_s + 20.0} s were accepted at once")
    pending_s = sink.playhead.pending_s
    _require(pending_s <= rig.bound_s, f"{pending_s:.2f} s wait to be heard, more than {rig.bound_s} s")
    await sink.clear()
    await asyncio.wait_for(writing, rig.reaction_s)
    _require(sink.playhead.pending_s == 0.0, "a write went on after clear()")
    await sink.close()


@_check
async def clear_ends_a_drain(rig: Rig) -> None:
    sink = rig.make()
    await sink.start()
    await sink.write(chunk_of(tone(1.0)))
    draining = asyncio.ensure_future(sink.drain())
    await asyncio.sleep(0.05)
    await sink.clear()
    await asyncio.wait_for(draining, rig.reaction_s)
    await sink.close()


@_check
async def a_cancelled_write_can_go_on(rig: Rig) -> None:
    if not rig.real_time:
        return
    samples = tone(rig.bound_s + 0.5)
    async with rig.make() as sink:
        writing = asyncio.ensure_future(sink.write(chunk_of(samples)))
        await asyncio.sleep(0.2)
        writing.cancel()
        await asyncio.wait([writing])
        _require(writing.cancelled(), "a blocked write swallowed its cancellation")
        accepted = sink.playhead.accepted_samples
        await sink.write(chunk_of(samples[accepted:], last=True))
        await sink.drain()
        _require_all_heard(sink.playhead, len(samples))
        _require_output(rig, sink, samples)


@_check
async def an_exception_clears(rig: Rig) -> None:
    before = threading.active_count()
    loop = asyncio.get_running_loop()
    sink = rig.make()
    with _expected(ZeroDivisionError, "the exception inside the block"):
        async with sink:
            await sink.write(chunk_of(tone(1.5)))
            failed_s = loop.time()
            raise ZeroDivisionError
    if rig.real_time:
        _require(loop.time() - failed_s < rig.reaction_s, "after an exception the sink played on")
    _require(sink.playhead.pending_s == 0.0, "after an exception something waits to be heard")
    _require(threading.active_count() <= before + 1, "the sink left a thread")  # asyncio keeps its own for reuse


@_check
async def a_cancellation_clears_and_leaves_no_task(rig: Rig) -> None:
    loop = asyncio.get_running_loop()

    async def speak() -> None:
        async with rig.make() as sink:
            while True:
                await sink.write(chunk_of(tone(1.0)))
                await asyncio.sleep(0.01)

    speaking = asyncio.ensure_future(speak())
    await asyncio.sleep(0.5)
    cancelled_s = loop.time()
    speaking.cancel()
    await asyncio.wait([speaking], timeout=10)
    _require(speaking.cancelled(), "the cancellation did not come through")
    _require(loop.time() - cancelled_s < rig.reaction_s, "a cancelled sink played on")
    left = asyncio.all_tasks() - {asyncio.current_task()}
    _require(not left, f"tasks were left: {left}")


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise AssertionError(message)


@contextlib.contextmanager
def _expected(kind: type[BaseException], what: str) -> Iterator[None]:
    try:
        yield
    except kind:
        return
    raise AssertionError(f"{what} raised no {kind.__name__}")


def _require_all_heard(head: Playhead, samples: int) -> None:
    _require(head.accepted_samples == samples, f"{samples} samples written, {head.accepted_samples} accepted")
    _require(head.heard_samples == samples, f"{samples} samples written, {head.heard_samples} heard")
    _require(head.pending_s == 0.0, f"all was heard, but {head.pending_s} s wait")


def _require_output(rig: Rig, sink: Sink, samples: Samples) -> None:
    if rig.output:
        out, rate = rig.output(sink)
        _require_same(rig, out, _resampled(samples, rate), "what was written")


def _require_same(rig: Rig, out: Samples, expected: Samples, what: str) -> None:
    _require(len(out) == len(expected), f"{what}: {len(expected)} frames expected, {len(out)} came out")
    worst = float(np.abs(out - expected).max(initial=0.0))
    _require(worst <= rig.tolerance, f"{what} came out {worst:.6f} off")


def _resampled(samples: Samples, rate: int) -> Samples:
    resampler = Resampler(_RATE, rate)
    return np.concatenate([resampler.feed(samples), resampler.flush()])
