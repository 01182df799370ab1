"""The model of a voice in ONNX Runtime: no torch, and int8 products where the voice was compiled for them.

The graphs are part of the package and hold no weights (``tts_engine.training.export_graphs`` makes them). Weights come from
the voice's safetensors; the bytes of int8 products from a *compiled file* beside them, which is mapped into memory and
carries the hashes of the weights and of its content, and the version of its format. ``tts_engine.models.compiling`` writes it.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tts_engine.errors import WeightsError
from tts_engine.expansion import MELS_PER_FRAME, Floats
from tts_engine.models.base import Encoding
from tts_engine.models.encoding import Pieces, Stage, piece_ends
from tts_engine.models.graphs import GRAPHS, constant
from tts_engine.models.metadata import ACOUSTIC_METADATA, VOCODER_METADATA
from tts_engine.models.rows import PacketInputs, Row, RowShape, StreamingModel
from tts_engine.models.signal import NoiseShape
from tts_engine.nn.window import ENCODER_HEADS, ENCODER_REACH, WINDOW
from tts_engine.weights import VoiceManifest, digest, load_arrays

Precision = Literal["float32", "int8", "calibrate"]
PRECISIONS: Mapping[str, tuple[Precision, ...]] = {
    "encode": ("float32", "int8"),
    "prosody": ("float32", "int8"),
    "packet": ("float32", "int8", "calibrate"),
}
"""Of each graph."""
FORMAT = "sayline-compiled-4"
"""Changes with the graphs: a compiled file of another format is refused."""
PACKET_OUTPUTS = ("fresh", "made", "decoder_history", "input_history", "body_history", "filters")
DONE_BY_HAND: list[str] = json.loads((GRAPHS / "done_by_hand.json").read_text(encoding="utf-8"))
"""Optimisers of ONNX Runtime that find nothing to do in these graphs, or make them slower (SkipLayerNormFusion): without them
loading takes two thirds of the time. What it is left to do is the layout of the convolutions, which the processor decides."""
WITHOUT_GRAPH = frozenset({"vocoder.shape"})
"""Weights that only the signal half reads."""


class CompiledModel(StreamingModel):
    """Both models of a voice as three inference sessions. ``threads``: how many a session uses."""

    def __init__(
        self,
        weights: Mapping[str, NDArray[Any]],
        precision: Precision,
        threads: int = 1,
        ready: Mapping[str, NDArray[Any]] | None = None,
    ) -> None:
        self.row_shape = shape_of(weights)
        self.noise_shape = NoiseShape.of(*weights["vocoder.shape"].tolist())
        self.precision = precision
        self._threads = threads
        self.form = f"onnx {precision}"
        self._constants = constants_of(weights, precision, ready or {})  # sessions refer to these arrays
        channels = len(weights["acoustic.en.weight"])
        self._pieces = Pieces(encoder_stages(weights), channels, channels // ENCODER_HEADS)
        self._sessions = {name: _session(name, precision, self._constants, threads) for name in PRECISIONS}

    @staticmethod
    def load(voice: VoiceManifest, precision: Precision = "int8", threads: int = 1) -> CompiledModel:
        """From the weights of the voice and, for int8, its compiled file.

        Raises WeightsError, with the command that makes or rebuilds it, for a compiled file that is missing, was made by
        another version or from other weights; and for weights that are damaged or do not have the shapes of the graphs.
        """
        ready = _compiled_constants(voice) if precision == "int8" else {}
        weights = named_weights(voice, ready)
        voice.check_speakers(len(weights["acoustic.spk.weight"]))
        return CompiledModel(weights, precision, threads, ready)

    def encode(self, ids: Sequence[int], speaker: int) -> tuple[Floats, Floats]:
        encoding = Encoding(ids, speaker)
        while not encoding.done:
            self.encode_more(encoding)
        return encoding.encoded, encoding.log_durations

    def encode_more(self, encoding: Encoding) -> None:
        """A long sentence in pieces, which its length decides."""
        before = len(encoding.log_durations)
        end = next(end for end in piece_ends(len(encoding.ids)) if end > before)
        encoded, log_durations, *held = self._sessions["encode"].run(None, self._pieces.inputs(encoding, before, end))
        encoded, log_durations = encoded[0, 0], log_durations[0, 0, :, 0]
        if before:
            encoded = np.concatenate((encoding.encoded, encoded))
            log_durations = np.concatenate((encoding.log_durations, log_durations))
        encoding.encoded, encoding.log_durations, encoding.held = encoded, log_durations, held

    def prosody(self, expanded: Floats) -> Floats:
        raw: Floats = self._sessions["prosody"].run(None, {"expanded": expanded[None, None]})[0][0, 0]
        return raw

    def _skipped_mels(self, rows: Sequence[Row], time: int) -> int:
        return MELS_PER_FRAME * max(0, min(time - 1, *(row.lead - row.frame for row in rows)))

    def _inputs(self, rows: Sequence[Row], x: Floats, f0: Floats, lengths: Sequence[int]) -> PacketInputs:
        """For the graph: each layer's memory on its own, and nothing of blocks of which there are none."""
        given = super()._inputs(rows, x, f0, lengths)
        time, anchors = x.shape[1], self.row_shape.anchors
        skip = self._skipped_mels(rows, time)
        voiced = f0[:, skip:] > 10
        closes = any(row.frame % WINDOW + time >= WINDOW for row in rows)
        kept = given["anchors"].shape[3]
        first = 0 if any(row.frame >= WINDOW for row in rows) else kept
        mask = given["mask"]
        if not closes:
            mask = np.concatenate((mask[..., first:kept], mask[..., kept + anchors :]), axis=3)
        half = given["cos"].shape[3]
        inputs: PacketInputs = {
            "x": x[:, None],
            "positions": np.arange(len(rows) * time).reshape(len(rows), time),
            "cos": given["cos"].reshape(-1, half),
            "sin": given["sin"].reshape(-1, half),
            "mask": mask[..., first:] if closes else mask,
            "closing": given["closing"],
            "closes": np.array(closes),
            "skip": np.array([skip]),
            "pitch": np.stack((voiced, np.log(np.maximum(f0[:, skip:], np.float32(20))) / 6), axis=2, dtype=np.float32)[
                :, None
            ],
            "keep": given["keep"][:, None, skip:, None],
            "input_history": given["input_history"][:, None],
        }
        memories = {"ring": given["ring"], "anchors": given["anchors"][:, :, :, : kept - first]}
        memories |= {name: given[name][:, :, None] for name in ("decoder_history", "body_history")}
        for name, memory in memories.items():
            inputs |= {f"{name}.{i}": layer for i, layer in enumerate(memory)}
        return inputs

    @contextmanager
    def timed_packets(self) -> Iterator[list[dict[str, float]]]:
        """While it lasts, a session of its own computes packets and times their nodes.

        Gives a list that holds, once it is over, the seconds of each packet's network by part: "decoder", "vocoder body".
        """
        from tts_engine.models.node_times import part_times

        usual, parts = self._sessions["packet"], list[dict[str, float]]()
        with TemporaryDirectory() as folder:
            session = _session("packet", self.precision, self._constants, self._threads, Path(folder))
            self._sessions["packet"] = session
            try:
                yield parts
            finally:
                self._sessions["packet"] = usual
                parts.extend(part_times(Path(session.end_profiling())))

    def _network(self, inputs: PacketInputs) -> Mapping[str, Floats]:
        return self._named(self._sessions["packet"].run(None, inputs), len(inputs["x"]))

    def _named(self, outputs: Sequence[Floats], rows: int) -> dict[str, Floats]:
        """The packet's outputs by name, in the shapes of ``tts_engine.models.packet``."""
        named = dict(zip(PACKET_OUTPUTS, outputs, strict=False))
        layers, blocks = self.row_shape.layers, self.row_shape.blocks
        for name, count in (("fresh", layers), ("made", layers), ("decoder_history", layers), ("body_history", blocks)):
            shape = named[name].shape
            named[name] = named[name].reshape(count, rows, *(shape[1:] if name in ("fresh", "made") else shape[2:]))
        filters = named["filters"]
        named["filters"] = filters.reshape(rows, 2 * filters.shape[2], 4, -1)
        named["input_history"] = named["input_history"][:, 0]
        return named


