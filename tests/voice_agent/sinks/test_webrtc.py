"""The WebRTC sink: the sink's contract, and frames in time whatever the loop does."""

from __future__ import annotations

import asyncio
import contextlib

import numpy as np
import pytest

from voice_agent.sinks.webrtc import FRAME_S, FRAME_SAMPLES, RATE, WebRtcSink
from voice_agent.testing.clock import LoopClock, run_virtual
from voice_agent.testing.sink_conformance import CHECKS, Rig, chunk_of, tone


class PeeredSink(WebRtcSink):
    """With somebody who asks for frames, from its start to its end, and keeps what is said in them."""

    def __init__(self, **options) -> None:
        super().__init__(clock=LoopClock(), **options)
        self.said: list[np.ndarray] = []
        self.frames: list[tuple[float, int, np.ndarray]] = []

    async def _open(self, format):
        self._peer = asyncio.create_task(self._ask())
        return await super()._open(format)

    async def _release(self):
        self._peer.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._peer
        await super()._release()

    async def _ask(self):
        while True:
            frame, place, _ = await self.next_frame()
            self.frames.append((self._clock.now_s(), place, frame))

    def _tell(self, frames, begins_s):
        self.said.append(frames.reshape(-1))
        super()._tell(frames, begins_s)


def rig(latency_s: float) -> Rig:
    return Rig(
        make=lambda: PeeredSink(latency_s=latency_s),
        output=lambda sink: (np.concatenate([np.zeros(0, np.float32), *sink.said]), RATE),
        real_time=True,
        hold_s=latency_s + 0.04,  # what is on its way is heard
    )


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("rig", [rig(latency_s=0.0), rig(latency_s=0.12)], ids=["near", "far"])
def test_conformance(rig, check):
    run_virtual(check(rig))


def sound(sink) -> np.ndarray:
    return np.concatenate([frame for _, _, frame in sink.frames])


def test_frames_keep_to_the_clock_and_do_not_pile_up():
    """Ten minutes of frames without drift, and behind a stall not more frames than its bound."""

    async def main():
        sink = PeeredSink()
        await sink.start()
        await asyncio.sleep(600)
        times = np.array([at for at, _, _ in sink.frames])
        places = np.array([place for _, place, _ in sink.frames])
        drift = (times - times[0]) - places / RATE
        assert np.abs(drift).max() < 1e-6
        await sink.close()

    async def stalled():
        sink = WebRtcSink(clock=LoopClock())
        first = await sink.next_frame()
        await asyncio.sleep(0.09)  # short of the bound: late frames come at once, none is left out
        places = [(await sink.next_frame())[1] for _ in range(6)]
        assert places == [FRAME_SAMPLES * n for n in range(1, 7)]
        before_s = LoopClock().now_s()
        await asyncio.sleep(1.0)
        after = [await sink.next_frame() for _ in range(3)]
        gone = after[0][1] - places[-1]
        assert gone == pytest.approx(RATE, abs=2 * FRAME_SAMPLES)  # the time that passed is a hole
        assert LoopClock().now_s() - before_s == pytest.approx(1.0 + 2 * FRAME_S, abs=FRAME_S)
        assert first[1] == 0

    run_virtual(main())
    run_virtual(stalled())


def test_silence_comes_where_nothing_is_said():
    async def main():
        async with PeeredSink() as sink:
            await asyncio.sleep(0.2)
            await sink.write(chunk_of(tone(0.1), last=True))
            await sink.drain()
            await asyncio.sleep(0.2)
            levels = [float(np.abs(frame).max()) > 0.01 for _, _, frame in sink.frames]
            assert levels.count(True) == 5
            assert not levels[0]
            assert not levels[-1]
            assert sink.playhead.underruns == 0

    run_virtual(main())


