"""The graphs of the compiled path: where they lie, and how a weight of a voice becomes one of their constants.

A graph refers to weights as ``NAME``, ``NAME:transposed`` ([inputs, outputs]), ``NAME:taps`` ([width * inputs, outputs] of a
convolution) and ``NAME:AxBxC`` (another shape). Where a product is quantised it refers to ``NAME:int8`` ([inputs, outputs])
with ``NAME:scale`` (one a channel of output, symmetric), and, where the range of its input is fixed, to ``NAME:input_scale``
and ``NAME:input_zero`` (numbers) for the unsigned bytes that its input becomes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

GRAPHS = Path(__file__).parent / "graphs"
LEAST_QUANTIZED = 16_384
"""Weights with fewer numbers stay float32 in the int8 graphs."""
KEPT_FLOAT = frozenset({"acoustic.inp.weight", "acoustic.fp.weight", "acoustic.out.weight", "vocoder.inp.weight"})
"""So do these, at the joints between the networks, where inputs of unlike sizes meet: bytes cost them most."""


WEIGHT_FORMS, INPUT_FORMS = ("int8", "scale"), ("input_scale", "input_zero")


def constant(reference: str, weight: NDArray[np.float32]) -> NDArray[Any]:
    """The array that a graph's ``reference`` to ``weight`` [outputs, ...] stands for, except for the range of an input."""
    form = reference.partition(":")[2]
    if not form:
        return weight
    if form == "transposed":
        return np.ascontiguousarray(weight.reshape(len(weight), -1).T)
    if form == "taps":
        return np.ascontiguousarray(weight.transpose(2, 1, 0).reshape(-1, len(weight)))
    if form in WEIGHT_FORMS:
        flat = weight.reshape(len(weight), -1)
        scale = (np.maximum(np.abs(flat).max(axis=1), 1e-12) / 127).astype(np.float32)
        return scale if form == "scale" else np.ascontiguousarray(np.rint(flat / scale[:, None]).astype(np.int8).T)
    return np.ascontiguousarray(weight.reshape([int(size) for size in form.split("x")]))


def input_range(low: float, high: float) -> dict[str, NDArray[Any]]:
    """The forms that say how an input that lies in [low, high] becomes bytes."""
    low, high = min(low, 0.0), max(high, 0.0)  # zero must be exact: it is what padding holds
    step = max(high - low, 1e-6) / 255
    return {"input_scale": np.array(step, np.float32), "input_zero": np.array(round(-low / step), np.uint8)}
