"""The engine: an utterance in, audio packets out. Plain synchronous code; whoever calls it decides on which thread.

``begin`` reads the text and runs the encoder, each ``step`` makes one packet: prosody just ahead, frame decoder, vocoder.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from tts_engine.errors import EngineError, InputError
from tts_engine.models.acoustic import (
    MELS_PER_FRAME,
    Alignment,
    DecoderState,
    condition_prosody,
    frame_durations,
)
from tts_engine.models.build import VoiceModels, build_models
from tts_engine.models.vocoder import DELAY_MELS, MEL_HOP, SAMPLE_RATE, VocoderState
from tts_engine.shaping import Level, SampleShaper, Silence
from tts_engine.text.frontend import FrontEnd, Script
from tts_engine.text.user_lexicon import UserLexicon
from tts_engine.types import AudioChunk, AudioFormat, Samples, Utterance, WordTime
from tts_engine.weights import EMBEDDED_VOICE, VoiceManifest

FRAME_SAMPLES = MELS_PER_FRAME * MEL_HOP
FRAME_MS = 1000 * FRAME_SAMPLES / SAMPLE_RATE
FLUSH_FRAMES = DELAY_MELS // MELS_PER_FRAME
"""Frames that push the last samples out of the vocoder."""
FORMAT = AudioFormat(SAMPLE_RATE, channels=1)
SPEED_RANGE = (0.25, 4.0)
VOLUME_RANGE = (0.0, 4.0)
PITCH_RANGE = (-12.0, 12.0)


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """How the engine cuts and seeds its work.

    ``chunk_frames``: decoder frames (25 ms) of the first, second, … packet; the last number holds from there on. The first
    packet sounds 50 ms later than its length, since the vocoder looks ahead. ``open_frames`` and ``close_frames`` cap the
    silence of the opening and the closing symbol. ``threads``: torch's threads for one operation. ``seed``: of the noise.
    """

    chunk_frames: tuple[int, ...] = (6, 8, 12, 20, 32, 48, 64)
    open_frames: int = 2
    close_frames: int = 4
    prosody_ahead_frames: int = 64
    threads: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.chunk_frames or any(not 1 <= frames <= 64 for frames in self.chunk_frames):
            raise InputError(f"chunk_frames needs whole numbers from 1 to 64, got {self.chunk_frames}")


@dataclass(slots=True)
class Speech:
    """One utterance on its way through the engine."""

    utterance: Utterance
    encoded: Tensor  # [phonemes, channels]
    alignment: Alignment
    semitones: Tensor | None  # [frames], None: no shift anywhere
    shaper: SampleShaper
    words: list[WordTime]
    noise: np.random.Generator
    decoder: DecoderState
    vocoder: VocoderState
    told: Tensor  # prosody that the decoder is told, [frames so far, 6]
    f0: Tensor  # [mels so far] Hz
    frame: int = 0  # frames decoded
    packets: int = 0
    put_out: int = 0  # samples put out
    first_frame_s: float | None = None  # when the first frames were decoded, on time.monotonic
    done: bool = False

    @property
    def frames(self) -> int:
        """Frames of the whole utterance."""
        return len(self.alignment)


@dataclass(slots=True)
class Engine:
    """Text in, audio out, with one voice folder. Utterances are independent of one another; one call at a time."""

    voice: VoiceManifest
    models: VoiceModels
    front_end: FrontEnd
    config: EngineConfig = field(default_factory=EngineConfig)

    @staticmethod
    def load(
        folder: Path = EMBEDDED_VOICE, config: EngineConfig | None = None, user: UserLexicon | None = None
    ) -> Engine:
        """Loads a voice folder. Raises WeightsError before any sound if a file is missing, truncated or altered."""
        voice = VoiceManifest.load(folder)
        models = build_models(voice)
        return Engine(voice, models, FrontEnd(voice.symbols, user), config or EngineConfig())

    def speak(self, utterance: Utterance) -> Iterator[AudioChunk]:
        """All packets of an utterance, made as they are asked for."""
        speech = self.begin(utterance)
        while not speech.done:
            yield self.step(speech)

    @torch.inference_mode()
    def begin(self, utterance: Utterance) -> Speech:
        """Reads the text and plans the frames. Raises VoiceError if the voice does not speak the language."""
        _check(utterance)
        self._use_threads()
        script = self.front_end.read(utterance)
        speaker = self.voice.speaker(utterance.voice, script.language)
        if script.silent:
            return self._silent(utterance, script)
        try:
            encoded, log_durations = self.models.acoustic.encode(
                torch.tensor([script.ids]), torch.tensor([speaker.id])
            )
            durations = frame_durations(log_durations[0], torch.tensor(script.speed))
        except RuntimeError as error:
            raise EngineError(f"the acoustic model failed on {utterance.text[:60]!r}: {error}") from error
        durations[0].clamp_(max=self.config.open_frames)
        durations[-1].clamp_(max=self.config.close_frames)
        silences = _place_pauses(script, durations)
        ends = (torch.cumsum(durations, 0) * FRAME_SAMPLES).tolist()
        starts = [0, *ends[:-1]]
        total = ends[-1]
        silences.insert(0, Silence(0, _samples(utterance.break_before_ms + script.lead_ms)))
        silences.append(Silence(total, _samples(max(utterance.break_after_ms, script.tail_ms))))
        shaper = SampleShaper(total, silences, _levels(script, starts))
        alignment = Alignment.of(durations)
        semitones = torch.tensor(script.pitch)[alignment.phoneme] if any(script.pitch) else None
        words = [
            WordTime(word.start, word.end, shaper.placed(starts[word.first]), shaper.placed(ends[word.last - 1] - 1) + 1)
            for word in script.words
        ]
        return self._speech(utterance, encoded[0], alignment, semitones, shaper, words)

    @torch.inference_mode()
    def step(self, speech: Speech) -> AudioChunk:
        """The next packet. The one with ``last`` set closes the utterance."""
        assert not speech.done
        self._use_threads()
        parts: list[Samples] = []
        if speech.frames:
            parts = self._synthesise(speech)
        else:
            parts = speech.shaper.feed(np.zeros(0, np.float32))
            speech.done = True
        samples = parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.float32), *parts])
        start = speech.put_out
        speech.put_out += len(samples)
        words = tuple(word for word in speech.words if start <= word.start_sample < speech.put_out)
        return AudioChunk(
            samples, FORMAT, speech.utterance, start, words, speech.done, speech.first_frame_s, time.monotonic()
        )

    def _synthesise(self, speech: Speech) -> list[Samples]:
        chunks = self.config.chunk_frames
        count = chunks[min(speech.packets, len(chunks) - 1)]
        flushed = speech.frames + FLUSH_FRAMES
        count = min(count, flushed - speech.frame)
        first = speech.frame
        try:
            samples = self._run(speech, count)
        except RuntimeError as error:
            raise EngineError(f"synthesis failed in {speech.utterance.text[:60]!r}: {error}") from error
        speech.packets += 1
        speech.done = speech.frame >= flushed
        low = max(0, FLUSH_FRAMES - first) * FRAME_SAMPLES  # before the first sample
        return speech.shaper.feed(samples[low:])

    def _run(self, speech: Speech, count: int) -> Samples:
        """Decodes ``count`` frames and gives as many frames' samples, ``FLUSH_FRAMES`` back."""
        first, stop = speech.frame, speech.frame + count
        self._look_ahead(speech, min(stop, speech.frames))
        have = min(stop, speech.frames) - first
        mels = torch.zeros(1, MELS_PER_FRAME * count, self.models.acoustic.shape.mels)
        f0 = torch.zeros(1, MELS_PER_FRAME * count)
        if have > 0:
            expanded = speech.alignment.expand(speech.encoded, first, first + have)
            x = torch.cat((expanded, speech.told[first : first + have]), dim=1)
            mels[:, : MELS_PER_FRAME * have] = self.models.acoustic.decode_step(x.unsqueeze(0), speech.decoder)
            speech.first_frame_s = speech.first_frame_s or time.monotonic()
            f0[0, : MELS_PER_FRAME * have] = speech.f0[MELS_PER_FRAME * first : MELS_PER_FRAME * (first + have)]
        # the vocoder takes the noise of mel frames [given - 2, given + n - 2): one decoder frame back
        noise = np.zeros(FRAME_SAMPLES * count, np.float32)
        fresh = FRAME_SAMPLES * count - (FRAME_SAMPLES if first == 0 else 0)
        if fresh > 0:
            noise[len(noise) - fresh :] = speech.noise.standard_normal(fresh, np.float32)
        length = MELS_PER_FRAME * speech.frames
        samples = self.models.vocoder.step(mels, f0, torch.from_numpy(noise).unsqueeze(0), speech.vocoder, [length])
        speech.frame = stop
        out: Samples = samples[0].numpy()
        return out

    def _look_ahead(self, speech: Speech, stop: int) -> None:
        """Makes prosody up to frame ``stop`` at least; beyond the first packet in longer blocks."""
        made = len(speech.told)
        if made >= stop:
            return
        if made:
            stop = min(speech.frames, max(stop, made + self.config.prosody_ahead_frames))
        raw = self.models.acoustic.prosody_block(speech.encoded, speech.alignment, made, stop)
        shift = 0.0 if speech.semitones is None else speech.semitones[made:stop]
        told, f0 = condition_prosody(raw, shift)
        speech.told = torch.cat((speech.told, told))
        speech.f0 = torch.cat((speech.f0, f0))

    def _silent(self, utterance: Utterance, script: Script) -> Speech:
        """An utterance with nothing to say: its breaks only."""
        pause = _samples(utterance.break_before_ms + script.lead_ms + max(utterance.break_after_ms, script.tail_ms))
        empty = torch.zeros(0, 0)
        nothing = Alignment(torch.zeros(0, dtype=torch.int64), torch.zeros(0, 4))
        return self._speech(utterance, empty, nothing, None, SampleShaper(0, [Silence(0, pause)], []), [])

    def _speech(
        self,
        utterance: Utterance,
        encoded: Tensor,
        alignment: Alignment,
        semitones: Tensor | None,
        shaper: SampleShaper,
        words: list[WordTime],
    ) -> Speech:
        return Speech(
            utterance=utterance,
            encoded=encoded,
            alignment=alignment,
            semitones=semitones,
            shaper=shaper,
            words=words,
            noise=np.random.Generator(np.random.SFC64(self.config.seed)),
            decoder=self.models.acoustic.init_state(1),
            vocoder=self.models.vocoder.init_state(1),
            told=torch.zeros(0, 6),
            f0=torch.zeros(0),
        )

    def _use_threads(self) -> None:
        """torch counts threads for each calling thread on its own."""
        if torch.get_num_threads() != self.config.threads:
            torch.set_num_threads(self.config.threads)


