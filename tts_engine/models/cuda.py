"""The model of a voice on a GPU: torch, with the vocoder's body in float16 and CUDA graphs for shapes that come again.

A network as small as this one takes longer to launch, kernel by kernel, than to compute. So a call whose shapes were seen
before is captured once into a CUDA graph, and replayed from buffers that stay where they are. Rows and kept anchors are padded
to a few sizes, so that few graphs serve all batches; frames are not padded, since convolutions would remember them.
"""

from __future__ import annotations

import copy
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tts_engine.errors import InputError
from tts_engine.expansion import Floats
from tts_engine.models.eager import EagerModel, padded_ids
from tts_engine.models.packet import PacketNetwork
from tts_engine.models.rows import PacketInputs, StreamingModel
from tts_engine.models.vocoder import Vocoder
from tts_engine.nn.window import KEPT_BLOCKS
from tts_engine.weights import VoiceManifest

GRAPHS = 64
"""Shapes that stay captured, the latest used."""
ROW_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
KEPT_SIZES = (1, 4, KEPT_BLOCKS)
ROW_AXES = {"ring": 1, "anchors": 1, "decoder_history": 1, "body_history": 1, "fresh": 1, "made": 1}
"""Where the rows are in inputs and outputs of the packet's network; in the others they come first."""
WARM_UPS = 3
"""Calls before a capture, in which the libraries choose their kernels and take their memory."""

Arrays = Mapping[str, NDArray[Any]]
Function = Callable[..., tuple[Tensor, ...]]


class StaticCall:
    """``function`` for inputs of fixed shapes, which lie in buffers of their own: on a GPU a graph, elsewhere a plain call."""

    def __init__(self, function: Function, inputs: Arrays, device: torch.device, pool: Any) -> None:
        self._function = function
        self._buffers = {name: torch.from_numpy(array).to(device, copy=True) for name, array in inputs.items()}
        self._outputs: tuple[Tensor, ...] = ()
        self._graph: torch.cuda.CUDAGraph | None = None
        if device.type == "cuda":
            self._capture(pool)

    def __call__(self, inputs: Arrays) -> tuple[Tensor, ...]:
        """The outputs, on the device; the next call may overwrite them."""
        for name, array in inputs.items():
            self._buffers[name].copy_(torch.from_numpy(array))
        if self._graph is not None:
            self._graph.replay()
        else:
            self._outputs = self._function(**self._buffers)
        return self._outputs

    def _capture(self, pool: Any) -> None:
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(WARM_UPS):
                self._function(**self._buffers)
        torch.cuda.current_stream().wait_stream(aside)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, pool=pool, capture_error_mode="thread_local"):
            self._outputs = self._function(**self._buffers)


class Replayed:
    """A function of tensors, called with arrays: at shapes that come again through a :class:`StaticCall`.

    At most ``most`` of them are kept. Calls come one at a time.
    """

    def __init__(self, function: Function, device: torch.device, pool: Any = None, most: int = GRAPHS) -> None:
        self.calls: OrderedDict[tuple[tuple[int, ...], ...], StaticCall | None] = OrderedDict()  # None: seen once
        self._function = function
        self._device = device
        self._pool = pool
        self._most = most

    @torch.inference_mode()
    def __call__(self, inputs: Arrays) -> list[NDArray[Any]]:
        key = tuple(array.shape for array in inputs.values())
        known = key in self.calls
        call = self.calls.get(key)
        if known and call is None:
            call = self.calls[key] = StaticCall(self._function, inputs, self._device, self._pool)
        if call is not None:
            outputs = call(inputs)
        else:
            self.calls[key] = None
            outputs = self._function(**{name: torch.from_numpy(array).to(self._device) for name, array in inputs.items()})
        self.calls.move_to_end(key)
        while len(self.calls) > self._most:
            self.calls.popitem(last=False)
        return [output.cpu().numpy() for output in outputs]


