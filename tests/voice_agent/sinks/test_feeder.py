"""The audio thread's half of the speaker, driven by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tts_engine.types import AudioFormat
from voice_agent.sinks.feeder import Feeder
from voice_agent.sinks.valve import Valve
from voice_agent.testing.clicks import find_clicks
from voice_agent.testing.sink_conformance import tone

RATE = 24_000


def feeder(channels: int = 1) -> Feeder:
    return Feeder(AudioFormat(RATE, channels), capacity_s=3.0)


def pull(device: Feeder, frames: int, due_s: float = 0.0, *, late: bool = False) -> np.ndarray:
    out = np.full((frames, device.format.channels), 9.0, dtype=np.float32)
    device.fill(out, due_s, late)
    return out[:, 0]


def test_silence_until_something_is_pushed_then_every_sample():
    device, samples = feeder(), tone(0.5)
    assert not pull(device, 100).any()
    device.push(samples)
    got = np.concatenate([pull(device, size) for size in (1, 63, 480, 480, 4000, 8000)])
    assert np.array_equal(got[:12_000], samples)
    assert not got[12_000:].any()
    assert device.played == 12_000


def test_stereo():
    device = feeder(2)
    samples = np.stack([tone(0.1), -tone(0.1)], axis=1)
    device.push(samples)
    out = np.zeros((3000, 2), dtype=np.float32)
    device.fill(out, 0.0)
    assert np.array_equal(out[:2400], samples)
    assert device.played == 2400


def test_heard_follows_the_time_at_which_buffers_sound():
    device = feeder()
    device.push(tone(1.0))
    pull(device, 2400, 10.0)
    pull(device, 2400, 10.1)
    pull(device, 2400, 10.3)  # the device paused for 0.1 s
    heard = [device.heard(now_s) for now_s in (9.0, 10.05, 10.1, 10.25, 10.35, 99.0)]
    assert heard == [0, 1200, 2400, 4800, 6000, 7200]


@pytest.mark.parametrize("size", [16, 64, 240, 1000])
def test_a_drop_fades_out_within_5_ms_and_within_one_buffer(size):
    device, samples = feeder(), tone(1.0, 300.0)
    device.push(samples)
    before = np.concatenate([pull(device, size) for _ in range(-(-5000 // size))])
    device.ask_to_drop()
    assert not device.dropped
    device.push(tone(0.1, 700.0))
    faded = pull(device, size)
    assert device.dropped
    assert device.played == len(before) + min(size, 120)
    assert not faded[120:].any()
    behind = pull(device, 2400)
    assert np.array_equal(behind, tone(0.1, 700.0))
    if size >= 64:
        assert find_clicks(np.concatenate([before, faded, behind]), RATE) == []


def test_a_drop_of_nothing_is_done_with_the_next_buffer():
    device = feeder()
    device.ask_to_drop()
    assert device.dropped
    pull(device, 100)
    assert device.played == 0


def test_running_dry_is_an_underrun_only_while_more_is_expected():
    device = feeder()
    device.push(tone(0.05))
    pull(device, 2400)
    assert device.underruns == 0
    device.speaking = True
    device.push(tone(0.05))
    pull(device, 1200)
    assert device.underruns == 0
    pull(device, 480)
    pull(device, 480)
    assert device.underruns == 1  # one gap, however long
    device.push(tone(0.05))
    pull(device, 1200)
    pull(device, 480)
    assert device.underruns == 2
    device.push(tone(0.05))
    pull(device, 480, late=True)
    assert device.underruns == 3
    assert device.late == 1


def test_running_dry_does_not_click():
    device, samples = feeder(), tone(0.2, 200.0)[:4710]  # ends in full swing
    device.push(samples)
    got = np.concatenate([pull(device, 500) for _ in range(20)])
    assert abs(samples[-1]) > 0.1
    assert find_clicks(got, RATE) == []
    assert not got[4710 + 120 :].any()


@pytest.mark.parametrize("size", [16, 64, 240, 1000])
def test_a_hold_fades_out_within_10_ms_and_goes_on_with_the_next_sample(size):
    valve, told = Valve(RATE), []
    device = Feeder(AudioFormat(RATE), 3.0, valve, lambda frames, due_s: told.append(frames.copy()))
    samples = tone(1.0, 300.0)
    device.push(samples)
    device.speaking = True
    before = [pull(device, size) for _ in range(-(-5000 // size))]
    valve.hold()
    during = [pull(device, size) for _ in range(-(-960 // size))]
    played = device.played
    assert valve.held
    assert played == sum(map(len, before)) + 240
    assert not np.concatenate(during)[240:].any()
    valve.resume()
    after = [pull(device, size) for _ in range(-(-(len(samples) - played) // size))]
    assert device.played == len(samples)
    assert device.underruns <= 1  # of the end of the speech
    stitched = np.concatenate([*before, np.concatenate(during)[:240], *after])[: len(samples)]
    assert np.array_equal(stitched[: played - 240], samples[: played - 240])
    assert np.allclose(stitched[played + 240 :], samples[played + 240 :])
    assert find_clicks(np.concatenate([*before, *during, *after]), RATE) == []
    heard = np.concatenate([*before, *during, *after])
    assert np.array_equal(np.concatenate(told)[:, 0][:played], heard[:played])


def test_what_is_held_can_be_dropped_unheard():
    valve = Valve(RATE)
    device = Feeder(AudioFormat(RATE), 3.0, valve)
    device.push(tone(1.0))
    pull(device, 4800)
    valve.hold()
    pull(device, 480)
    device.ask_to_drop()
    valve.resume()
    device.push(tone(0.1, 700.0))
    assert not pull(device, 480).any()
    assert device.dropped
    assert np.array_equal(pull(device, 2400), tone(0.1, 700.0))


def test_a_gain_is_reached_within_20_ms_and_meant_for_what_comes_next_while_nothing_plays():
    valve = Valve(RATE)
    device = Feeder(AudioFormat(RATE), 3.0, valve)
    samples = tone(1.0, 300.0)
    device.push(samples)
    before = pull(device, 6000)
    valve.set_gain(-12.0)
    behind = pull(device, 6000)
    assert np.allclose(behind[480:], samples[6480:12_000] * 10 ** (-12 / 20), atol=1e-6)
    assert find_clicks(np.concatenate([before, behind]), RATE) == []
    pull(device, 24_000)
    valve.set_gain(0.0)
    pull(device, 100)
    device.push(tone(0.1))
    assert np.array_equal(pull(device, 2400), tone(0.1))
