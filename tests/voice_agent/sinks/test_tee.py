"""A tee keeps all of its sinks in step, and closes all of them whatever happens to one."""

from __future__ import annotations

import asyncio
import io

import numpy as np
import pytest

from voice_agent.audio import pcm_to_samples
from voice_agent.errors import DeviceError, InputError, SinkError
from voice_agent.sinks import FileSink, MemorySink, TeeSink
from voice_agent.testing.clock import LoopClock, run_virtual
from voice_agent.testing.sink_conformance import chunk_of, tone


class Failing(MemorySink):
    """Raises in the named method."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self._where = where
        self.closed = False

    async def _open(self, format):
        if self._where == "start":
            raise DeviceError("no device")
        return await super()._open(format)

    async def _put(self, frames):
        if self._where == "write":
            raise SinkError("full")
        await super()._put(frames)

    async def _release(self):
        self.closed = True
        if self._where == "close":
            raise SinkError("not released")


def pcm_file():
    buffer = io.BytesIO()
    return buffer, FileSink(buffer, encoding="pcm")


@pytest.mark.parametrize("position", [0, 1, 2])
@pytest.mark.parametrize("where", ["start", "close"])
def test_one_that_fails_closes_the_others(position, where):
    async def main():
        sinks = [Failing("nowhere"), Failing("nowhere")]
        sinks.insert(position, Failing(where))
        tee = TeeSink(sinks)
        with pytest.raises(SinkError):
            async with tee:
                await tee.write(chunk_of(tone(0.1)))
        assert [sink.closed for sink in sinks if sink._opened] == [True] * sum(sink._opened for sink in sinks)
        for sink in sinks:
            with pytest.raises(SinkError, match="closed"):
                await sink.start()

    run_virtual(main())


def test_the_first_failure_is_the_one_that_is_raised():
    async def main():
        with pytest.raises(DeviceError, match="no device"):
            await TeeSink([Failing("close"), Failing("start")]).start()

    run_virtual(main())


def test_a_write_that_fails_comes_through():
    async def main():
        listener, broken = MemorySink(), Failing("write")
        tee = TeeSink([listener, broken])
        await tee.start()
        with pytest.raises(SinkError, match="full"):
            await tee.write(chunk_of(tone(0.1)))
        await tee.close()
        assert broken.closed

    run_virtual(main())


@pytest.mark.parametrize("wait_s", [0.0, 0.031, 0.2, 1.003])
def test_a_cancelled_write_goes_on_where_it_was(wait_s):
    async def main():
        samples = tone(6.0)
        buffer, file = pcm_file()
        listener = MemorySink(clock=LoopClock())
        async with TeeSink([listener, file]) as tee:
            rest = samples
            while True:
                before = tee.playhead.accepted_samples
                writing = asyncio.ensure_future(tee.write(chunk_of(rest, last=True)))
                await asyncio.wait([writing], timeout=wait_s + 0.2)
                if writing.done():
                    break
                writing.cancel()
                await asyncio.wait([writing])
                taken = tee.playhead.accepted_samples - before
                written = len(buffer.getvalue()) // 2
                assert 0 <= written - tee.playhead.accepted_samples <= 480  # never a whole chunk ahead
                rest = rest[taken:]
            await tee.drain()
            assert tee.playhead.heard_samples == len(samples)
        np.testing.assert_allclose(pcm_to_samples(buffer.getvalue()), samples, atol=2**-15)
        np.testing.assert_allclose(listener.samples, samples, atol=1e-6)

    run_virtual(main())


def test_after_a_clear_the_others_take_everything_again():
    async def main():
        buffer, file = pcm_file()
        async with TeeSink([MemorySink(clock=LoopClock()), file]) as tee:
            writing = asyncio.ensure_future(tee.write(chunk_of(tone(9.0))))
            await asyncio.sleep(0.5)
            await tee.clear()
            await writing
            before = len(buffer.getvalue())
            await tee.write(chunk_of(tone(0.3), last=True))
            await tee.drain()
            assert (len(buffer.getvalue()) - before) // 2 == 7200
            assert tee.playhead.pending_s == 0

    run_virtual(main())


def test_a_cancelled_close_is_silent_at_once():
    async def main():
        _, file = pcm_file()
        listener = MemorySink(clock=LoopClock())
        tee = TeeSink([listener, file])
        await tee.write(chunk_of(tone(1.9)))
        closing = asyncio.ensure_future(tee.close())
        await asyncio.sleep(0.1)
        closing.cancel()
        await asyncio.wait([closing])
        assert closing.cancelled()
        assert listener.playhead.pending_s == 0
        with pytest.raises(SinkError, match="closed"):
            await file.start()

    run_virtual(main())


def test_a_tee_of_nothing():
    with pytest.raises(InputError, match="at least one"):
        TeeSink([])