def compiled_path(voice: VoiceManifest) -> Path:
    """Where the compiled file of a voice lies."""
    return voice.folder / "compiled.int8.safetensors"


def fingerprint(voice: VoiceManifest) -> str:
    """Stands for the weights of a voice: the hashes that its manifest holds them to."""
    return " ".join(voice.files[f"{part}.safetensors"].sha256 for part in ("acoustic", "vocoder"))


def _compiled_constants(voice: VoiceManifest) -> dict[str, NDArray[Any]]:
    """What the compiled file of a voice holds, mapped into memory."""
    path = compiled_path(voice)
    if not path.exists():
        raise WeightsError(f"there is no {path}: run `sayline compile`")
    constants, metadata = load_arrays(path)
    if metadata.get("format") != FORMAT:
        raise WeightsError(
            f"{path} is of format {metadata.get('format')!r}, this version reads {FORMAT!r}: run `sayline compile` again"
        )
    if metadata.get("weights") != fingerprint(voice):
        raise WeightsError(f"{path} was made from other weights than those of the voice: run `sayline compile` again")
    if metadata.get("content") != digest(constants):
        raise WeightsError(f"{path} was altered or is damaged: run `sayline compile` again")
    return constants


def named_weights(voice: VoiceManifest, ready: Container[str] = ()) -> dict[str, NDArray[Any]]:
    """All weights of a voice by the names that the graphs use, as they lie in the files; gains of the vocoder's blocks are part
    of what they are gains of, but for weights whose bytes are ``ready``, of which only the shape is asked for."""
    found: dict[str, NDArray[Any]] = {}
    for part, expected in (("acoustic", ACOUSTIC_METADATA), ("vocoder", VOCODER_METADATA)):
        arrays, _ = load_arrays(voice.read(f"{part}.safetensors"), expected)
        found |= {f"{part}.{name}": array for name, array in arrays.items()}
    for name in [name for name in found if name.startswith("vocoder.blocks.") and name.endswith(".g")]:
        gain = found.pop(name).astype(np.float32)
        product = name.removesuffix("g") + "b"
        for weight in (f"{product}.weight", f"{product}.bias"):
            if weight not in found:
                raise WeightsError(f"the voice has no tensor {weight}, which the graphs need")
            if f"{weight}:int8" not in ready:
                found[weight] = (gain * found[weight].T).T
    return found


