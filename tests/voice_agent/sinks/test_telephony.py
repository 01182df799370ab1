"""The telephone sink in virtual time: when its frames leave, and what happens when the line fails."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from voice_agent.errors import InputError, SinkError
from voice_agent.sinks import TelephoneSink
from voice_agent.sinks.g711 import decode
from voice_agent.testing.clock import LoopClock, run_virtual
from voice_agent.testing.sink_conformance import chunk_of, chunks_of, tone


class Line:
    """Takes frames and notes when. ``slow_s``: how long each takes; ``fails_at``: the frame that breaks the line."""

    def __init__(self, slow_s=0.0, fails_at=-1):
        self.frames, self.times = [], []
        self._slow_s, self._fails_at = slow_s, fails_at

    async def send(self, frame):
        self.times.append(asyncio.get_running_loop().time())
        self.frames.append(frame)
        if len(self.frames) - 1 == self._fails_at:
            raise ConnectionResetError("the call was ended")
        await asyncio.sleep(self._slow_s)

    def samples(self):
        return decode(b"".join(self.frames), "ulaw")


def sink_on(line, **options):
    return TelephoneSink(line.send, clock=LoopClock(), **options)


def test_frames_leave_every_20_ms_without_drift():
    async def main():
        line = Line(slow_s=0.007)
        async with sink_on(line) as sink:
            for chunk in chunks_of(tone(4.0), 5000):
                await sink.write(chunk)
            await sink.drain()
            assert sink.playhead.underruns == 0
        times = np.array(line.times)
        assert len(times) == 200
        np.testing.assert_allclose(times - times[0], 0.02 * np.arange(200), atol=1e-9)

    run_virtual(main())


def test_a_stall_of_the_line_does_not_move_later_frames():
    async def main():
        line = Line()
        send = line.send

        async def stalls_once(frame):
            await send(frame)
            if len(line.frames) == 10:
                await asyncio.sleep(0.09)

        line.send = stalls_once
        async with sink_on(line) as sink:
            await sink.write(chunk_of(tone(1.0), last=True))
        times = np.array(line.times) - line.times[0]
        np.testing.assert_allclose(times[:10], 0.02 * np.arange(10), atol=1e-9)
        assert times[10] == pytest.approx(0.27)  # at once, and then the ones that are due
        np.testing.assert_allclose(times[15:], 0.02 * np.arange(15, 50), atol=1e-9)

    run_virtual(main())


def test_after_a_gap_the_next_frame_leaves_at_once_and_nothing_bunches():
    async def main():
        line = Line()
        async with sink_on(line) as sink:
            await sink.write(chunk_of(tone(0.2), last=True))
            await asyncio.sleep(1.013)
            again_s = asyncio.get_running_loop().time()
            await sink.write(chunk_of(tone(0.2), last=True))
        assert len(line.frames) == 20
        assert line.times[10] == pytest.approx(again_s)
        np.testing.assert_allclose(np.diff(line.times[10:]), 0.02, atol=1e-9)

    run_virtual(main())


def test_a_rest_is_filled_up_with_silence():
    async def main():
        line = Line()
        async with sink_on(line) as sink:
            await sink.write(chunk_of(tone(0.05), last=True))
            await sink.drain()
            assert sink.playhead.heard_s == pytest.approx(0.05)
        assert [len(frame) for frame in line.frames] == [160] * 3
        assert not line.samples()[410:].any()
        assert sink.playhead.underruns == 0

    run_virtual(main())


def test_speech_that_comes_too_late_is_counted():
    async def main():
        line = Line()
        async with sink_on(line) as sink:
            for chunk in chunks_of(tone(1.2), 6000):
                await sink.write(chunk)
                await asyncio.sleep(0.4)
            await sink.drain()
            assert 2 <= sink.playhead.underruns <= 4

    run_virtual(main())


def test_clear_is_silent_with_the_next_frame():
    async def main():
        line = Line()
        async with sink_on(line) as sink:
            await sink.write(chunk_of(tone(1.5)))
            await asyncio.sleep(0.305)
            head = await sink.clear()
            count = len(line.frames)
            await asyncio.sleep(5)
            assert len(line.frames) == count
            assert head.heard_s == pytest.approx(0.02 * count)

    run_virtual(main())


def test_a_line_that_breaks_ends_the_write():
    async def main():
        sink = sink_on(Line(fails_at=5))
        await sink.start()
        with pytest.raises(SinkError, match="ConnectionResetError: the call was ended"):
            await sink.write(chunk_of(tone(10.0)))
        with pytest.raises(SinkError):
            await sink.drain()
        assert (await sink.clear()).heard_s == pytest.approx(0.12)
        await sink.close()

    run_virtual(main())


def test_an_unknown_law():
    with pytest.raises(InputError, match="ulaw or alaw"):
        TelephoneSink(Line().send, law="mulaw")
