"""The gain changes without a step, and the monitor is told of what goes out."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import numpy as np

from tts_engine.types import Samples
from voice_agent.testing.sink_conformance.rig import (
    SEAM_S,
    Check,
    Rig,
    require,
    require_all_heard,
    require_same,
    resampled,
    tone,
    write_all,
)


async def the_gain_changes_by_a_ramp(rig: Rig) -> None:
    samples = tone(1.5)
    async with rig.make() as sink:
        require(sink.gain_db == 0.0, "a new sink has a gain")
        turns_s = []
        await write_all(sink, samples[:12_000])
        await asyncio.sleep(0.4)
        for db, part in ((-12.0, samples[12_000:24_000]), (0.0, samples[24_000:])):
            turns_s.append(sink.playhead.heard_s)
            sink.set_gain(db)
            require(sink.gain_db == db, f"set_gain({db}) left a gain of {sink.gain_db} dB")
            await write_all(sink, part)
            await asyncio.sleep(0.4)
        await sink.drain()
        require_all_heard(sink.playhead, len(samples))
        if rig.output:
            out, rate = rig.output(sink)
            expected = resampled(samples, rate)
            ends_s = [0.0, *turns_s, len(expected) / rate]
            for factor, (begin_s, end_s) in zip((1.0, 10 ** (-12 / 20), 1.0), pairwise(ends_s), strict=True):
                span = slice(round((begin_s + (rig.hold_s + 0.02 if begin_s else 0.0)) * rate), round((end_s - SEAM_S) * rate))
                require_same(rig, out[span], expected[span] * np.float32(factor), f"what was played at {factor:.3f}")
            steps = float(np.abs(np.diff(out)).max(initial=0.0)) if len(out) else 0.0
            most = float(np.abs(np.diff(expected)).max(initial=0.0))
            require(steps <= most * 1.1 + 2 * rig.tolerance, "the gain changed in a step")


async def the_monitor_gets_what_goes_out(rig: Rig) -> None:
    pieces: list[tuple[Samples, float]] = []
    samples = tone(0.8)
    sink = rig.make()
    sink.monitor = lambda frames, begins_s: pieces.append((frames, begins_s))
    async with sink:
        writing = asyncio.ensure_future(write_all(sink, samples))
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
    require(all(frames.ndim == 2 and frames.dtype == np.float32 for frames, _ in pieces), "not [frames, channels] float32")
    told = np.concatenate([frames[:, 0] for frames, _ in pieces])
    if rig.output:
        out, rate = rig.output(sink)
        require(len(told) == len(out), f"the monitor was told of {len(told)} frames, {len(out)} came out")
        if rig.remote:
            for at_s in (ramp_s, fade_s):
                seam = slice(round((at_s - SEAM_S) * rate), round((at_s + rig.hold_s + SEAM_S) * rate))
                told[seam] = out[seam]
        require_same(rig, told, out, "what the monitor was told")
        gaps_s = [later - (earlier + len(frames) / rate) for (frames, earlier), (_, later) in pairwise(pieces)]
        if rig.real_time:
            require(min(gaps_s, default=0.0) > -0.002, "pieces for the monitor overlap in time")
            require(0.2 < max(gaps_s) < 0.5, f"the monitor was not told of a silence of 0.3 s, but of {max(gaps_s):.3f} s")


CHECKS: list[Check] = [
    the_gain_changes_by_a_ramp,
    the_monitor_gets_what_goes_out,
]
