"""Writes the graphs of the compiled path: the models' computation as ONNX, without a single weight in it.

    pip install onnx onnxscript onnxruntime
    python -m tts_engine.training.export_graphs

The graphs depend on the shapes of a voice, not on its values; ``tts_engine.models.compiled`` fills the weights in when it
loads them. Each as ``float32``, and the packet's network, where most of the time goes, also as ``int8``, where products
with weights are computed on bytes, the inputs quantised with ranges that are fixed (so that a frame's result does not
depend on the frames beside it), and ``calibrate``, which is float32 and also gives the ranges of those inputs.
Exported with random weights, so that each constant can be told by its value. Beside each graph a JSON list names the
weights that it refers to.
"""

from __future__ import annotations

import argparse
import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tts_engine.models.eager import EagerModel
from tts_engine.models.graphs import GRAPHS, KEPT_FLOAT, LEAST_QUANTIZED
from tts_engine.nn.window import ENCODER_REACH
from tts_engine.weights import EMBEDDED_VOICE, VoiceManifest

OPSET = 20
LARGEST_CONSTANT = 16_384
"""Numbers in a constant that is the graph's own, such as a mask."""
DYNAMIC = torch.export.Dim.DYNAMIC


class Encode(nn.Module):
    """Padded ids [1, phonemes], speaker [1] and what to keep [1, phonemes] to encoded phonemes and log durations."""

    def __init__(self, model: EagerModel) -> None:
        super().__init__()
        self.acoustic = model.acoustic

    def forward(self, ids: Tensor, speaker: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
        encoded, log_durations = self.acoustic.encode(ids, speaker, keep)
        return encoded, log_durations


class Prosody(nn.Module):
    """Expanded frames [1, frames, channels + 4] to raw prosody."""

    def __init__(self, model: EagerModel) -> None:
        super().__init__()
        self.acoustic = model.acoustic

    def forward(self, expanded: Tensor) -> Tensor:
        return self.acoustic.prosody(expanded)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--voice", type=Path, default=EMBEDDED_VOICE)
    model = EagerModel.load(VoiceManifest.load(parser.parse_args().voice))
    generator = torch.Generator().manual_seed(0)
    for tensor in (*model.acoustic.parameters(), *model.vocoder.parameters()):
        tensor.copy_(torch.randn(tensor.shape, generator=generator) * 0.05)
    for name, (module, arguments, outputs, axes) in _exports(model).items():
        graph = _export(module, arguments, outputs, axes)
        weights = _all_weights(module)
        for precision in ("float32", "int8", "calibrate") if name == "packet" else ("float32",):
            path = GRAPHS / f"{name}.{precision}.onnx"
            path.parent.mkdir(exist_ok=True)
            made = _without_weights(graph, weights, precision)
            path.write_bytes(made.SerializeToString())
            external = [tensor.name for tensor in made.graph.initializer if tensor.external_data]
            path.with_suffix(".json").write_text(json.dumps(external, indent=0) + "\n", encoding="utf-8")
            print(f"{path.name}: {len(made.graph.node)} nodes, {path.stat().st_size} bytes")


def _exports(model: EagerModel) -> dict[str, tuple[nn.Module, dict[str, Tensor], list[str], dict[str, dict[int, Any]]]]:
    """Of each graph: module, example inputs, names of outputs, and which axes of the inputs vary."""
    blocks = ENCODER_REACH * torch.export.Dim("blocks", min=1, max=4096)
    rows = [model.start() for _ in range(2)]
    for row in rows:
        row.frame = 200
    time, channels = 20, model.acoustic.shape.channels
    x = torch.randn(2, time, channels + 10).numpy()
    inputs = model._inputs(rows, x, np.full((2, 2 * time), 120, np.float32), [2000, 2000])
    packet_axes: dict[str, dict[int, Any]] = {
        name: dict.fromkeys(axes, DYNAMIC)
        for name, axes in {
            "x": (0, 1),
            "f0": (0, 1),
            "keep": (0, 1),
            "cos": (0, 1),
            "sin": (0, 1),
            "mask": (0, 2, 3),
            "closing_source": (0,),
            "ring": (1,),
            "anchors": (1, 2),
            "decoder_history": (1,),
            "input_history": (0,),
            "body_history": (1,),
        }.items()
    }
    return {
        "encode": (
            Encode(model),
            {
                "ids": torch.zeros(1, 3 * ENCODER_REACH, dtype=torch.int64),
                "speaker": torch.zeros(1, dtype=torch.int64),
                "keep": torch.ones(1, 3 * ENCODER_REACH),
            },
            ["encoded", "log_durations"],
            {"ids": {1: blocks}, "speaker": {}, "keep": {1: blocks}},
        ),
        "prosody": (Prosody(model), {"expanded": torch.randn(1, 40, channels + 4)}, ["raw"], {"expanded": {1: DYNAMIC}}),
        "packet": (
            model._packet,
            {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in inputs.items()},
            ["filters", "fresh", "made", "new_decoder_history", "new_input_history", "new_body_history"],
            packet_axes,
        ),
    }


def _export(module: nn.Module, arguments: dict[str, Tensor], outputs: list[str], axes: dict[str, Any]) -> Any:
    with torch.no_grad():
        program = torch.onnx.export(
            module,
            tuple(arguments.values()),
            dynamo=True,
            input_names=list(arguments),
            output_names=outputs,
            dynamic_shapes=tuple(axes[name] for name in arguments),
            opset_version=OPSET,
            verbose=False,
        )
    assert program is not None
    return program.model_proto


def _all_weights(module: nn.Module) -> dict[str, np.ndarray[Any, Any]]:
    return {name: tensor.detach().numpy() for name, tensor in module.named_parameters()}


def _without_weights(model: Any, weights: dict[str, np.ndarray[Any, Any]], precision: str) -> Any:
    """A copy of the model whose weights are references by name (see ``tts_engine.models.graphs``)."""
    onnx = importlib.import_module("onnx")
    numpy_helper = importlib.import_module("onnx.numpy_helper")
    made = onnx.ModelProto()
    made.CopyFrom(model)
    del made.metadata_props[:]
    made.doc_string = ""
    graph = made.graph
    names: dict[str, str] = {}
    initializers = list(graph.initializer)
    del graph.initializer[:]
    for initializer in initializers:
        array = numpy_helper.to_array(initializer)
        found = _name_of(array, weights) if array.dtype == np.float32 else None
        if found is not None:
            names[initializer.name] = found
            continue
        if array.size > LARGEST_CONSTANT:
            raise ValueError(f"{initializer.name}, {array.shape}, is neither a weight of the model nor small")
        kept = graph.initializer.add()
        kept.CopyFrom(initializer)
        kept.doc_string = ""
    for node in graph.node:
        del node.metadata_props[:]
        node.doc_string = ""
        for i, name in enumerate(node.input):
            if name in names:
                node.input[i] = names[name]
    for value in (*graph.input, *graph.output):
        del value.metadata_props[:]
    del graph.value_info[:]
    if precision == "int8":
        _quantize(graph, weights)
        made.opset_import.append(importlib.import_module("onnx.helper").make_opsetid("com.microsoft", 1))
    elif precision == "calibrate":
        _watch(graph, weights)
    used = {name for node in graph.node for name in node.input}
    for name in sorted(used):
        base, _, form = name.partition(":")
        if base in weights and not any(name == known.name for known in graph.initializer):
            graph.initializer.append(_reference(name, weights[base], form))
    return made


def _name_of(array: np.ndarray[Any, Any], weights: dict[str, np.ndarray[Any, Any]]) -> str | None:
    for name, weight in weights.items():
        if weight.size != array.size:
            continue
        if np.array_equal(weight.reshape(-1), array.reshape(-1)):
            return f"{name}:{'x'.join(map(str, array.shape))}" if weight.shape != array.shape else name
        if weight.ndim >= 2 and np.array_equal(weight.reshape(len(weight), -1).T.reshape(-1), array.reshape(-1)):
            return f"{name}:transposed"
    return None


def _quantized_name(node: Any, weights: dict[str, np.ndarray[Any, Any]]) -> str | None:
    """The weight of a product that is quantised, None for every other node."""
    if node.op_type not in ("MatMul", "Gemm"):
        return None
    name, _, form = str(node.input[1]).partition(":")
    if form != "transposed" or weights[name].size < LEAST_QUANTIZED or name in KEPT_FLOAT:
        return None
    return name


def _quantize(graph: Any, weights: dict[str, np.ndarray[Any, Any]]) -> None:
    """Products with a large weight become QuantizeLinear and MatMulIntegerToFloat, with the bias that is added to them."""
    helper = importlib.import_module("onnx.helper")
    consumers: dict[str, list[Any]] = {}
    for node in graph.node:
        for name in node.input:
            consumers.setdefault(name, []).append(node)
    nodes: list[Any] = []
    dropped: set[str] = set()  # outputs of the additions that went into a product
    for node in graph.node:
        base = _quantized_name(node, weights)
        if base is None:
            nodes.append(node)
            continue
        output, bias = node.output[0], node.input[2] if len(node.input) > 2 else ""
        following = consumers.get(output, [])
        if not bias and len(following) == 1 and following[0].op_type == "Add":
            others = [name for name in following[0].input if name != output]
            if others and others[0] in weights:
                bias, output = others[0], following[0].output[0]
                dropped.add(output)
        scale, zero, quantized = f"{base}:input_scale", f"{base}:input_zero", f"bytes of {base}"
        nodes.append(helper.make_node("QuantizeLinear", [node.input[0], scale, zero], [quantized]))
        inputs = [quantized, f"{base}:int8", scale, f"{base}:scale", zero, "", bias]
        while not inputs[-1]:
            inputs.pop()
        nodes.append(helper.make_node("MatMulIntegerToFloat", inputs, [output], domain="com.microsoft"))
    kept = [node for node in nodes if not (node.op_type == "Add" and node.output[0] in dropped)]
    copies = [type(node).FromString(node.SerializeToString()) for node in kept]
    del graph.node[:]
    graph.node.extend(copies)


def _watch(graph: Any, weights: dict[str, np.ndarray[Any, Any]]) -> None:
    """Adds the least and the greatest input of each product that is quantised to the outputs."""
    helper = importlib.import_module("onnx.helper")
    kind = importlib.import_module("onnx").TensorProto.FLOAT
    for node in list(graph.node):
        base = _quantized_name(node, weights)
        if base is None:
            continue
        for operation, name in (("ReduceMin", f"{base}:low"), ("ReduceMax", f"{base}:high")):
            graph.node.append(helper.make_node(operation, [node.input[0]], [name], keepdims=0))
            graph.output.append(helper.make_tensor_value_info(name, kind, []))


def _reference(name: str, weight: np.ndarray[Any, Any], form: str) -> Any:
    """An initializer without data: the runtime hands it in under this name."""
    onnx = importlib.import_module("onnx")
    flat = (int(np.prod(weight.shape[1:])), weight.shape[0])
    kinds = {"int8": (onnx.TensorProto.INT8, 1), "input_zero": (onnx.TensorProto.UINT8, 1)}
    shapes = {"": weight.shape, "transposed": flat, "int8": flat, "scale": flat[1:], "input_scale": (), "input_zero": ()}
    shape = shapes[form] if form in shapes else tuple(int(size) for size in form.split("x"))
    kind, width = kinds.get(form, (onnx.TensorProto.FLOAT, 4))
    tensor = onnx.TensorProto(name=name, data_type=kind, dims=shape, data_location=onnx.TensorProto.EXTERNAL)
    length = width * int(np.prod(shape))
    for key, value in (("location", "handed-in"), ("offset", "0"), ("length", str(length))):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value
    return tensor


if __name__ == "__main__":
    main()
