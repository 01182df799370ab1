"""G.711, the code of telephone lines: 16-bit samples to 8-bit μ-law or A-law and back, by table.

Source: ITU-T Recommendation G.711 (1988), tables 1 and 2; 16-bit samples are rounded as in Sun's g711.c, which sox and
audioop use.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tts_engine.types import Samples

__all__ = ["Law", "decode", "encode"]

Law = Literal["ulaw", "alaw"]
_ULAW_BIAS = 33  # in 14-bit units: the segments begin at 33, 66, 132 …
_ULAW_MOST = 8158
_ALAW_MOST = 4095


def encode(samples: Samples, law: Law) -> bytes:
    """[samples] float32 in [-1, 1] to one byte each; louder samples are clipped."""
    tame = np.clip(np.nan_to_num(samples, nan=0.0), -1, 1) * np.float32(1 << 15)
    whole = np.minimum(np.rint(tame), (1 << 15) - 1).astype(np.int16)
    data: bytes = _encoding(law)[whole.view(np.uint16)].tobytes()
    return data


def decode(data: bytes, law: Law) -> Samples:
    """One byte each to [samples] float32."""
    samples: Samples = _decoding(law)[np.frombuffer(data, np.uint8)].astype(np.float32) / np.float32(1 << 15)
    return samples


@cache
def _encoding(law: Law) -> NDArray[np.uint8]:
    """The code of each 16-bit sample, by its bits taken as unsigned."""
    linear = np.arange(1 << 16, dtype=np.uint16).view(np.int16).astype(np.int32)
    negative = linear < 0
    if law == "ulaw":
        magnitude = np.minimum(np.abs(linear >> 2), _ULAW_MOST) + _ULAW_BIAS  # 14 bits
        segment = np.log2(magnitude).astype(np.int32) - 5
        code = segment << 4 | (magnitude >> segment + 1 & 15)
        return np.asarray(np.where(negative, 0x7F, 0xFF) ^ code, np.uint8)
    magnitude = np.minimum(np.where(negative, ~linear, linear) >> 3, _ALAW_MOST)  # 13 bits
    segment = np.maximum(np.log2(np.maximum(magnitude, 1)).astype(np.int32) - 4, 0)
    code = segment << 4 | (magnitude >> np.maximum(segment, 1) & 15)
    return np.asarray(np.where(negative, 0x55, 0xD5) ^ code, np.uint8)


@cache
def _decoding(law: Law) -> NDArray[np.int16]:
    """The 16-bit sample of each code: the middle of what it stands for."""
    code = np.arange(256)
    if law == "ulaw":
        code = ~code & 0xFF
        magnitude = (2 * (code & 15) + _ULAW_BIAS << (code >> 4 & 7)) - _ULAW_BIAS
        return np.where(code & 0x80, -4 * magnitude, 4 * magnitude).astype(np.int16)
    code = code ^ 0x55
    segment, step = code >> 4 & 7, 2 * (code & 15) + 1
    magnitude = np.where(segment == 0, step, step + 32 << np.maximum(segment, 1) - 1)
    return np.where(code & 0x80, 8 * magnitude, -8 * magnitude).astype(np.int16)
