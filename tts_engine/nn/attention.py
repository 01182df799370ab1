"""Attention with a bounded view: a band for the text encoder, a window with anchors for the frame decoder.

The window sees the last ``WINDOW`` frames. Of everything before, each completed block of ``WINDOW`` frames leaves
``anchors`` summaries (keys and values that learned queries pick from the block), so memory and time per frame do not
grow with the length of the speech.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

WINDOW = 64
"""Frames that a frame sees directly, itself included; also the length of a block that anchors summarise."""
KEPT_BLOCKS = 32
"""Blocks whose anchors are kept: with 64 frames of 25 ms, 51 seconds."""


def rotary_angles(positions: Tensor, head_size: int) -> tuple[Tensor, Tensor]:
    """cos and sin for ``positions`` [...] -> [..., head_size / 2] each (RoPE, Su et al. 2021, half-split form)."""
    half = head_size // 2
    rates = 10000.0 ** (-torch.arange(half, device=positions.device, dtype=torch.float32) / half)
    angles = positions.to(torch.float32).unsqueeze(-1) * rates
    return angles.cos(), angles.sin()


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

    def forward(self, qkv: Tensor, lengths: Tensor) -> Tensor:
        """``qkv``: [rows, time, 3 * channels]; ``lengths``: [rows] -> [rows, time, channels].

        Works in blocks of queries, so memory is linear in time.
        """
        rows, time, width = qkv.shape
        head_size = width // 3 // self.heads
        q, k, v = qkv.view(rows, time, 3, self.heads, head_size).permute(2, 0, 3, 1, 4)
        positions = torch.arange(time, device=qkv.device)
        cos, sin = rotary_angles(positions, head_size)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        block = 4 * self.reach
        out = []
        for start in range(0, time, block):
            stop = min(start + block, time)
            low, high = max(0, start - self.reach), min(time, stop + self.reach)
            here, there = positions[start:stop], positions[low:high]
            seen = (here[:, None] - there[None, :]).abs() <= self.reach  # [queries, keys]
            mask = seen & (there < lengths[:, None])[:, None, None, :]  # [rows, 1, queries, keys]
            mask = mask | (here >= lengths[:, None])[:, None, :, None]  # rows past their end see anything, never nothing
            out.append(
                F.scaled_dot_product_attention(q[:, :, start:stop], k[:, :, low:high], v[:, :, low:high], attn_mask=mask)
            )
        joined = torch.cat(out, dim=2) if len(out) > 1 else out[0]
        return joined.transpose(1, 2).reshape(rows, time, width // 3)


@dataclass(slots=True)
class WindowState:
    """What one attention layer carries for each row; allocated once, written in place.

    ``ring``: [rows, heads, WINDOW, 3 * head_size], slot = frame mod WINDOW: unrotated key, rotated key, value.
    ``anchors``: [rows, heads, KEPT_BLOCKS * anchors, 2 * head_size], slot = block mod KEPT_BLOCKS: key, value.
    """

    ring: Tensor
    anchors: Tensor


@dataclass(frozen=True, slots=True)
class Clock:
    """Where the rows stand in a step of ``time`` frames: masks and angles, made once and shared by all layers.

    Frames are counted from each row's start. Masks are additive (0 or -inf).
    """

    cos: Tensor  # [rows, 1, time, head_size / 2]
    sin: Tensor
    window_mask: Tensor  # [rows, 1, time, WINDOW + time]
    anchor_mask: Tensor | None  # [rows, 1, time, anchor slots in use, then the new block's]; None: nothing to see yet
    slots: Tensor  # [rows, kept] ring slots of the last frames of the step
    blocks_in_use: int  # anchor slots that any row has filled
    closing_rows: Tensor | None  # [closing] rows whose block ends in this step, None if there are none
    closing_source: Tensor | None  # [closing, WINDOW] where the frames of that block lie in [ring, step]
    closing_slots: Tensor | None  # [closing] anchor slot (block) that it fills

    @staticmethod
    def at(frames: list[int], time: int, anchors: int, head_size: int, device: torch.device | str = "cpu") -> Clock:
        """The clock for rows that have taken ``frames`` frames each and take ``time`` <= WINDOW more."""
        assert 0 < time <= WINDOW
        start = torch.tensor(frames, device=device)
        steps = torch.arange(time, device=device)
        query = start[:, None] + steps  # [rows, time]
        cos, sin = rotary_angles(query, head_size)

        slot = torch.arange(WINDOW, device=device)
        held = start[:, None] - 1 - (start[:, None] - 1 - slot) % WINDOW  # frame in each ring slot, < 0: none yet
        ring_seen = (held >= 0)[:, None, :] & (held[:, None, :] > query[:, :, None] - WINDOW)
        step_seen = steps[None, :] <= steps[:, None]
        window_seen = torch.cat((ring_seen, step_seen.expand(len(frames), -1, -1)), dim=2)

        done = [frame // WINDOW for frame in frames]  # blocks completed before this step
        closing = [row for row, frame in enumerate(frames) if frame + time >= WINDOW * (done[row] + 1)]
        in_use = min(KEPT_BLOCKS, max(done))
        anchor_mask = None
        if in_use or closing:
            block = torch.tensor(done, device=device)
            place = torch.arange(in_use, device=device)
            stored = block[:, None] - 1 - (block[:, None] - 1 - place) % KEPT_BLOCKS  # block in each anchor slot
            newest = query // WINDOW  # blocks completed before each frame
            old_seen = (stored >= 0)[:, None, :] & (stored[:, None, :] >= newest[:, :, None] - KEPT_BLOCKS)
            new_seen = (newest > block[:, None])[:, :, None]
            anchor_seen = torch.cat((old_seen, new_seen), dim=2) if closing else old_seen
            anchor_mask = _additive(anchor_seen.repeat_interleave(anchors, dim=2)).unsqueeze(1)

        kept = steps[-WINDOW:]
        closing_rows = closing_source = closing_slots = None
        if closing:
            closing_rows = torch.tensor(closing, device=device)
            first = torch.tensor([WINDOW * done[row] for row in closing], device=device)
            began = start[closing_rows]
            frame = first[:, None] + slot
            closing_source = torch.where(frame < began[:, None], slot, WINDOW + frame - began[:, None])
            closing_slots = torch.tensor([done[row] % KEPT_BLOCKS for row in closing], device=device)
        return Clock(
            cos=cos.unsqueeze(1),
            sin=sin.unsqueeze(1),
            window_mask=_additive(window_seen).unsqueeze(1),
            anchor_mask=anchor_mask,
            slots=(start[:, None] + kept) % WINDOW,
            blocks_in_use=in_use,
            closing_rows=closing_rows,
            closing_source=closing_source,
            closing_slots=closing_slots,
        )


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

    def init_state(self, rows: int) -> WindowState:
        """Empty memory for ``rows`` rows."""
        like = self.qkv.weight
        return WindowState(
            ring=like.new_zeros(rows, self.heads, WINDOW, 3 * self.head_size),
            anchors=like.new_zeros(rows, self.heads, KEPT_BLOCKS * self.anchors, 2 * self.head_size),
        )

    def _split(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        rows, time, _ = x.shape
        q, k, v = self.qkv(x).view(rows, time, 3, self.heads, self.head_size).permute(2, 0, 3, 1, 4)
        return q, k, v

    def _summarise(self, keys: Tensor, values: Tensor) -> Tensor:
        """Anchors of blocks: unrotated ``keys`` and ``values`` [..., heads, WINDOW, head_size] -> [..., heads, anchors, 2 h]."""
        weights = torch.softmax(self.aq @ keys.transpose(-1, -2) / math.sqrt(self.head_size), dim=-1)
        return torch.cat((weights @ keys, weights @ values), dim=-1)

    def step(self, x: Tensor, state: WindowState, clock: Clock) -> Tensor:
        """``x``: [rows, time, channels] -> the same shape; ``state`` takes the new frames in."""
        rows, time, _ = x.shape
        h = self.head_size
        q, k, v = self._split(x)
        turned = rotate(k, clock.cos, clock.sin)
        seen = torch.cat((state.ring, torch.cat((k, turned, v), dim=-1)), dim=2)  # [rows, heads, WINDOW + time, 3 h]
        scale = 1 / math.sqrt(h)
        scores = rotate(q, clock.cos, clock.sin) @ seen[..., h : 2 * h].transpose(-1, -2) * scale + clock.window_mask
        values = seen[..., 2 * h :]

        anchors = state.anchors[:, :, : clock.blocks_in_use * self.anchors]
        if clock.closing_rows is not None:
            assert clock.closing_source is not None and clock.closing_slots is not None
            where = clock.closing_source[:, None, :, None].expand(-1, self.heads, -1, 3 * h)
            block = seen[clock.closing_rows].gather(2, where)
            made = self._summarise(block[..., :h], block[..., 2 * h :])  # [closing, heads, anchors, 2 h]
            new = state.anchors.new_zeros(rows, self.heads, self.anchors, 2 * h)
            new[clock.closing_rows] = made
            anchors = torch.cat((anchors, new), dim=2)
        if clock.anchor_mask is not None:
            far = q @ anchors[..., :h].transpose(-1, -2) * scale + clock.anchor_mask
            scores = torch.cat((far, scores), dim=-1)
            values = torch.cat((anchors[..., h:], values), dim=2)
        mixed = torch.softmax(scores, dim=-1) @ values  # [rows, heads, time, h]

        kept = clock.slots.shape[1]
        index = clock.slots[:, None, :, None].expand(-1, self.heads, -1, 3 * h)
        state.ring.scatter_(2, index, seen[:, :, WINDOW + time - kept :])
        if clock.closing_rows is not None:
            view = state.anchors.view(rows, self.heads, KEPT_BLOCKS, self.anchors, 2 * h)
            view[clock.closing_rows, :, clock.closing_slots] = made
        y: Tensor = self.o(mixed.transpose(1, 2).reshape(rows, time, -1))
        return y

    def forward(self, x: Tensor) -> Tensor:
        """The whole sequence at once: [rows, time, channels] -> the same shape. Quadratic: for training and as a reference."""
        rows, time, _ = x.shape
        q, k, v = self._split(x)
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
            made = made.transpose(1, 2).flatten(2, 3)  # [rows, heads, blocks * anchors, 2 h]
            newest = (frame // WINDOW)[:, None]
            block = torch.arange(blocks, device=x.device).repeat_interleave(self.anchors)
            seen = (block < newest) & (block >= newest - KEPT_BLOCKS)
            far = q @ made[..., : self.head_size].transpose(-1, -2) * scale + _additive(seen)
            weights = torch.softmax(torch.cat((far, near), dim=-1), dim=-1)
            mixed = weights @ torch.cat((made[..., self.head_size :], v), dim=2)
        y: Tensor = self.o(mixed.transpose(1, 2).reshape(rows, time, -1))
        return y
