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
    2**-16). ``hold_s``: the most that may still sound after ``hold`` was called, its fade and the device's latency
    included. ``remote``: another program plays, so the monitor cannot know where exactly a fade or ramp lies.
    """

    make: Callable[[], Sink]
    output: Callable[[Sink], tuple[Samples, int]] | None = None
    real_time: bool = False
    bound_s: float = 5.0
    tolerance: float = 2**-15
    reaction_s: float = 0.5
    hold_s: float = 0.06
    remote: bool = False


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
async def a_hold_keeps_everything_and_resumes_at_the_sample(rig: Rig) -> None:
    samples = tone(1.0)
    async with rig.make() as sink:
        writing = asyncio.ensure_future(_write_all(sink, samples))
        await asyncio.sleep(0.4)
        before = sink.playhead
        head = await sink.hold()
        if rig.real_time:
            late_s = head.heard_s - before.heard_s
            _require(late_s <= rig.hold_s, f"{late_s * 1000:.0f} ms were heard after hold(), more than {rig.hold_s} s")
        length = len(rig.output(sink)[0]) if rig.output else 0
        await sink.hold()
        await asyncio.sleep(0.3)
        _require(sink.playhead.heard_samples == head.heard_samples, "the playhead moved while held")
        _require(sink.playhead.dropped_samples == 0, "a hold dropped something")
        if rig.output:
            _require(len(rig.output(sink)[0]) == length, "a held sink played on")
        await sink.resume()
        await sink.resume()
        await writing
        await sink.drain()
        _require_all_heard(sink.playhead, len(samples))
        if rig.output:
            out, rate = rig.output(sink)
            expected = _resampled(samples, rate)
            _require(len(out) == len(expected), f"{len(expected)} frames expected, with a hold {len(out)} came out")
            cut, seam = round(head.heard_s * rate), round(_SEAM_S * rate)
            _require_same(rig, out[: max(0, cut - seam)], expected[: max(0, cut - seam)], "what was heard before a hold")
            _require_same(rig, out[cut + seam :], expected[cut + seam :], "what was heard after a hold")


@_check
async def a_held_sink_takes_nothing_and_drains_when_it_goes_on(rig: Rig) -> None:
    samples = tone(0.3)
    async with rig.make() as sink:
        await sink.hold()
        writing = asyncio.ensure_future(_write_all(sink, samples))
        await asyncio.sleep(0.2)
        _require(not writing.done(), "a held sink took a chunk")
        _require(sink.playhead.heard_samples == 0, "a held sink played")
        await sink.resume()
        await writing
        if rig.real_time:
            await sink.hold()
            draining = asyncio.ensure_future(sink.drain())
            await asyncio.sleep(0.5)
            _require(not draining.done(), "a held sink drained while something was left to be heard")
            await sink.resume()
            await draining
        await sink.drain()
        _require_all_heard(sink.playhead, len(samples))


@_check
async def clear_ends_a_hold(rig: Rig) -> None:
    first, second = tone(1.0), tone(0.3, 880.0)
    async with rig.make() as sink:
        writing = asyncio.ensure_future(_write_all(sink, first))
        await asyncio.sleep(0.3)
        held = await sink.hold()
        waiting = asyncio.ensure_future(sink.drain()) if writing.done() else writing
        head = await sink.clear()
        await asyncio.wait_for(waiting, rig.reaction_s)
        _require(head.heard_samples == held.heard_samples, "what was heard changed between hold() and clear()")
        _require(head.heard_samples == head.accepted_samples, "clear() left something that was held")
        await sink.write(chunk_of(second, last=True))
        await sink.drain()
        _require_all_heard(sink.playhead, head.heard_samples + len(second))
        if rig.output:
            out, rate = rig.output(sink)
            behind = _resampled(second, rate)
            _require_same(rig, out[-len(behind) :], behind, "what was written after a hold and a clear()")


@_check
async def close_ends_a_hold(rig: Rig) -> None:
    samples = tone(0.5)
    sink = rig.make()
    await sink.write(chunk_of(samples[:6000]))
    await sink.write(chunk_of(samples[6000:]))
    await sink.hold()
    await sink.close()
    _require_all_heard(sink.playhead, len(samples))
    await sink.hold()
    await sink.resume()


@_check
async def the_gain_changes_by_a_ramp(rig: Rig) -> None:
    samples = tone(1.5)
    async with rig.make() as sink:
        _require(sink.gain_db == 0.0, "a new sink has a gain")
        turns_s = []
        await _write_all(sink, samples[:12_000])
        await asyncio.sleep(0.4)
        for db, part in ((-12.0, samples[12_000:24_000]), (0.0, samples[24_000:])):
            turns_s.append(sink.playhead.heard_s)
            sink.set_gain(db)
            _require(sink.gain_db == db, f"set_gain({db}) left a gain of {sink.gain_db} dB")
            await _write_all(sink, part)
            await asyncio.sleep(0.4)
        await sink.drain()
        _require_all_heard(sink.playhead, len(samples))
        if rig.output:
            out, rate = rig.output(sink)
            expected = _resampled(samples, rate)
            ends_s = [0.0, *turns_s, len(expected) / rate]
            for factor, (begin_s, end_s) in zip((1.0, 10 ** (-12 / 20), 1.0), pairwise(ends_s), strict=True):
                span = slice(round((begin_s + (rig.hold_s + 0.02 if begin_s else 0.0)) * rate), round((end_s - _SEAM_S) * rate))
                _require_same(rig, out[span], expected[span] * np.float32(factor), f"what was played at {factor:.3f}")
            steps = float(np.abs(np.diff(out)).max(initial=0.0)) if len(out) else 0.0
            most = float(np.abs(np.diff(expected)).max(initial=0.0))
            _require(steps <= most * 1.1 + 2 * rig.tolerance, "the gain changed in a step")


@_check
async def the_monitor_gets_what_goes_out(rig: Rig) -> None:
    pieces: list[tuple[Samples, float]] = []
    samples = tone(0.8)
    sink = rig.make()
    sink.monitor = lambda frames, begins_s: pieces.append((frames, begins_s))
    async with sink:
        writing = asyncio.ensure_future(_write_all(sink, samples))
        await asyncio.sleep(0.2)
        ramp_s = sink.playhead.heard_s
        sink.set_gain(-6.0)
        await asyncio.sleep(0.2)
        fade_s = (await sink.hold()).heard_s
        await asyncio.sleep(0.3)
        await sink.resume()
        await writing
        await sink.drain()
        await asyncio.sleep(0.05)
    _require(all(frames.ndim == 2 and frames.dtype == np.float32 for frames, _ in pieces), "not [frames, channels] float32")
    told = np.concatenate([frames[:, 0] for frames, _ in pieces])
    if rig.output:
        out, rate = rig.output(sink)
        _require(len(told) == len(out), f"the monitor was told of {len(told)} frames, {len(out)} came out")
        if rig.remote:
            for at_s in (ramp_s, fade_s):
                seam = slice(round((at_s - _SEAM_S) * rate), round((at_s + rig.hold_s + _SEAM_S) * rate))
                told[seam] = out[seam]
        _require_same(rig, told, out, "what the monitor was told")
        gaps_s = [later - (earlier + len(frames) / rate) for (frames, earlier), (_, later) in pairwise(pieces)]
        if rig.real_time:
            _require(min(gaps_s, default=0.0) > -0.002, "pieces for the monitor overlap in time")
            _require(0.2 < max(gaps_s) < 0.5, f"the monitor was not told of a silence of 0.3 s, but of {max(gaps_s):.3f} s")


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


async def _write_all(sink: Sink, samples: Samples) -> None:
    """In chunks of 50 ms, none of which says that it is the last."""
    for first in range(0, len(samples), 1200):
        await sink.write(chunk_of(samples[first : first + 1200]))


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