def test_heard_follows_the_delay_that_the_player_reports():
    async def main():
        async with PeeredSink(latency_s=0.1) as sink:
            await sink.write(chunk_of(tone(1.0)))
            await asyncio.sleep(0.5)
            assert sink.playhead.heard_s == pytest.approx(0.4, abs=FRAME_S)
            sink.sound_delay(0.3)
            await asyncio.sleep(0.4)
            assert sink.playhead.latency_s == 0.3
            assert sink.playhead.heard_s == pytest.approx(0.6, abs=2 * FRAME_S)
            sink.sound_delay(-1.0)
            assert sink.playhead.latency_s == 0.0
            sink.sound_delay(1e9)
            assert sink.playhead.latency_s <= 5.0

    run_virtual(main())


def test_a_cut_fades_and_the_next_words_follow_at_once():
    async def main():
        async with PeeredSink(latency_s=0.0) as sink:
            await sink.write(chunk_of(tone(1.0)))
            await asyncio.sleep(0.31)
            await sink.clear()
            cleared_s = LoopClock().now_s()
            await sink.write(chunk_of(tone(0.2, 880.0), last=True))
            await sink.drain()
            steps = np.abs(np.diff(sound(sink)))
            assert steps.max() < 0.06  # a sine of 880 Hz at half scale moves by 0.058 a sample
            later = [np.abs(frame).max() for at, _, frame in sink.frames if cleared_s + 2 * FRAME_S < at < cleared_s + 0.1]
            assert min(later) > 0.4

    run_virtual(main())


def test_a_gap_inside_a_sentence_is_counted_once():
    async def main():
        async with PeeredSink() as sink:
            await sink.write(chunk_of(tone(0.1)))
            await asyncio.sleep(0.5)
            await sink.write(chunk_of(tone(0.1), last=True))
            await sink.drain()
            await asyncio.sleep(0.2)
            assert sink.playhead.underruns == 1

    run_virtual(main())


def test_without_a_peer_speech_waits_and_can_be_dropped():
    async def main():
        sink = WebRtcSink(clock=LoopClock())
        writing = asyncio.ensure_future(sink.write(chunk_of(tone(5.0))))
        await asyncio.sleep(10.0)
        assert not writing.done()
        assert sink.playhead.heard_samples == 0
        head = await sink.hold()
        assert head.heard_samples == 0
        await sink.clear()
        await writing
        await sink.close()

    run_virtual(main())


async def test_packets_hold_what_was_said():
    """The track's packets, decoded, are the tone that was written, at its time; silence costs next to nothing."""
    av = pytest.importorskip("av", reason='WebRTC needs the extra "server"')
    sink = WebRtcSink()
    track = sink.track
    assert sink.track is track
    await sink.write(chunk_of(tone(0.4, 440.0), last=True))
    packets = [await track.recv() for _ in range(60)]
    assert [packet.pts for packet in packets] == sorted({packet.pts for packet in packets})
    assert all(packet.pts % FRAME_SAMPLES == 0 for packet in packets)
    decoder = av.AudioCodecContext.create("libopus", "r")
    decoder.layout = "mono"
    frames = [frame for packet in packets for frame in decoder.decode(packet)]
    samples = np.concatenate([frame.to_ndarray().reshape(-1) for frame in frames]).astype(np.float32) / 32768
    voiced = np.abs(samples) > 0.1
    assert np.count_nonzero(voiced) == pytest.approx(0.4 * RATE, rel=0.2)
    part = samples[voiced.argmax() + 2000 :][:9600]
    assert np.count_nonzero(np.diff(np.signbit(part))) == pytest.approx(2 * 440 * 0.2, abs=4)
    assert packets[-1].size < 40
    await sink.close()
    from aiortc.mediastreams import MediaStreamError

    with pytest.raises(MediaStreamError):
        await track.recv()


def test_a_missing_extra_is_named(monkeypatch):
    import sys

    from voice_agent.errors import MissingExtraError

    monkeypatch.setitem(sys.modules, "voice_agent.sinks.opus_track", None)
    with pytest.raises(MissingExtraError, match=r"sayline\[server\]"):
        _ = WebRtcSink().track
