"""What is written comes out, whole, in order and at its pitch, and is counted."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import numpy as np

from tts_engine.types import AudioChunk, AudioFormat, Utterance
from voice_agent.errors import InputError, SinkError
from voice_agent.testing.sink_conformance.rig import (
    RATE,
    Check,
    Rig,
    chunk_of,
    chunks_of,
    expected,
    require,
    require_all_heard,
    require_output,
    tone,
)


async def every_sample_comes_out_in_order(rig: Rig) -> None:
    samples = tone(0.4)
    async with rig.make() as sink:
        for chunk in chunks_of(samples, 1234):
            await sink.write(chunk)
        await sink.drain()
        await sink.drain()
        require_all_heard(sink.playhead, len(samples))
        require_output(rig, sink, samples)


async def close_keeps_the_tail(rig: Rig) -> None:
    samples = tone(0.3)
    sink = rig.make()
    await sink.start()
    for first in range(0, len(samples), 500):  # no chunk says that it is the last
        await sink.write(chunk_of(samples[first : first + 500]))
    await sink.close()
    await sink.close()
    require_all_heard(sink.playhead, len(samples))
    require_output(rig, sink, samples)


async def the_first_write_starts_the_sink(rig: Rig) -> None:
    sink = rig.make()
    await sink.drain()
    await sink.write(chunk_of(tone(0.1)))
    await sink.close()
    require_all_heard(sink.playhead, round(0.1 * RATE))


async def a_closed_sink_refuses_more(rig: Rig) -> None:
    sink = rig.make()
    await sink.start()
    await sink.close()
    with expected(SinkError, "a write to a closed sink"):
        await sink.write(chunk_of(tone(0.1)))
    await sink.clear()


async def an_unused_sink_closes(rig: Rig) -> None:
    sink = rig.make()
    await sink.clear()
    await sink.close()
    require(sink.playhead.accepted_samples == 0, "a sink that took nothing says that it did")


async def empty_chunks_do_no_harm(rig: Rig) -> None:
    samples = tone(0.2)
    nothing = np.zeros(0, dtype=np.float32)
    async with rig.make() as sink:
        for part in (nothing, samples[:2000], nothing, samples[2000:]):
            await sink.write(chunk_of(part))
        await sink.write(chunk_of(nothing, last=True))
        await sink.drain()
        require_all_heard(sink.playhead, len(samples))
        require_output(rig, sink, samples)


async def samples_that_do_not_fit_are_refused(rig: Rig) -> None:
    samples = tone(0.1)
    async with rig.make() as sink:
        for bad in (
            AudioChunk(samples, AudioFormat(RATE, 2), Utterance("")),
            AudioChunk(np.zeros((10, 3), dtype=np.float32), AudioFormat(RATE, 2), Utterance("")),
            AudioChunk(samples, AudioFormat(0, 1), Utterance("")),
        ):
            with expected(InputError, "a chunk that does not fit its format"):
                await sink.write(bad)
        await sink.write(chunk_of(samples))
        await sink.drain()
        require_all_heard(sink.playhead, len(samples))


async def wild_samples_are_tamed(rig: Rig) -> None:
    samples = tone(0.2)
    samples[100:110] = [np.nan, np.inf, -np.inf, 1e30, -1e30, 1.5, -1.5, np.nan, 0, 0]
    async with rig.make() as sink:
        await sink.write(chunk_of(samples))
        await sink.drain()
        require_all_heard(sink.playhead, len(samples))
        if rig.output:
            out, rate = rig.output(sink)
            require(bool(np.isfinite(out).all()), "NaN or infinity came out")
            tail = out[round(0.1 * rate) : round(0.2 * rate)]
            require(0.1 < float(np.abs(tail).max()) < 0.6, "one bad sample spoiled those after it")


async def the_format_may_change(rig: Rig) -> None:
    parts = [(tone(0.2), RATE), (tone(0.2, rate=48_000), 48_000), (np.stack([tone(0.2, rate=16_000)] * 2, 1), 16_000)]
    async with rig.make() as sink:
        for samples, rate in parts:
            for first in range(0, len(samples), 700):
                await sink.write(chunk_of(samples[first : first + 700], rate))
        await sink.drain()
        head = sink.playhead
        require_all_heard(head, sum(len(samples) for samples, _ in parts))
        require(abs(head.heard_s - 0.6) < 1e-6, f"0.6 s in three formats were {head.heard_s:.4f} s")
        if rig.output:
            out, rate = rig.output(sink)
            require(abs(len(out) / rate - 0.6) < 0.001, f"0.6 s in three formats came out as {len(out) / rate:.4f} s")
            for index in range(3):
                part = out[round((0.2 * index + 0.05) * rate) : round((0.2 * index + 0.15) * rate)]
                crossings = int(np.count_nonzero(np.diff(np.signbit(part))))
                require(abs(crossings - 88) <= 2, f"part {index + 1} has the wrong pitch")


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
            require(after.heard_samples >= before.heard_samples, "heard_samples shrank")
            require(after.heard_s >= before.heard_s, "heard_s shrank")
            require(after.heard_samples <= after.accepted_samples, "more was heard than accepted")
        require_all_heard(heads[-1], len(samples))


async def a_sink_that_plays_is_waited_for(rig: Rig) -> None:
    require(rig.make().waited_for or not rig.real_time, "the sink plays, but says that nobody waits for the audio")


CHECKS: list[Check] = [
    every_sample_comes_out_in_order,
    close_keeps_the_tail,
    the_first_write_starts_the_sink,
    a_closed_sink_refuses_more,
    an_unused_sink_closes,
    empty_chunks_do_no_harm,
    samples_that_do_not_fit_are_refused,
    wild_samples_are_tamed,
    the_format_may_change,
    the_playhead_never_runs_back,
    a_sink_that_plays_is_waited_for,
]
