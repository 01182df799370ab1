"""Makes the two models of a voice from its folder: shapes come from the weights, never from constants."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tts_engine.errors import WeightsError
from tts_engine.models.acoustic import AcousticModel, AcousticShape
from tts_engine.models.vocoder import FFT, HOP, MAX_HARMONIC_HZ, SAMPLE_RATE, Vocoder, VocoderShape
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


@dataclass(frozen=True, slots=True)
class VoiceModels:
    """The acoustic model and the vocoder of one voice, float32, in inference form."""

    acoustic: AcousticModel
    vocoder: Vocoder


def build_models(voice: VoiceManifest) -> VoiceModels:
    """Checks, maps and loads both weight files. Raises WeightsError before anything is computed."""
    acoustic = load_tensors(voice.read("acoustic.safetensors"), ACOUSTIC_METADATA)
    vocoder = load_tensors(voice.read("vocoder.safetensors"), VOCODER_METADATA)
    try:
        with torch.device("meta"):
            models = VoiceModels(AcousticModel(AcousticShape.of(acoustic)), Vocoder(VocoderShape.of(vocoder)))
        _fill(models.acoustic, acoustic)
        _fill(models.vocoder, vocoder)
    except (KeyError, ValueError, RuntimeError) as error:
        raise WeightsError(f"the weights in {voice.folder} do not have the tensors of this model: {error}") from error
    models.vocoder.hann = torch.hann_window(FFT, periodic=True)
    return models


def _fill(model: nn.Module, weights: dict[str, Tensor]) -> None:
    model.load_state_dict(weights, strict=True, assign=True)
    model.requires_grad_(False)
    model.eval()
