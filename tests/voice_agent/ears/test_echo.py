"""Echo: what is taken off, what is said to be left, and what a guard that cannot be had says."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from tests.voice_agent.ears.scenes import RATE, echo_of, silence, voice
from voice_agent.ears.canceller import EchoCanceller
from voice_agent.ears.echo import EchoLeak, HalfDuplex, Headphones, SelfEchoGuard, echo_guard
from voice_agent.errors import MissingExtraError


def cancel(microphone: np.ndarray, played: np.ndarray, canceller: EchoCanceller) -> tuple[np.ndarray, np.ndarray]:
    """The rest, and in each hop the power said to be left."""
    hops = [canceller.feed(microphone[i : i + 160], played[i : i + 160]) for i in range(0, len(played) - 159, 160)]
    return np.concatenate([rest for rest, _, _ in hops]), np.array([left.sum() for _, _, left in hops])


def db(samples: np.ndarray) -> float:
    return float(10 * np.log10(np.mean(np.square(samples)) + 1e-12))


@pytest.mark.parametrize("delay_s", [0.0, 0.02, 0.12, 0.2])
def test_an_echo_is_learned_and_taken_off(delay_s: float) -> None:
    played = voice(12, seed=2, level=0.08)
    echo = echo_of(played, delay_s, -10, reverberation_s=0.08)
    rest, left = cancel(echo + silence(12), played, EchoCanceller())
    tail = slice(-3 * RATE, None)
    assert db(rest[tail]) < db(echo[tail]) - 15
    # what it says may be left is not less than what is left, and falls while it learns
    assert 10 * np.log10(left[-300:].mean()) > db(rest[tail]) - 3
    assert left[-300:].mean() < left[20:100].mean() / 10


def test_the_user_is_kept() -> None:
    played = voice(12, seed=2, level=0.08)
    user = np.zeros_like(played)
    user[8 * RATE : 10 * RATE] = voice(2, seed=7)
    rest, _ = cancel(echo_of(played, 0.05, -10, reverberation_s=0.1) + user + silence(12), played, EchoCanceller())
    stretch = slice(8 * RATE, 10 * RATE)
    assert db(rest[stretch] - user[stretch]) < db(user[stretch]) - 10


def test_a_path_that_changes_is_learned_again() -> None:
    played = voice(16, seed=2, level=0.08)
    near, far = echo_of(played, 0.03, -10, seed=1, reverberation_s=0.1), echo_of(played, 0.08, -14, seed=2, reverberation_s=0.1)
    echo = np.where(np.arange(len(played)) < 8 * RATE, near, far).astype(np.float32)
    rest, _ = cancel(echo + silence(16), played, EchoCanceller())
    assert db(rest[-2 * RATE :]) < db(echo[-2 * RATE :]) - 8


def test_without_playout_the_microphone_is_untouched() -> None:
    room = silence(2)
    rest, left = cancel(room, np.zeros_like(room), EchoCanceller())
    assert np.array_equal(rest, room)
    assert not left.any()


def test_reset_forgets_the_path() -> None:
    played = voice(3, seed=2)
    echo = echo_of(played, 0.03, -10)
    canceller = EchoCanceller()
    first, _ = cancel(echo, played, canceller)
    canceller.reset()
    second, _ = cancel(echo, played, canceller)
    assert np.array_equal(first, second)


def test_half_duplex_waits_for_the_room() -> None:
    guard, hop, sound = HalfDuplex(), silence(0.01), np.full(160, 0.1, dtype=np.float32)
    assert np.array_equal(guard.feed(hop, np.zeros(160, dtype=np.float32))[0], hop)
    assert not guard.feed(hop, sound)[0].any()
    quiet = [guard.feed(hop, np.zeros(160, dtype=np.float32))[0].any() for _ in range(40)]
    assert quiet.index(True) == 29  # 0.3 s


def test_headphones_take_the_microphone_as_it_is() -> None:
    hop = silence(0.01)
    heard, left = Headphones().feed(hop, np.full(160, 0.5, dtype=np.float32))
    assert heard is hop
    assert not left.any()


def test_a_leak_is_learned_within_bounds() -> None:
    leak = EchoLeak()
    start = leak.gain
    for _ in range(200):
        leak.feed(True)
    assert leak.gain == pytest.approx(10**1.2)
    for _ in range(20_000):
        leak.feed(False)
    assert leak.gain < start
    leak.reset()
    assert leak.gain == start


def test_the_aec_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "livekit.rtc", None)
    with pytest.raises(MissingExtraError, match=r'pip install "sayline\[aec\]"'):
        echo_guard("aec")


def test_the_aec_takes_an_echo_off() -> None:
    pytest.importorskip("livekit.rtc", reason="livekit is not installed")
    guard = echo_guard("aec")
    played = voice(8, seed=2, level=0.08)
    echo = echo_of(played, 0.05, -10)
    hops = [guard.feed(echo[i : i + 160], played[i : i + 160]) for i in range(0, len(played), 160)]
    rest = np.concatenate([hop for hop, _ in hops])
    assert db(rest[4 * RATE :]) < db(echo[4 * RATE :]) - 20
    assert all(left.sum() > 0 for _, left in hops[100:])
    guard.reset()


def test_the_guard_expects_more_than_the_canceller_leaves() -> None:
    played = voice(4, seed=2, level=0.08)
    echo = echo_of(played, 0.05, -10)
    guard, canceller = SelfEchoGuard(), EchoCanceller()
    for i in range(0, len(played), 160):
        _, left = guard.feed(echo[i : i + 160], played[i : i + 160])
        _, _, missed = canceller.feed(echo[i : i + 160], played[i : i + 160])
        assert (left >= missed).all()
