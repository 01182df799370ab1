"""Joins the states of single rows into one batch and parts them again.

A state is a dataclass of tensors [rows, ...], lists of counts (one a row), and lists of states or tensors (one a layer).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, TypeVar

import torch
from torch import Tensor

State = TypeVar("State")


def join(states: Sequence[State]) -> State:
    """One state whose rows are those of ``states``, in order. A single state is given back as it is, not copied."""
    first = states[0]
    if len(states) == 1:
        return first
    return type(first)(*(_join([getattr(state, field.name) for state in states]) for field in fields(first)))  # type: ignore[arg-type]


def part(joined: State, states: Sequence[State]) -> None:
    """Writes the rows of ``joined`` back into the single-row ``states`` that it was made of."""
    if len(states) == 1:
        assert joined is states[0]
        return
    for field in fields(joined):  # type: ignore[arg-type]
        value = getattr(joined, field.name)
        for row, state in enumerate(states):
            setattr(state, field.name, _row(value, row))


def _join(values: Sequence[Any]) -> Any:
    first = values[0]
    if isinstance(first, Tensor):
        return torch.cat(list(values))
    if isinstance(first, list):
        if first and isinstance(first[0], int):
            return [count for value in values for count in value]
        return [_join(layer) for layer in zip(*values, strict=True)]
    return join(values)


def _row(value: Any, row: int) -> Any:
    if isinstance(value, Tensor):
        return value[row : row + 1].clone()
    if isinstance(value, list):
        if value and isinstance(value[0], int):
            return [value[row]]
        return [_row(layer, row) for layer in value]
    return type(value)(*(_row(getattr(value, field.name), row) for field in fields(value)))
