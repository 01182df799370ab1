"""The model of a voice in eager torch: float32, exact, the reference for every faster path.

Shapes come from the weights, never from constants.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from tts_engine.errors import WeightsError
from tts_engine.expansion import MELS_PER_FRAME, Floats
from tts_engine.models.acoustic import AcousticModel, AcousticShape, DecoderState
from tts_engine.models.vocoder import FFT, HOP, MAX_HARMONIC_HZ, SAMPLE_RATE, Vocoder, VocoderShape, VocoderState
from tts_engine.nn.state import join, part
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


@dataclass(slots=True)
class EagerRow:
    """One utterance's state: decoder and vocoder states of one row each."""

    decoder: DecoderState
    vocoder: VocoderState


@dataclass(frozen=True, slots=True)
class EagerModel:
    """Both models of a voice in inference form. ``threads``: how many torch uses for one operation."""

    acoustic: AcousticModel
    vocoder: Vocoder
    threads: int = 1

    @staticmethod
    def load(voice: VoiceManifest, threads: int = 1) -> EagerModel:
        """Checks, maps and loads both weight files. Raises WeightsError before anything is computed."""
        acoustic = load_tensors(voice.read("acoustic.safetensors"), ACOUSTIC_METADATA)
        vocoder = load_tensors(voice.read("vocoder.safetensors"), VOCODER_METADATA)
        try:
            with torch.device("meta"):
                model = EagerModel(
                    AcousticModel(AcousticShape.of(acoustic)), Vocoder(VocoderShape.of(vocoder)), threads
                )
            _fill(model.acoustic, acoustic)
            _fill(model.vocoder, vocoder)
        except (KeyError, ValueError, RuntimeError) as error:
            raise WeightsError(f"the weights in {voice.folder} do not have the tensors of this model: {error}") from error
        model.vocoder.hann = torch.hann_window(FFT, periodic=True)
        return model

    @property
    def mels(self) -> int:
        return self.acoustic.shape.mels

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

    def start(self) -> EagerRow:
        return EagerRow(self.acoustic.init_state(1), self.vocoder.init_state(1))

    @torch.inference_mode()
    def packet(
        self, rows: Sequence[EagerRow], x: Floats, f0: Floats, noise: Floats, lengths: Sequence[int]
    ) -> Floats:
        self._use_threads()
        state = join(rows)
        mels = self.acoustic.decode_step(torch.from_numpy(x), state.decoder)
        samples = self.vocoder.step(
            mels,
            torch.from_numpy(f0),
            torch.from_numpy(noise),
            state.vocoder,
            [MELS_PER_FRAME * length for length in lengths],
        )
        part(state, rows)
        out: Floats = samples.numpy()
        return out

    def _use_threads(self) -> None:
        """torch counts threads for each calling thread on its own."""
        if torch.get_num_threads() != self.threads:
            torch.set_num_threads(self.threads)


def _fill(model: nn.Module, weights: dict[str, Tensor]) -> None:
    model.load_state_dict(weights, strict=True, assign=True)
    model.requires_grad_(False)
    model.eval()
