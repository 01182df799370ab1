"""Attention with a bounded view: a band for the text encoder, a window with anchors for the frame decoder.

The window sees the last ``WINDOW`` frames. Of everything before, each completed block of ``WINDOW`` frames leaves
``anchors`` summaries (keys and values that learned queries pick from the block), so memory and time per frame do not
grow with the length of the speech.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tts_engine.nn.window import KEPT_BLOCKS, WINDOW


def rotary_angles(positions: Tensor, head_size: int) -> tuple[Tensor, Tensor]:
    """cos and sin for ``positions`` [...] -> [..., head_size / 2] each (RoPE, Su et al. 2021, half-split form)."""
    half = head_size // 2
    rates = 10000.0 ** (-torch.arange(half, device=positions.device, dtype=torch.float32) / half)
    angles = positions.to(torch.float32).unsqueeze(-1) * rates
    return angles.cos(), angles.sin()


def split_last(x: Tensor, parts: int, size: int) -> Tensor:
    """[..., parts * size] -> [..., parts, size]."""
    return x.reshape(*x.shape[:-1], parts, size)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turns ``x`` [..., head_size] by the angles (half split)."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, first * sin + second * cos), dim=-1)


class BandAttention(nn.Module):
    """Bidirectional self-attention with |i - j| <= reach. The weights belong to the caller: qkv in, mixed values out."""

    def __init__(self, heads: int, reach: int) -> None:
        super().__init__()
        self.heads = heads
        self.reach = reach

    def forward(self, qkv: Tensor, keep: Tensor) -> Tensor:
        """``qkv``: [rows, time, 3 * channels], time a multiple of ``reach``; ``keep``: [rows, time], 1 inside a row and 0
        beyond its end -> [rows, time, channels].

        A block of ``reach`` queries looks at its own block and its two neighbours, so memory is linear in time.
        """
        rows, time, width = qkv.shape
        reach, size = self.reach, width // 3 // self.heads
        heads = split_last(qkv, 3 * self.heads, size)  # [rows, time, 3 heads, h]
        cos, sin = rotary_angles(torch.arange(time, device=qkv.device), size)
        turned = rotate(heads[:, :, : 2 * self.heads], cos.unsqueeze(1), sin.unsqueeze(1))
        q = (
            turned[:, :, : self.heads].reshape(rows, time // reach, reach, self.heads, size).transpose(2, 3)
        )  # [rows, blocks, heads, reach, h]
        k = self._neighbours(turned[:, :, self.heads :]).transpose(2, 3)
        v = self._neighbours(heads[:, :, 2 * self.heads :]).transpose(2, 3)
        there = self._neighbours(keep)[:, :, None, None, :]  # [rows, blocks, 1, 1, 3 reach]
        query = torch.arange(reach, device=qkv.device)
        key = torch.arange(3 * reach, device=qkv.device) - reach
        near = ((query[:, None] - key[None, :]).abs() <= reach).to(qkv.dtype)
        # finite, since beyond a row's end a query sees nothing at all
        scores = q @ k.transpose(-1, -2) / math.sqrt(size) + (there * near - 1) * 1e9
        mixed = torch.softmax(scores, dim=-1) @ v  # [rows, blocks, heads, reach, h]
        return mixed.transpose(2, 3).reshape(rows, time, width // 3)

    def _neighbours(self, x: Tensor) -> Tensor:
        """[rows, time, ...] -> [rows, blocks, 3 * reach, ...]: each block with the one before and the one after."""
        nothing = torch.zeros_like(x[:, : self.reach])
        padded = torch.cat((nothing, x, nothing), dim=1)
        blocks = padded.reshape(x.shape[0], padded.shape[1] // self.reach, self.reach, *x.shape[2:])
        return torch.cat((blocks[:, :-2], blocks[:, 1:-1], blocks[:, 2:]), dim=2)


@dataclass(frozen=True, slots=True)
class Sight:
    """What the frames of a step may see, the same for all layers.

    ``cos``, ``sin``: [rows, 1, time, h / 2], angles of the frames; ``mask``: [rows, 1, time, (slots + 1) * anchors + WINDOW +
    time], additive (0 or -inf), over kept blocks, the block that the step completes, ring and step; ``closing``: [rows, 1, 1,
    WINDOW + time], likewise, which frames of ring and step are that block (all where the step completes none).
    """

    cos: Tensor
    sin: Tensor
    mask: Tensor
    closing: Tensor


def _additive(seen: Tensor) -> Tensor:
    return torch.zeros(seen.shape, device=seen.device).masked_fill_(~seen, -math.inf)


class WindowAttention(nn.Module):
    """Causal attention over a window of frames and the anchors of completed blocks, with low-rank q, k and v.

    q, k, v live in ``heads * head_size`` dimensions, fewer than the model's: the projections are the low-rank factors.
    """

    def __init__(self, channels: int, heads: int, head_size: int, anchors: int) -> None:
        super().__init__()
        self.heads, self.head_size, self.anchors = heads, head_size, anchors
        self.aq = nn.Parameter(torch.zeros(heads, anchors, head_size))
        self.qkv = nn.Linear(channels, 3 * heads * head_size)
        self.o = nn.Linear(heads * head_size, channels)

    def _heads(self, x: Tensor) -> Tensor:
        """Of ``x`` [rows, time, channels] the heads' q, then k, then v: [rows, 3 heads, time, h]."""
        return split_last(self.qkv(x), 3 * self.heads, self.head_size).transpose(1, 2)

    def _summarise(self, keys: Tensor, values: Tensor, closing: Tensor | None = None) -> Tensor:
        """Anchors of blocks, from unrotated ``keys`` and ``values`` [..., heads, frames, h]: keys, then values, [..., 2 heads,
        anchors, h]. ``closing``: additive mask of the frames that belong to the block."""
        scores = self.aq @ keys.transpose(-1, -2) / math.sqrt(self.head_size)
        weights = torch.softmax(scores if closing is None else scores + closing, dim=-1)
        return torch.cat((weights @ keys, weights @ values), dim=-3)

    def step(self, x: Tensor, ring: Tensor, anchors: Tensor, sight: Sight) -> tuple[Tensor, Tensor, Tensor]:
        """The next frames: ``x`` [rows, time, channels] -> the same shape.

        ``ring``: [rows, 3 heads, WINDOW, h], slot = frame mod WINDOW: unrotated keys, rotated keys, values of the last frames.
        ``anchors``: [rows, 2 heads, slots * anchors, h]: keys and values of the blocks that are kept. Also gives what the new
        frames put into the ring, [rows, 3 heads, time, h], and the anchors of the block that they complete, [rows, 2 heads,
        anchors, h] (of no meaning where they complete none).
        """
        q, k, v = self._heads(x).chunk(3, dim=1)
        fresh = torch.cat((k, rotate(k, sight.cos, sight.sin), v), dim=1)
        plain, turned, values = torch.cat((ring, fresh), dim=2).chunk(3, dim=1)  # each [rows, heads, WINDOW + time, h]
        made = self._summarise(plain, values, sight.closing)
        known_keys, known_values = torch.cat((anchors, made), dim=2).chunk(2, dim=1)

        near = rotate(q, sight.cos, sight.sin) @ turned.transpose(-1, -2)
        far = q @ known_keys.transpose(-1, -2)
        scores = torch.cat((far, near), dim=-1) / math.sqrt(self.head_size) + sight.mask
        mixed = torch.softmax(scores, dim=-1) @ torch.cat((known_values, values), dim=2)
        y: Tensor = self.o(mixed.transpose(1, 2).flatten(2))
        return y, fresh, made

    def forward(self, x: Tensor) -> Tensor:
        """The whole sequence at once: [rows, time, channels] -> the same shape. Quadratic: for training and as a reference."""
        rows, time, _ = x.shape
        q, k, v = self._heads(x).chunk(3, dim=1)
        frame = torch.arange(time, device=x.device)
        cos, sin = rotary_angles(frame, self.head_size)
        scale = 1 / math.sqrt(self.head_size)
        age = frame[:, None] - frame[None, :]
        near = rotate(q, cos, sin) @ rotate(k, cos, sin).transpose(-1, -2) * scale + _additive((age >= 0) & (age < WINDOW))
        blocks = time // WINDOW
        if not blocks:
            mixed = torch.softmax(near, dim=-1) @ v
        else:
            shape = (rows, self.heads, blocks, WINDOW, self.head_size)
            cut = slice(0, blocks * WINDOW)
            keys = k[:, :, cut].reshape(shape).transpose(1, 2)
            made = self._summarise(keys, v[:, :, cut].reshape(shape).transpose(1, 2))
            made_keys, made_values = made.transpose(1, 2).flatten(2, 3).chunk(2, dim=1)  # [rows, heads, blocks * anchors, h]
            newest = (frame // WINDOW)[:, None]
            block = torch.arange(blocks, device=x.device).repeat_interleave(self.anchors)
            seen = (block < newest) & (block >= newest - KEPT_BLOCKS)
            far = q @ made_keys.transpose(-1, -2) * scale + _additive(seen)
            weights = torch.softmax(torch.cat((far, near), dim=-1), dim=-1)
            mixed = weights @ torch.cat((made_values, v), dim=2)
        y: Tensor = self.o(mixed.transpose(1, 2).reshape(rows, time, -1))
        return y
