"""The model of a voice in ONNX Runtime: no torch, and int8 products where the voice was compiled for them.

The graphs are part of the package and hold no weights (``tts_engine.training.export_graphs`` makes them). Weights come from
the voice's safetensors; the bytes of int8 products from a *compiled file* beside them, which is mapped into memory and
carries the hashes of the weights and of its content, and the version of its format. ``tts_engine.models.compiling`` writes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tts_engine.errors import WeightsError
from tts_engine.expansion import Floats
from tts_engine.models.graphs import GRAPHS, constant
from tts_engine.models.metadata import ACOUSTIC_METADATA, VOCODER_METADATA
from tts_engine.models.rows import PacketInputs, RowShape, StreamingModel, padded_ids
from tts_engine.models.signal import NoiseShape
from tts_engine.weights import VoiceManifest, digest, load_arrays

Precision = Literal["float32", "int8", "calibrate"]
NAMES = ("encode", "prosody", "packet")
"""Durations and pitch stay float32 in every precision: they cost little, and bytes would be heard in them."""
FORMAT = "sayline-compiled-2"
"""Changes with the graphs: a compiled file of another format is refused."""
PACKET_OUTPUTS = ("filters", "fresh", "made", "decoder_history", "input_history", "body_history")


class CompiledModel(StreamingModel):
    """Both models of a voice as three inference sessions. ``threads``: how many a session uses."""

    def __init__(
        self,
        constants: Mapping[str, NDArray[Any]],
        noise_shape: NDArray[Any],
        row_shape: RowShape,
        precision: Precision,
        threads: int,
    ) -> None:
        self.row_shape = row_shape
        self.noise_shape = NoiseShape.of(*noise_shape.tolist())
        self.precision = precision
        self.form = f"onnx {precision}"
        self._constants = constants  # sessions refer to these arrays
        self._sessions = {name: _session(name, precision, constants, threads) for name in NAMES}

    @staticmethod
    def load(voice: VoiceManifest, precision: Precision = "int8", threads: int = 1) -> CompiledModel:
        """From the weights of the voice and, for int8, its compiled file.

        Raises WeightsError, with the command that makes or rebuilds it, for a compiled file that is missing, was made by
        another version or from other weights; and for weights that are damaged or do not have the shapes of the graphs.
        """
        weights = named_weights(voice)
        ready = _compiled_constants(voice) if precision == "int8" else {}
        constants = constants_of(weights, precision, ready)
        return CompiledModel(constants, weights["vocoder.shape"], shape_of(weights), precision, threads)

    def encode(self, ids: Sequence[int], speaker: int) -> tuple[Floats, Floats]:
        padded, keep = padded_ids(ids)
        inputs = {"ids": padded, "speaker": np.array([speaker]), "keep": keep}
        encoded, log_durations = self._sessions["encode"].run(None, inputs)
        return encoded[0, : len(ids)], log_durations[0, : len(ids)]

    def prosody(self, expanded: Floats) -> Floats:
        raw: Floats = self._sessions["prosody"].run(None, {"expanded": expanded[None]})[0][0]
        return raw

    def _network(self, inputs: PacketInputs) -> Mapping[str, Floats]:
        outputs = self._sessions["packet"].run(None, inputs)
        return dict(zip(PACKET_OUTPUTS, outputs, strict=True))


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


def named_weights(voice: VoiceManifest) -> dict[str, NDArray[Any]]:
    """All weights of a voice by the names that the graphs use, as they lie in the files."""
    found: dict[str, NDArray[Any]] = {}
    for part, expected in (("acoustic", ACOUSTIC_METADATA), ("vocoder", VOCODER_METADATA)):
        arrays, _ = load_arrays(voice.read(f"{part}.safetensors"), expected)
        found |= {f"{part}.{name}": array for name, array in arrays.items()}
    return found


def references_of(name: str, precision: Precision) -> list[str]:
    """The weights that a graph refers to."""
    references: list[str] = json.loads(_graph(name, precision).with_suffix(".json").read_text(encoding="utf-8"))
    return references


def _graph(name: str, precision: Precision) -> Path:
    return GRAPHS / f"{name}.{precision if name == 'packet' else 'float32'}.onnx"


def constants_of(
    weights: Mapping[str, NDArray[Any]], precision: Precision, ready: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """The constants of all graphs: those that are ``ready``, and the others from the weights."""
    made = dict(ready)
    for name in NAMES:
        for reference in references_of(name, precision):
            base = reference.partition(":")[0]
            if base not in weights:
                raise WeightsError(f"the voice has no tensor {base}, which the graphs need")
            if reference not in made:
                made[reference] = constant(reference, weights[base].astype(np.float32))
    return made


def shape_of(weights: Mapping[str, NDArray[Any]]) -> RowShape:
    """The sizes of a row's state for these weights."""

    def count(prefix: str) -> int:
        return len({name.removeprefix(prefix).split(".")[0] for name in weights if name.startswith(prefix)})

    heads, anchors, head_size = weights["acoustic.dec.0.at.aq"].shape
    channels, inputs, input_width = weights["vocoder.inp.weight"].shape
    return RowShape(
        layers=count("acoustic.dec."),
        heads=heads,
        head_size=head_size,
        anchors=anchors,
        channels=weights["acoustic.inp.weight"].shape[0],
        past=weights["acoustic.dec.0.dw.weight"].shape[2] - 1,
        inputs=inputs,
        input_past=input_width - 1,
        blocks=count("vocoder.blocks."),
        body_channels=channels,
        body_past=weights["vocoder.blocks.0.dw.weight"].shape[2] - 1,
    )


def _session(name: str, precision: Precision, constants: Mapping[str, NDArray[Any]], threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    references = references_of(name, precision)
    values = [onnxruntime.OrtValue.ortvalue_from_numpy(np.require(constants[r], requirements=["C", "A"])) for r in references]
    options.add_external_initializers(references, values)
    try:
        # the fused form of addition and layer normalisation is several times slower than the two on a CPU
        return onnxruntime.InferenceSession(
            str(_graph(name, precision)),
            options,
            providers=["CPUExecutionProvider"],
            disabled_optimizers=["SkipLayerNormFusion"],
        )
    except Exception as error:  # its exceptions have no base class of their own
        raise WeightsError(f"the weights do not have the shapes of the graph {name}: {error}") from error