def _check(utterance: Utterance) -> None:
    for name, value, (low, high) in (
        ("speed", utterance.speed, SPEED_RANGE),
        ("volume", utterance.volume, VOLUME_RANGE),
        ("pitch", utterance.pitch, PITCH_RANGE),
    ):
        if not low <= value <= high:
            raise InputError(f"{name} must lie between {low:g} and {high:g}, got {value!r}")


def _samples(ms: float) -> int:
    return round(ms * SAMPLE_RATE / 1000)


def _place_pauses(script: Script, durations: Tensor) -> list[Silence]:
    """Gives each pause its length: a short one by the frames of its phoneme, a longer one by silence in their middle.

    Changes ``durations`` [phonemes] in place, so it must come before anything that is counted from them.
    """
    rests: list[tuple[int, float]] = []
    for pause in script.pauses:
        natural_ms = int(durations[pause.position]) * FRAME_MS
        if pause.ms < natural_ms:
            durations[pause.position] = max(1, round(pause.ms / FRAME_MS))
        elif pause.ms > natural_ms:
            rests.append((pause.position, pause.ms - natural_ms))
    ends = torch.cumsum(durations, 0)
    return [
        Silence(int(2 * ends[position] - durations[position]) * FRAME_SAMPLES // 2, _samples(rest_ms))
        for position, rest_ms in rests
    ]


def _levels(script: Script, starts: list[int]) -> list[Level]:
    """Where the volume changes; ``starts`` are the phonemes' first samples."""
    levels: list[Level] = []
    for at, gain in zip(starts, script.volume, strict=True):
        if not levels or levels[-1].gain != gain:
            levels.append(Level(at, gain))
    return levels