def encoder_stages(weights: Mapping[str, NDArray[Any]]) -> list[Stage]:
    """The layers of the text encoder, then those of the durations."""
    return [
        Stage(attends, weights[f"acoustic.{stack}.{i}.dw.weight"].shape[2] // 2)
        for stack, attends in (("enc", ENCODER_REACH), ("dur", 0))
        for i in range(_count(weights, f"acoustic.{stack}."))
    ]


def graph_path(name: str, precision: Precision) -> Path:
    """The graph that a precision uses."""
    return GRAPHS / f"{name}.{precision if precision in PRECISIONS[name] else 'float32'}.onnx"


def references_of(name: str, precision: Precision) -> list[str]:
    """The weights that a graph refers to."""
    path = graph_path(name, precision).with_suffix(".json")
    references: list[str] = json.loads(path.read_text(encoding="utf-8"))
    return references


def constants_of(
    weights: Mapping[str, NDArray[Any]], precision: Precision, ready: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """The constants of all graphs: those that are ``ready``, and the others from the weights."""
    made = dict(ready)
    left = set(weights) - WITHOUT_GRAPH
    for name in PRECISIONS:
        for reference in references_of(name, precision):
            base = reference.partition(":")[0]
            if base not in weights:
                raise WeightsError(f"the voice has no tensor {base}, which the graphs need")
            left.discard(base)
            if reference not in made:
                made[reference] = constant(reference, weights[base].astype(np.float32))
    if left:
        raise WeightsError(f"the voice has the tensor {min(left)}, which the graphs do not know")
    return made


def shape_of(weights: Mapping[str, NDArray[Any]]) -> RowShape:
    """The sizes of a row's state for these weights."""
    heads, anchors, head_size = weights["acoustic.dec.0.at.aq"].shape
    channels, inputs, input_width = weights["vocoder.inp.weight"].shape
    return RowShape(
        layers=_count(weights, "acoustic.dec."),
        heads=heads,
        head_size=head_size,
        anchors=anchors,
        channels=weights["acoustic.inp.weight"].shape[0],
        past=weights["acoustic.dec.0.dw.weight"].shape[2] - 1,
        inputs=inputs,
        input_past=input_width - 1,
        blocks=_count(weights, "vocoder.blocks."),
        body_channels=channels,
        body_past=weights["vocoder.blocks.0.dw.weight"].shape[2] - 1,
    )


def _count(weights: Mapping[str, NDArray[Any]], prefix: str) -> int:
    """How many layers a stack has."""
    return len({name.removeprefix(prefix).split(".")[0] for name in weights if name.startswith(prefix)})


def _session(
    name: str, precision: Precision, constants: Mapping[str, NDArray[Any]], threads: int, trace: Path | None = None
) -> Any:
    """``trace``: a folder for the times of the nodes, which the session then writes when it is told to end that."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    if trace is not None:
        options.enable_profiling = True
        options.profile_file_prefix = str(trace / name)
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    references = references_of(name, precision)
    values = [onnxruntime.OrtValue.ortvalue_from_numpy(np.require(constants[r], requirements=["C", "A"])) for r in references]
    options.add_external_initializers(references, values)
    try:
        return onnxruntime.InferenceSession(
            str(graph_path(name, precision)),
            options,
            providers=["CPUExecutionProvider"],
            disabled_optimizers=DONE_BY_HAND,
        )
    except Exception as error:  # its exceptions have no base class of their own
        raise WeightsError(f"the weights do not have the shapes of the graph {name}: {error}") from error
