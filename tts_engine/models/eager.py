"""The model of a voice in eager torch: float32, exact, the reference for every faster path.

Shapes come from the weights, never from constants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from tts_engine.errors import WeightsError
from tts_engine.expansion import Floats
from tts_engine.models.acoustic import AcousticModel, AcousticShape
from tts_engine.models.metadata import ACOUSTIC_METADATA, VOCODER_METADATA
from tts_engine.models.packet import PacketNetwork
from tts_engine.models.rows import PacketInputs, RowShape, StreamingModel
from tts_engine.models.signal import NoiseShape
from tts_engine.models.vocoder import Vocoder, VocoderShape
from tts_engine.nn.window import ENCODER_REACH
from tts_engine.weights import VoiceManifest, load_arrays


class EagerModel(StreamingModel):
    """Both models of a voice in inference form. ``threads``: how many torch uses for one operation."""

    form = "eager float32"

    def __init__(self, acoustic: AcousticModel, vocoder: Vocoder, threads: int = 1) -> None:
        self.acoustic = acoustic
        self.vocoder = vocoder
        self.row_shape = row_shape(acoustic, vocoder)
        self.noise_shape = NoiseShape.of(*vocoder.shape.tolist())
        self._packet = PacketNetwork(acoustic, vocoder)
        self._threads = threads

    @staticmethod
    def load(voice: VoiceManifest, threads: int = 1, *, bfloat16: bool = False) -> EagerModel:
        """Checks, maps and loads both weight files. Raises WeightsError before anything is computed.

        ``bfloat16`` computes the products with weights in bfloat16; everything between stays float32.
        """
        weights = _tensors(voice, "acoustic.safetensors", ACOUSTIC_METADATA)
        vocoder_weights = _tensors(voice, "vocoder.safetensors", VOCODER_METADATA)
        try:
            with torch.device("meta"):
                acoustic, vocoder = AcousticModel(AcousticShape.of(weights)), Vocoder(VocoderShape.of(vocoder_weights))
            voice.check_speakers(acoustic.shape.speakers)
            _fill(acoustic, weights)
            _fill(vocoder, vocoder_weights)
        except (KeyError, ValueError, RuntimeError) as error:
            raise WeightsError(f"the weights in {voice.folder} do not have the tensors of this model: {error}") from error
        if bfloat16:
            _use_bfloat16(acoustic)
            _use_bfloat16(vocoder)
        model = EagerModel(acoustic, vocoder, threads)
        model.form = "eager bfloat16" if bfloat16 else "eager float32"
        return model

    @torch.inference_mode()
    def encode(self, ids: Sequence[int], speaker: int) -> tuple[Floats, Floats]:
        self._use_threads()
        padded, keep = padded_ids(ids)
        encoded, log_durations = self.acoustic.encode(torch.from_numpy(padded), torch.tensor([speaker]), torch.from_numpy(keep))
        return encoded[0, : len(ids)].numpy(), log_durations[0, : len(ids)].numpy()

    @torch.inference_mode()
    def prosody(self, expanded: Floats) -> Floats:
        self._use_threads()
        raw: Floats = self.acoustic.prosody(torch.from_numpy(expanded)[None])[0].numpy()
        return raw

    @torch.inference_mode()
    def _network(self, inputs: PacketInputs) -> Mapping[str, Floats]:
        self._use_threads()
        outputs = self._packet(**{name: torch.from_numpy(array) for name, array in inputs.items()})
        return {name: tensor.numpy() for name, tensor in outputs._asdict().items()}

    def _use_threads(self) -> None:
        """torch counts threads for each calling thread on its own."""
        if torch.get_num_threads() != self._threads:
            torch.set_num_threads(self._threads)


def _tensors(voice: VoiceManifest, name: str, expected: Mapping[str, str]) -> dict[str, Tensor]:
    arrays, _ = load_arrays(voice.read(name), expected)
    return {key: torch.from_numpy(array.astype(np.float32)) for key, array in arrays.items()}


def padded_ids(ids: Sequence[int]) -> tuple[NDArray[np.int64], Floats]:
    """One sentence for the text encoder: ids [1, phonemes] padded to whole blocks, and 1 for each that is no padding."""
    count = -(-len(ids) // ENCODER_REACH) * ENCODER_REACH
    padded = np.zeros((1, count), np.int64)
    padded[0, : len(ids)] = ids
    keep = np.zeros((1, count), np.float32)
    keep[0, : len(ids)] = 1
    return padded, keep


def row_shape(acoustic: AcousticModel, vocoder: Vocoder) -> RowShape:
    """The sizes of a row's state for these two models."""
    decoder, first = acoustic.shape, vocoder.body[0]
    return RowShape(
        layers=decoder.decoder_layers,
        heads=decoder.heads,
        head_size=decoder.head_size,
        anchors=decoder.anchors,
        channels=decoder.decoder_channels,
        past=decoder.decoder_width - 1,
        inputs=vocoder.inp.weight.shape[1],
        input_past=vocoder.inp.width - 1,
        blocks=len(vocoder.blocks),
        body_channels=vocoder.inp.weight.shape[0],
        body_past=first.dw.width - 1,
    )


class BFloat16Linear(nn.Module):
    """A linear layer whose product is computed in bfloat16; float32 in and out."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.weight = nn.Parameter(linear.weight.to(torch.bfloat16), requires_grad=False)
        self.bias = nn.Parameter(linear.bias.to(torch.bfloat16), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x.to(torch.bfloat16), self.weight, self.bias).to(torch.float32)


def _use_bfloat16(module: nn.Module) -> None:
    for name, child in module.named_children():
        if isinstance(child, nn.Linear):
            setattr(module, name, BFloat16Linear(child))
        else:
            _use_bfloat16(child)


def _fill(model: nn.Module, weights: dict[str, Tensor]) -> None:
    model.load_state_dict(weights, strict=True, assign=True)
    model.requires_grad_(False)
    model.eval()
