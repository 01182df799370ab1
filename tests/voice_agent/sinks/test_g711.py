"""G.711 against the values of the standard, and against the standard library's where it has them."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from voice_agent.sinks.g711 import decode, encode

LAWS = ("ulaw", "alaw")
EVERY_CODE = bytes(range(256))
EVERY_SAMPLE = np.arange(-(1 << 15), 1 << 15, dtype=np.int16)


def floats(whole):
    return np.asarray(whole, np.float32) / np.float32(1 << 15)


# Tables 1 and 2 of G.711: character signals and what they are decoded to, there in 14 bits for the μ-law and 13 for
# the A-law, here in 16.
@pytest.mark.parametrize(
    ("law", "code", "value"),
    [
        ("ulaw", 0b1000_0000, 8031 * 4),
        ("ulaw", 0b1000_1111, 4191 * 4),
        ("ulaw", 0b1001_1111, 2079 * 4),
        ("ulaw", 0b1010_1111, 1023 * 4),
        ("ulaw", 0b1011_1111, 495 * 4),
        ("ulaw", 0b1100_1111, 231 * 4),
        ("ulaw", 0b1101_1111, 99 * 4),
        ("ulaw", 0b1110_1111, 33 * 4),
        ("ulaw", 0b1111_1110, 2 * 4),
        ("ulaw", 0b1111_1111, 0),
        ("ulaw", 0b0000_0000, -8031 * 4),
        ("ulaw", 0b0111_1110, -2 * 4),
        ("alaw", 0b1111_1111 ^ 0x55, 4032 * 8),
        ("alaw", 0b1111_0000 ^ 0x55, 2112 * 8),
        ("alaw", 0b1110_0000 ^ 0x55, 1056 * 8),
        ("alaw", 0b1101_0000 ^ 0x55, 528 * 8),
        ("alaw", 0b1010_0000 ^ 0x55, 66 * 8),
        ("alaw", 0b1000_0000 ^ 0x55, 1 * 8),
        ("alaw", 0b0000_0000 ^ 0x55, -1 * 8),
        ("alaw", 0b0111_1111 ^ 0x55, -4032 * 8),
    ],
)
def test_values_of_the_standard(law, code, value):
    assert decode(bytes([code]), law)[0] * 2**15 == value
    assert encode(floats([value]), law) == bytes([code])


@pytest.mark.parametrize("law", LAWS)
def test_codes_survive(law):
    there_and_back = encode(decode(EVERY_CODE, law), law)
    negative_zero = {0x7F: 0xFF} if law == "ulaw" else {}
    assert list(there_and_back) == [negative_zero.get(code, code) for code in EVERY_CODE]


@pytest.mark.parametrize("law", LAWS)
def test_every_sample_is_close(law):
    error = np.abs(decode(encode(floats(EVERY_SAMPLE), law), law) * 2**15 - EVERY_SAMPLE)
    size = np.abs(EVERY_SAMPLE.astype(np.float64))
    assert (error <= (size + 132) / 32 + 4).all()


@pytest.mark.parametrize("law", LAWS)
def test_it_is_monotonous(law):
    assert (np.diff(decode(encode(floats(EVERY_SAMPLE), law), law)) >= 0).all()


def test_wild_samples():
    wild = np.array([np.nan, np.inf, -np.inf, 2.0, -2.0], np.float32)
    for law in LAWS:
        assert encode(wild, law) == encode(np.array([0.0, 1.0, -1.0, 1.0, -1.0], np.float32), law)
        assert encode(np.zeros(0, np.float32), law) == b""


@pytest.mark.peer
@pytest.mark.parametrize("law", LAWS)
def test_like_the_standard_library(law):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        audioop = pytest.importorskip("audioop", reason="Python 3.13 has none")
    expected = getattr(audioop, f"lin2{law}")(EVERY_SAMPLE.tobytes(), 2)
    ours = encode(floats(EVERY_SAMPLE), law)
    assert ours == expected
    decoded = np.frombuffer(getattr(audioop, f"{law}2lin")(EVERY_CODE, 2), np.int16)
    assert (decode(EVERY_CODE, law) * 2**15 == decoded).all()
