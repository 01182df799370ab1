"""The model of a voice in eager torch: float32, exact, the reference for every faster path.

Shapes come from the weights, never from constants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from tts_engine.errors import WeightsError
from tts_engine.expansion import Floats
from tts_engine.models.acoustic import AcousticModel, AcousticShape
from tts_engine.models.packet import PacketNetwork
from tts_engine.models.rows import PacketInputs, RowShape, StreamingModel
from tts_engine.models.signal import FFT, HOP, MAX_HARMONIC_HZ, SAMPLE_RATE, NoiseShape
from tts_engine.models.vocoder import Vocoder, VocoderShape
from tts_engine.weights import VoiceManifest, load_tensors

ACOUSTIC_METADATA = {"format": "sayline-acoustic-1", "sample_rate": str(SAMPLE_RATE)}
VOCODER_METADATA = {
    "format": "sayline-vocoder-1",
    "fft": str(FFT),
    "hop": str(HOP),
    "max_harmonic_hz": f"{MAX_HARMONIC_HZ:.0f}",
    "look_ahead": "1,1,0,0,0,0,0,0",
    "noise": "steady,pitch-synchronous",
}


class EagerModel(StreamingModel):
    """Both models of a voice in inference form. ``threads``: how many torch uses for one operation."""

    def __init__(self, acoustic: AcousticModel, vocoder: Vocoder, threads: int = 1) -> None:
        self.acoustic = acoustic
        self.vocoder = vocoder
        self.row_shape = row_shape(acoustic, vocoder)
        self.noise_shape = NoiseShape.of(*vocoder.shape.tolist())
        self._packet = PacketNetwork(acoustic, vocoder)
        self._threads = threads

    @staticmethod
    def load(voice: VoiceManifest, threads: int = 1) -> EagerModel:
        """Checks, maps and loads both weight files. Raises WeightsError before anything is computed."""
        weights = load_tensors(voice.read("acoustic.safetensors"), ACOUSTIC_METADATA)
        vocoder_weights = load_tensors(voice.read("vocoder.safetensors"), VOCODER_METADATA)
        try:
            with torch.device("meta"):
                acoustic, vocoder = AcousticModel(AcousticShape.of(weights)), Vocoder(VocoderShape.of(vocoder_weights))
            _fill(acoustic, weights)
            _fill(vocoder, vocoder_weights)
        except (KeyError, ValueError, RuntimeError) as error:
            raise WeightsError(f"the weights in {voice.folder} do not have the tensors of this model: {error}") from error
        vocoder.hann = torch.hann_window(FFT, periodic=True)
        return EagerModel(acoustic, vocoder, threads)

    @torch.inference_mode()
    def encode(self, ids: Sequence[int], speaker: int) -> tuple[Floats, Floats]:
        self._use_threads()
        encoded, log_durations = self.acoustic.encode(torch.tensor([ids]), torch.tensor([speaker]))
        return encoded[0].numpy(), log_durations[0].numpy()

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


def row_shape(acoustic: AcousticModel, vocoder: Vocoder) -> RowShape:
    """The sizes of a row's state for these two models."""
    decoder, first = acoustic.shape, vocoder.blocks[0]
    assert isinstance(first.dw.width, int)
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


def _fill(model: nn.Module, weights: dict[str, Tensor]) -> None:
    model.load_state_dict(weights, strict=True, assign=True)
    model.requires_grad_(False)
    model.eval()
