"""Builds one ONNX graph node by node; weights go in as references by name (see ``tts_engine.models.graphs``), without data.

Written by hand instead of exported, since most of a small packet's time is the number of nodes: this has a third of them.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tts_engine.models.graphs import INPUT_FORMS, KEPT_FLOAT, LEAST_QUANTIZED, constant, input_range

OPSET = 20
MICROSOFT = "com.microsoft"
Precision = Literal["float32", "int8", "calibrate"]
TO_END = np.iinfo(np.int64).max


class GraphBuilder:
    """Collects nodes. Values are names; each method adds what computes a value and gives its name.

    ``dynamic``: int8 products take the range of their input as they find it, not a fixed one.
    """

    def __init__(self, weights: Mapping[str, NDArray[Any]], precision: Precision, *, dynamic: bool = False) -> None:
        self.weights = weights
        self.precision = precision
        self._dynamic = dynamic
        self._onnx = importlib.import_module("onnx")
        self._helper = importlib.import_module("onnx.helper")
        self._nodes: list[Any] = []
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._initializers: dict[str, Any] = {}
        self._called: dict[str, str] = {}  # the names of values that are outputs
        self._count = 0
        self.part = ""
        """The part of the model whose nodes are added; it begins their names, for profiles."""

    # ---- the graph ------------------------------------------------------------------------------------------------

    def input(self, name: str, shape: Sequence[str | int], kind: str = "FLOAT") -> str:
        """An input; letters in ``shape`` are sizes that vary."""
        self._inputs.append(self._helper.make_tensor_value_info(name, getattr(self._onnx.TensorProto, kind), shape))
        return name

    def output(self, value: str, name: str) -> None:
        """Gives a value that a node computes out under a name."""
        self._called[value] = name
        self._outputs.append(self._helper.make_tensor_value_info(name, self._onnx.TensorProto.FLOAT, None))

    def node(self, operation: str, *inputs: str, domain: str = "", **attributes: object) -> str:
        """A node with one output."""
        return self.nodes(operation, 1, *inputs, domain=domain, **attributes)[0]

    def nodes(self, operation: str, outputs: int, *inputs: str, domain: str = "", **attributes: object) -> list[str]:
        """A node with several outputs."""
        names = [self._name(operation) for _ in range(outputs)]
        self._nodes.append(
            self._helper.make_node(operation, list(inputs), names, self._node_name(names[0]), domain=domain, **attributes)
        )
        return names

    def constant(self, value: NDArray[Any] | Sequence[int]) -> str:
        """A constant of the graph's own, such as a shape."""
        array = np.asarray(value)
        name = f"{array.dtype} {array.shape} {array.tolist()}"
        self._initializers.setdefault(name, importlib.import_module("onnx.numpy_helper").from_array(array, name))
        return name

    def weight(self, base: str, form: str = "") -> str:
        """A reference to a weight of the voice."""
        name = f"{base}:{form}" if form else base
        if name not in self._initializers:
            self._initializers[name] = self._reference(name)
        return name

    def branch(self, condition: str, then: Callable[[], list[str]], otherwise: list[str]) -> list[str]:
        """What ``then`` adds and gives where ``condition`` holds, else ``otherwise``; computes only one of the two."""
        before, self._nodes = self._nodes, []
        made = self._branch(then())
        self._nodes = []
        kept = self._branch(otherwise)
        self._nodes = before
        names = [self._name("If") for _ in otherwise]
        self._nodes.append(
            self._helper.make_node("If", [condition], names, self._node_name(names[0]), then_branch=made, else_branch=kept)
        )
        return names

    def _branch(self, values: list[str]) -> Any:
        outputs = [self.node("Identity", value) for value in values]
        told = [self._helper.make_tensor_value_info(name, self._onnx.TensorProto.FLOAT, None) for name in outputs]
        return self._helper.make_graph(self._nodes, "branch", [], told)

    @property
    def node_count(self) -> int:
        return len(self._nodes)

    def model(self) -> Any:
        """The finished model."""
        for node in self._nodes:
            for values in (node.input, node.output):
                values[:] = [self._called.get(value, value) for value in values]
        graph = self._helper.make_graph(
            self._nodes,
            "sayline",
            self._inputs,
            self._outputs,
            [self._initializers[name] for name in sorted(self._initializers)],
        )
        opsets = [self._helper.make_opsetid("", OPSET), self._helper.make_opsetid(MICROSOFT, 1)]
        return self._helper.make_model(graph, opset_imports=opsets, ir_version=10)

    @property
    def references(self) -> list[str]:
        """The weights that the graph refers to."""
        return sorted(name for name, tensor in self._initializers.items() if tensor.external_data)

    # ---- layers ---------------------------------------------------------------------------------------------------

    def linear(self, x: str, name: str, form: str = "transposed") -> str:
        """``name``'s product with ``x`` [..., inputs], and its bias."""
        weight, bias = f"{name}.weight", self.weight(f"{name}.bias")
        if self.weights[weight].size < LEAST_QUANTIZED or weight in KEPT_FLOAT or self.precision == "float32":
            return self.node("Add", self.node("MatMul", x, self.weight(weight, form)), bias)
        if self.precision == "calibrate":
            if not self._dynamic:
                for operation, side in (("ReduceMin", "low"), ("ReduceMax", "high")):
                    self.output(self.node(operation, x, keepdims=0), f"{weight}:{side}")
            return self.node("Add", self.node("MatMul", x, self.weight(weight, form)), bias)
        numbers, scale = self.weight(weight, "int8"), self.weight(weight, "scale")
        if self._dynamic:
            return self.node("DynamicQuantizeMatMul", x, numbers, scale, "", bias, domain=MICROSOFT)
        step, zero = self.weight(weight, "input_scale"), self.weight(weight, "input_zero")
        bytes_ = self.node("QuantizeLinear", x, step, zero)
        return self.node("MatMulIntegerToFloat", bytes_, numbers, step, scale, zero, "", bias, domain=MICROSOFT)

    def norm(self, x: str, name: str) -> str:
        return self.node(
            "LayerNormalization", x, self.weight(f"{name}.weight"), self.weight(f"{name}.bias"), axis=-1, epsilon=1e-5
        )

    def gelu(self, x: str) -> str:
        return self.node("Gelu", x, approximate="tanh")

    def depthwise(self, x: str, name: str, *, centred: bool = False) -> str:
        """``x`` [rows, 1, time, channels] through one filter a channel, without margins or with zeros to both sides.

        As a convolution of two dimensions and height 1, which is the fastest form on a CPU.
        """
        channels, _, width = self.weights[f"{name}.weight"].shape
        side = width // 2 if centred else 0
        kernel = self.weight(f"{name}.weight", f"{channels}x1x1x{width}")
        y = self.node("Transpose", x, perm=[0, 3, 1, 2])
        y = self.node(
            "Conv", y, kernel, self.weight(f"{name}.bias"), group=channels, kernel_shape=[1, width], pads=[0, side, 0, side]
        )
        return self.node("Transpose", y, perm=[0, 2, 3, 1])

    def slice(self, x: str, start: str | int, stop: str | int = TO_END, *, axis: int) -> str:
        edges = [edge if isinstance(edge, str) else self.constant([edge]) for edge in (start, stop)]
        return self.node("Slice", x, *edges, self.constant([axis]))

    def softmax_product(self, scores: str, values: str) -> str:
        return self.node("MatMul", self.node("Softmax", scores, axis=-1), values)

    def scores(self, queries: str, keys: str, head_size: int) -> str:
        """Scaled products of [..., queries, h] and [..., keys, h]."""
        return self.node("FusedMatMul", queries, keys, domain=MICROSOFT, transB=1, alpha=1 / float(np.sqrt(head_size)))

    def heads(self, x: str, count: int, head_size: int) -> str:
        """[rows, 1, time, count * h] -> [rows, count, time, h]."""
        return self.node("Transpose", self.node("Reshape", x, self.constant([0, -1, count, head_size])), perm=[0, 2, 1, 3])

    def joined_heads(self, x: str, count: int, head_size: int) -> str:
        """[rows, count, time, h] -> [rows, 1, time, count * h]."""
        joined = self.node("Transpose", x, perm=[0, 2, 1, 3])
        return self.node("Reshape", joined, self.constant([0, 1, -1, count * head_size]))

    def rotated(self, x: str, positions: str, cos: str, sin: str) -> str:
        """[rows, heads, time, h] turned by the angles of ``positions`` [rows, time] in the tables ``cos`` and ``sin``."""
        return self.node("RotaryEmbedding", x, positions, cos, sin, domain=MICROSOFT)

    # ---- inside ---------------------------------------------------------------------------------------------------

    def _node_name(self, output: str) -> str:
        return f"{self.part}/{output}" if self.part else output

    def _name(self, operation: str) -> str:
        self._count += 1
        return f"{operation}_{self._count}"

    def _reference(self, name: str) -> Any:
        """An initializer without data: the runtime hands it in under this name."""
        base, _, form = name.partition(":")
        empty = np.zeros(self.weights[base].shape, np.float32)
        array = input_range(0, 1)[form] if form in INPUT_FORMS else constant(name, empty)
        kind = self._helper.np_dtype_to_tensor_dtype(array.dtype)
        proto = self._onnx.TensorProto
        tensor = proto(name=name, data_type=kind, dims=array.shape, data_location=proto.EXTERNAL)
        for key, value in (("location", "handed-in"), ("offset", "0"), ("length", str(array.nbytes))):
            entry = tensor.external_data.add()
            entry.key, entry.value = key, value
        return tensor
