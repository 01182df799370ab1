"""The decoder's attention against what it replaces, from 10 seconds to 10 minutes of speech: time a frame and memory.

    python -m benchmarks.attention [--step-frames 10] [--rounds 40] [--plot FILE]

*window*: 64 frames in a ring, four anchors for each of 32 older blocks. *full*: every frame since the start. *low rank*: q, k
and v of half the model's width. *cat*: the cache grows by a copy of all of it. *buffer*: it is written in place into what was
allocated for 10 minutes. All are six layers of attention alone, with random weights of the embedded voice's sizes; each is
put where it would be after that much speech. One core.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from benchmarks.measure import Row, median, one_core, report
from benchmarks.plots import add_plot_option, lines

one_core()

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from tts_engine.expansion import MELS_PER_FRAME, Floats  # noqa: E402
from tts_engine.models.eager import EagerModel  # noqa: E402
from tts_engine.models.rows import PacketInputs, RowShape, StreamingModel  # noqa: E402
from tts_engine.nn.attention import Sight, WindowAttention, rotary_angles, rotate  # noqa: E402
from tts_engine.planning import FRAME_MS  # noqa: E402
from tts_engine.weights import VoiceManifest  # noqa: E402

LENGTHS_S = (10, 30, 60, 120, 300, 600)
PASSES = 4
MOST_FRAMES = round(LENGTHS_S[-1] * 1000 / FRAME_MS) + 4096  # room for the steps that are measured


class Attention(Protocol):
    """Six layers and their memory."""

    def place(self, frames: int) -> None:
        """Be where ``frames`` frames were decoded."""

    def step(self, x: Tensor) -> None:
        """Decode the next frames: [1, time, channels]."""

    def state_bytes(self) -> int:
        """The memory that stays between two steps."""


class Window(StreamingModel):
    """Ours, run as the engine runs it, without what is around it."""

    def __init__(self, shape: RowShape) -> None:
        self.row_shape = replace(shape, inputs=1, input_past=0, blocks=1, body_channels=1, body_past=0, past=0)
        self._layers = nn.ModuleList(
            WindowAttention(shape.channels, shape.heads, shape.head_size, shape.anchors) for _ in range(shape.layers)
        )
        _randomise(self._layers)
        self._row = self.start()

    def place(self, frames: int) -> None:
        self._row = self.start()
        self._row.frame = frames
        for memory in (self._row.ring, self._row.anchors):
            memory[:] = np.random.default_rng(0).standard_normal(memory.shape, np.float32)

    def step(self, x: Tensor) -> None:
        time = x.shape[1]
        inputs = self._inputs([self._row], x.numpy(), np.zeros((1, MELS_PER_FRAME * time), np.float32), [MOST_FRAMES])
        self._remember(self._row, time, self._network(inputs), 0)
        self._row.frame += time

    def state_bytes(self) -> int:
        return self._row.ring.nbytes + self._row.anchors.nbytes

    def encode(self, ids: Sequence[int], speaker: int) -> tuple[Floats, Floats]:
        raise NotImplementedError("there is only the decoder's attention here")

    @torch.inference_mode()
    def _network(self, inputs: PacketInputs) -> Mapping[str, Floats]:
        given = {name: torch.from_numpy(array) for name, array in inputs.items()}
        sight = Sight(given["cos"], given["sin"], given["mask"], given["closing"])
        y, fresh, made = given["x"], [], []
        for index, layer in enumerate(self._layers):
            mixed, *left = layer.step(y, given["ring"][index], given["anchors"][index], sight)
            y = y + mixed
            fresh.append(left[0])
            made.append(left[1])
        return {"fresh": torch.stack(fresh).numpy(), "made": torch.stack(made).numpy()}


class Full:
    """Causal attention over all frames, with a cache that grows or one that is allocated for the longest speech."""

    def __init__(self, shape: RowShape, *, grow: bool) -> None:
        self._shape = shape
        self._grow = grow
        width = shape.heads * shape.head_size
        self._qkv = nn.ModuleList(nn.Linear(shape.channels, 3 * width) for _ in range(shape.layers))
        self._out = nn.ModuleList(nn.Linear(width, shape.channels) for _ in range(shape.layers))
        _randomise(self._qkv)
        _randomise(self._out)
        self._frames = 0
        self._cache: list[Tensor] = []  # of each layer: [2, heads, frames, h]

    def place(self, frames: int) -> None:
        size = frames if self._grow else MOST_FRAMES
        shape = self._shape
        self._frames = frames
        self._cache = [torch.randn(2, shape.heads, size, shape.head_size) for _ in range(shape.layers)]

    @torch.inference_mode()
    def step(self, x: Tensor) -> None:
        shape, time = self._shape, x.shape[1]
        stop = self._frames + time
        place = torch.arange(self._frames, stop)
        cos, sin = rotary_angles(place, shape.head_size)
        mask = torch.arange(stop) <= place[:, None]
        for index in range(shape.layers):
            q, k, v = self._qkv[index](x).view(time, 3, shape.heads, shape.head_size).permute(1, 2, 0, 3)
            fresh = torch.stack((rotate(k, cos, sin), v))
            if self._grow:
                known = self._cache[index] = torch.cat((self._cache[index], fresh), dim=2)
            else:
                self._cache[index][:, :, self._frames : stop] = fresh
                known = self._cache[index][:, :, :stop]
            mixed = F.scaled_dot_product_attention(rotate(q, cos, sin), known[0], known[1], attn_mask=mask)
            x = x + self._out[index](mixed.transpose(0, 1).reshape(1, time, -1))
        self._frames = stop

    def state_bytes(self) -> int:
        return sum(4 * layer.numel() for layer in self._cache)


@dataclass(slots=True)
class Measured:
    """One kind of attention after so many frames."""

    us: list[float] = field(default_factory=list)  # a frame
    state_mib: float = 0.0

    @property
    def us_a_frame(self) -> float:
        return median(self.us)


def measure(attention: Attention, frames: int, step_frames: int, rounds: int, into: Measured) -> None:
    x = torch.randn(1, step_frames, 256)
    attention.place(frames)
    for turn in range(rounds + 2):
        started_s = time.perf_counter()
        attention.step(x)
        if turn >= 2:
            into.us.append(1e6 * (time.perf_counter() - started_s) / step_frames)
    into.state_mib = attention.state_bytes() / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--step-frames", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=40)
    add_plot_option(parser)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    low = EagerModel.load(VoiceManifest.load()).row_shape
    full = replace(low, head_size=low.channels // low.heads)
    variants: dict[str, Callable[[], Attention]] = {
        "window, low rank, ring": lambda: Window(low),
        "window, full rank, ring": lambda: Window(full),
        "full, low rank, buffer": lambda: Full(low, grow=False),
        "full, low rank, cat": lambda: Full(low, grow=True),
        "full, full rank, buffer": lambda: Full(full, grow=False),
        "full, full rank, cat": lambda: Full(full, grow=True),
    }
    measured = {name: [Measured() for _ in LENGTHS_S] for name in variants}
    for _ in range(PASSES):  # so that what else the machine does meets all of them
        for index, length_s in enumerate(LENGTHS_S):
            for name, make in variants.items():
                frames = round(length_s * 1000 / FRAME_MS)
                measure(make(), frames, options.step_frames, max(1, options.rounds // PASSES), measured[name][index])
    rows: list[Row] = []
    for index, length_s in enumerate(LENGTHS_S):
        for name, values in measured.items():
            rows.append(
                {
                    "speech s": length_s,
                    "attention": name,
                    "µs a frame": round(values[index].us_a_frame, 1),
                    "ratio": round(values[index].us_a_frame / measured["window, low rank, ring"][index].us_a_frame, 2),
                    "against 10 s": round(values[index].us_a_frame / values[0].us_a_frame, 2),
                    "state MiB": round(values[index].state_mib, 2),
                }
            )
    report("attention", rows, threads=1, step_frames=options.step_frames, torch=torch.__version__)
    lines(
        options.plot,
        {
            "µs a frame": {name: [value.us_a_frame for value in values] for name, values in measured.items()},
            "MiB of state": {name: [value.state_mib for value in values] for name, values in measured.items()},
        },
        LENGTHS_S,
        "seconds of speech",
    )


def _randomise(modules: nn.Module) -> None:
    for parameter in modules.parameters():
        nn.init.normal_(parameter, std=1 / math.sqrt(parameter.shape[-1]))
        parameter.requires_grad_(False)


if __name__ == "__main__":
    main()
