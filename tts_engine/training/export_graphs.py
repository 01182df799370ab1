"""Writes the graphs of the compiled path: the models' computation as ONNX, without a single weight in it.

    pip install onnx
    python -m tts_engine.training.export_graphs

The graphs depend on the shapes of a voice, not on its values; ``tts_engine.models.compiled`` fills the weights in when it
loads them. Each as ``float32`` and as ``int8``, where products with weights are computed on bytes. In the packet the ranges
of their inputs are fixed, so that a frame's result does not depend on the frames and rows beside it; ``packet.calibrate``,
which is float32, also gives those ranges. Text encoder and prosody read a whole sentence and blocks that are the same for any
packets, so they take them as they find them. Beside each graph a JSON list names the weights that it refers to.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import NDArray

from tts_engine.models.compiled import PRECISIONS, encoder_stages, graph_path, named_weights, shape_of
from tts_engine.models.graphs import GRAPHS
from tts_engine.models.rows import RowShape
from tts_engine.models.signal import LOOK_AHEAD_MELS
from tts_engine.nn.window import ENCODER_HEADS, WINDOW
from tts_engine.training.graph_builder import TO_END, GraphBuilder, Precision
from tts_engine.weights import VoiceManifest

Weights = Mapping[str, NDArray[Any]]


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    weights = named_weights(VoiceManifest.load())
    builders: dict[str, Callable[[Weights, Precision], GraphBuilder]] = {
        "encode": build_encoder,
        "prosody": build_prosody,
        "packet": build_packet,
    }
    GRAPHS.mkdir(exist_ok=True)
    for name, build in builders.items():
        for precision in PRECISIONS[name]:
            graph = build(weights, precision)
            path = graph_path(name, precision)
            path.write_bytes(graph.model().SerializeToString(deterministic=True))
            path.with_suffix(".json").write_text(json.dumps(graph.references, indent=0) + "\n", encoding="utf-8")
            print(f"{path.name}: {graph.node_count} nodes, {path.stat().st_size} bytes")


def build_encoder(weights: Weights, precision: Precision) -> GraphBuilder:
    """A piece of one sentence, as ``tts_engine.models.encoding`` feeds it: ids [1, phonemes] to encoded phonemes [1, 1,
    phonemes, channels] and log durations, and for each stage the part of its input that the next piece needs again."""
    g = GraphBuilder(weights, precision, dynamic=True)
    stages = encoder_stages(weights)
    ids, speaker = g.input("ids", [1, "n"], "INT64"), g.input("speaker", [1], "INT64")
    cos, sin = (g.input(name, ["places", "h"]) for name in ("cos", "sin"))
    count = sum(5 if stage.attends else 3 for stage in stages)
    cuts = iter(g.nodes("Split", count, g.input("cuts", [count], "INT64"), axis=0, num_outputs=count))
    channels = weights["acoustic.emb.weight"].shape[1]
    size = channels // ENCODER_HEADS
    x = g.node("Add", *(g.node("Gather", g.weight(f"acoustic.{n}.weight"), i) for n, i in (("emb", ids), ("spk", speaker))))
    x = g.node("Unsqueeze", x, g.constant([1]))
    left = []
    names = [*_layers(weights, "acoustic.enc."), *_layers(weights, "acoustic.dur.")]
    for i, (stage, name) in enumerate(zip(stages, names, strict=True)):
        x = g.node("Concat", g.input(f"held.{i}", [1, 1, f"h{i}", channels]), x, axis=2)
        given = x
        if stage.attends:
            start, stop = next(cuts), next(cuts)
            positions, near = g.input(f"positions.{i}", [1, f"p{i}"], "INT64"), g.input(f"near.{i}", [1, 1, f"q{i}", f"p{i}"])
            heads = g.heads(g.linear(g.norm(x, f"{name}.n1"), f"{name}.qkv"), 3 * ENCODER_HEADS, size)
            turning, v = g.nodes("Split", 2, heads, g.constant([2 * ENCODER_HEADS, ENCODER_HEADS]), axis=1)
            q, k = g.nodes("Split", 2, g.rotated(turning, positions, cos, sin), axis=1, num_outputs=2)
            scores = g.node("Add", g.scores(g.slice(q, start, stop, axis=2), k, size), near)
            mixed = g.joined_heads(g.softmax_product(scores, v), ENCODER_HEADS, size)
            x = g.node("Add", g.slice(x, start, stop, axis=2), g.linear(mixed, f"{name}.o"))
        start, stop = next(cuts), next(cuts)
        y = g.depthwise(g.norm(x, f"{name}.n2" if stage.attends else f"{name}.n"), f"{name}.dw", centred=True)
        x = _mixed(g, g.slice(x, start, stop, axis=2), g.slice(y, start, stop, axis=2), name)
        left.append(g.slice(given, next(cuts), axis=2))
        if i + 1 < len(stages) and stage.attends and not stages[i + 1].attends:
            x = g.norm(x, "acoustic.en")
            g.output(x, "encoded")
    g.output(g.linear(x, "acoustic.duro"), "log_durations")
    for i, value in enumerate(left):
        g.output(value, f"left.{i}")
    return g


def build_prosody(weights: Weights, precision: Precision) -> GraphBuilder:
    """Expanded frames [1, 1, frames, channels + 4] to raw prosody [1, 1, frames, 6]."""
    g = GraphBuilder(weights, precision, dynamic=True)
    x = g.linear(g.input("expanded", [1, 1, "n", weights["acoustic.fp.weight"].shape[1]]), "acoustic.fp")
    for name in _layers(weights, "acoustic.pit."):
        x = _mixed(g, x, g.depthwise(g.norm(x, f"{name}.n"), f"{name}.dw", centred=True), name)
    g.output(g.linear(x, "acoustic.pito"), "raw")
    return g


def build_packet(weights: Weights, precision: Precision) -> GraphBuilder:
    """One packet of several rows, decoder and vocoder body, as ``tts_engine.models.packet`` has it in torch.

    Inputs are those of ``CompiledModel``: each layer's memory is an input of its own, so that none is copied to take it apart.
    ``closes`` says whether any row completes a block of frames; only then are anchors computed. The vocoder leaves out the
    first ``skip`` mel frames.
    """
    g = GraphBuilder(weights, precision)
    shape = shape_of(weights)
    g.part = "decoder"
    mels = _decoder(g, shape)
    g.part = "vocoder body"
    _vocoder(g, shape, mels)
    return g


def _decoder(g: GraphBuilder, shape: RowShape) -> str:
    """The frame decoder: [rows, 1, 2 time, mels]."""
    heads, size = shape.heads, shape.head_size
    y = g.linear(g.input("x", ["r", 1, "t", g.weights["acoustic.inp.weight"].shape[1]]), "acoustic.inp")
    positions = g.input("positions", ["r", "t"], "INT64")
    cos, sin = (g.input(name, ["places", size // 2]) for name in ("cos", "sin"))
    mask, closing = g.input("mask", ["r", 1, "t", "seen"]), g.input("closing", ["r", 1, 1, "s"])
    closes = g.input("closes", [], "BOOL")
    fresh, made, histories = [], [], []
    for i, name in enumerate(_layers(g.weights, "acoustic.dec.")):
        ring = g.input(f"ring.{i}", ["r", 3 * heads, WINDOW, size])
        anchors = g.input(f"anchors.{i}", ["r", 2 * heads, "a", size])
        history = g.input(f"decoder_history.{i}", ["r", 1, shape.past, shape.channels])
        qkv = g.heads(g.linear(g.norm(y, f"{name}.n1"), f"{name}.at.qkv"), 3 * heads, size)
        q, k, v = g.nodes("Split", 3, qkv, axis=1, num_outputs=3)
        turned = g.rotated(q, positions, cos, sin)
        fresh.append(g.node("Concat", k, g.rotated(k, positions, cos, sin), v, axis=1))
        seen = g.node("Concat", ring, fresh[-1], axis=2)
        plain, keys, values = g.nodes("Split", 3, seen, axis=1, num_outputs=3)

        def summary(name: str = name, plain: str = plain, values: str = values, anchors: str = anchors) -> list[str]:
            scores = g.node("Add", g.scores(g.weight(f"{name}.at.aq"), plain, size), closing)
            weights = g.node("Softmax", scores, axis=-1)
            summaries = g.node("Concat", g.node("MatMul", weights, plain), g.node("MatMul", weights, values), axis=1)
            return [summaries, g.node("Concat", anchors, summaries, axis=2)]

        summaries, known = g.branch(closes, summary, [anchors, anchors])
        made.append(summaries)
        known_keys, known_values = g.nodes("Split", 2, known, axis=1, num_outputs=2)
        scores = g.node("Concat", g.scores(q, known_keys, size), g.scores(turned, keys, size), axis=3)
        mixed = g.softmax_product(g.node("Add", scores, mask), g.node("Concat", known_values, values, axis=2))
        y = g.node("Add", y, g.linear(g.joined_heads(mixed, heads, size), f"{name}.at.o"))
        joined = g.node("Concat", history, g.norm(y, f"{name}.n2"), axis=2)
        histories.append(g.slice(joined, -shape.past, axis=2))
        y = _mixed(g, y, g.depthwise(joined, f"{name}.dw"), name)
    g.output(g.node("Concat", *fresh, axis=0), "fresh")
    g.output(g.node("Concat", *made, axis=0), "made")
    g.output(g.node("Concat", *histories, axis=0), "new_decoder_history")
    mels = g.linear(g.norm(y, "acoustic.dn"), "acoustic.out")
    return g.node("Reshape", mels, g.constant([0, 1, -1, g.weights["acoustic.out.weight"].shape[0] // 2]))


def _vocoder(g: GraphBuilder, shape: RowShape, mels: str) -> None:
    """The vocoder's body: ``mels`` [rows, 1, n, mels], behind what is skipped, to filters."""
    mels = g.slice(mels, g.input("skip", [1], "INT64"), axis=2)
    pitch, keep = g.input("pitch", ["r", 1, "n", 2]), g.input("keep", ["r", 1, "m", 1])
    inside = [g.slice(keep, LOOK_AHEAD_MELS - delay, -delay or TO_END, axis=2) for delay in range(LOOK_AHEAD_MELS + 1)]

    def push(history: str, y: str, delay: int, past: int) -> tuple[str, str, str]:
        y = g.node("Mul", y, inside[delay])
        joined = g.node("Concat", history, y, axis=2)
        return y, joined, g.slice(joined, -past, axis=2)

    history = g.input("input_history", ["r", 1, shape.input_past, shape.inputs])
    _, joined, left = push(history, g.node("Concat", mels, pitch, axis=3), 0, shape.input_past)
    g.output(left, "new_input_history")
    taps = [g.slice(joined, tap, tap - shape.input_past or TO_END, axis=2) for tap in range(shape.input_past + 1)]
    y = g.norm(g.linear(g.node("Concat", *taps, axis=3), "vocoder.inp", "taps"), "vocoder.n0")
    delay, histories = 1, []
    for i, name in enumerate(_layers(g.weights, "vocoder.blocks.")):
        history = g.input(f"body_history.{i}", ["r", 1, shape.body_past, shape.body_channels])
        y, joined, left = push(history, y, delay, shape.body_past)
        histories.append(left)
        if delay < LOOK_AHEAD_MELS:  # the residual waits for the convolution's future frame
            y = g.slice(joined, shape.body_past - 1, -1, axis=2)
            delay += 1
        y = _mixed(g, y, g.norm(g.depthwise(joined, f"{name}.dw"), f"{name}.n"), name)
    g.output(g.node("Concat", *histories, axis=0), "new_body_history")
    g.output(g.linear(g.norm(y, "vocoder.n1"), "vocoder.head"), "filters")


def _mixed(g: GraphBuilder, x: str, y: str, name: str) -> str:
    """x + b(gelu(a(y)))."""
    return g.node("Add", x, g.linear(g.gelu(g.linear(y, f"{name}.a")), f"{name}.b"))


def _layers(weights: Weights, prefix: str) -> list[str]:
    """The names of the layers that begin with ``prefix``, in order."""
    count = len({name.removeprefix(prefix).split(".")[0] for name in weights if name.startswith(prefix)})
    return [f"{prefix}{i}" for i in range(count)]


if __name__ == "__main__":
    main()