class HalfVocoder(nn.Module):
    """A vocoder whose body computes in float16; float32 in and out."""

    def __init__(self, vocoder: Vocoder) -> None:
        super().__init__()
        self.vocoder = vocoder.half()

    def body_step(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        """As :meth:`Vocoder.body_step`."""
        return tuple(output.float() for output in self.vocoder.body_step(*[tensor.half() for tensor in inputs]))


class CudaModel(StreamingModel):
    """Both models of a voice on ``device``. ``half``: the vocoder's body in float16. Several threads may call it."""

    def __init__(self, model: EagerModel, device: str | torch.device = "cuda", *, half: bool = True) -> None:
        device = torch.device(device)
        pool = torch.cuda.graph_pool_handle() if device.type == "cuda" else None
        acoustic = copy.deepcopy(model.acoustic).to(device)
        vocoder: Any = copy.deepcopy(model.vocoder).to(device)
        network = PacketNetwork(acoustic, HalfVocoder(vocoder) if half else vocoder)  # type: ignore[arg-type]
        self.form = "cuda float16" if half else "cuda float32"
        self.row_shape = model.row_shape
        self.noise_shape = model.noise_shape
        self._lock = threading.Lock()
        self._encode = Replayed(acoustic.encode, device, pool)
        self._prosody = Replayed(lambda expanded: (acoustic.prosody(expanded),), device, pool)
        self._packet = Replayed(network, device, pool)

    @staticmethod
    def load(voice: VoiceManifest, *, half: bool = True) -> CudaModel:
        """From the weights of the voice. Raises InputError where there is no GPU that torch can use, and WeightsError."""
        if not torch.cuda.is_available():
            built = "" if torch.version.cuda else f"; the torch that is installed ({torch.__version__}) was built without CUDA"
            raise InputError(f"torch finds no CUDA device{built}: use compile='auto', or see https://pytorch.org")
        return CudaModel(EagerModel.load(voice), half=half)

    def encode(self, ids: Sequence[int], speaker: int) -> tuple[Floats, Floats]:
        padded, keep = padded_ids(ids)
        with self._lock:
            encoded, log_durations = self._encode({"ids": padded, "speaker": np.array([speaker]), "keep": keep})
        return encoded[0, : len(ids)], log_durations[0, : len(ids)]

    def prosody(self, expanded: Floats) -> Floats:
        with self._lock:
            raw: Floats = self._prosody({"expanded": expanded[None]})[0][0]
        return raw

    def _network(self, inputs: PacketInputs) -> Mapping[str, Floats]:
        rows = len(inputs["x"])
        with self._lock:
            outputs = self._packet(padded(inputs, self.row_shape.anchors))
        names = ("filters", "fresh", "made", "decoder_history", "input_history", "body_history")
        return {
            name: output[:, :rows] if ROW_AXES.get(name) else output[:rows] for name, output in zip(names, outputs, strict=True)
        }


def padded(inputs: PacketInputs, anchors: int) -> PacketInputs:
    """The inputs of a packet's network for the next larger size of rows and of kept anchors; ``anchors`` of each block.

    What is added is masked out, or belongs to rows that nobody asks for.
    """
    rows, kept = len(inputs["x"]), inputs["anchors"].shape[3] // anchors
    more = _next_size(kept, KEPT_SIZES) - kept
    old = kept * anchors
    hidden = np.full((*inputs["mask"].shape[:3], more * anchors), -np.inf, np.float32)
    mask = np.concatenate((inputs["mask"][..., :old], hidden, inputs["mask"][..., old:]), axis=3)
    made = inputs | {"mask": mask, "anchors": _grown(inputs["anchors"], 3, more * anchors)}
    extra = _next_size(rows, ROW_SIZES) - rows
    return {name: _grown(array, ROW_AXES.get(name, 0), extra) for name, array in made.items()}


def _grown(array: NDArray[Any], axis: int, more: int) -> NDArray[Any]:
    """The array with ``more`` zeros at the end of an axis."""
    return np.pad(array, [(0, more if i == axis else 0) for i in range(array.ndim)])


def _next_size(count: int, sizes: Sequence[int]) -> int:
    return next((size for size in sizes if size >= count), count)
