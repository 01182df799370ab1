"""The engine: an utterance in, audio packets out. Plain synchronous code; whoever calls it decides on which thread.

``begin`` reads the text and runs the encoder, each ``step`` makes one packet: prosody just ahead, frame decoder, vocoder.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import numpy as np

from tts_engine.allocator import keep_freed_memory
from tts_engine.errors import EngineError, InputError, SaylineError
from tts_engine.expansion import MELS_PER_FRAME, PROSODY_REACH_FRAMES, Floats, condition_prosody
from tts_engine.models.base import Encoding, RowState, SpeechModel
from tts_engine.models.choice import Compile, Precision, check_names, load_model
from tts_engine.models.compiled import compiled_path
from tts_engine.nn.window import WINDOW
from tts_engine.planning import AUDIBLE, FRAME_SAMPLES, SAMPLE_RATE, Edges, Plan, plan_utterance, silent_plan
from tts_engine.text.frontend import PAUSE_SYMBOLS, FrontEnd, Script
from tts_engine.types import AudioChunk, AudioFormat, Language, Samples, Utterance
from tts_engine.weights import EMBEDDED_VOICE, MANIFEST, VoiceManifest

if TYPE_CHECKING:
    from tts_engine.text.user_lexicon import UserLexicon

FLUSH_FRAMES = 2
"""Frames that push the last samples out of the vocoder."""
FIRST_PROSODY_FRAMES = 6
"""Frames of the first block of prosody, beside those that are not put out: enough for a first packet."""
TAIL_STEP_FRAMES = 8
"""Behind ``Plan.tail`` packets are small: most of what the voice has there is silence that is not put out."""
NOISE_FRAMES = 512
"""Frames after which the noise begins anew (12.8 s): a step's fit in, and what it holds is small."""
FORMAT = AudioFormat(SAMPLE_RATE, channels=1)
RANGES: Mapping[str, tuple[float, float]] = {
    "speed": (0.25, 4.0),
    "volume": (0.0, 4.0),
    "pitch": (-12.0, 12.0),
    "break": (0.0, 60_000.0),
}
"""What the fields of an utterance and the tags inside it may be."""


_LEAST = {"open_frames": 0, "lead_frames": 0, "close_frames": 0, "prosody_ahead_frames": 1, "threads": 1, "seed": 0}


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """How the engine cuts and seeds its work.

    ``chunk_frames``: decoder frames (25 ms) of the first, second, … packet; the last number holds from there on, and the first
    until something is audible. The first packet sounds 50 ms shorter than its length, since the vocoder looks ahead. A pause
    of ``PAUSE_FRAMES`` or more closes its packet early; a rest of less than half a packet before such a pause or the end is
    taken along.
    ``open_frames`` and ``close_frames`` cap the silence of the opening and the closing symbol; ``lead_frames`` of the
    opening are put out, and the others only lead the decoder in: without them the first word is heard wrong more often
    (docs/experiments.md). ``threads``: torch's threads for one operation. ``seed``: of the noise.
    """

    chunk_frames: tuple[int, ...] = (6, 64)
    open_frames: int = 16
    lead_frames: int = 2
    close_frames: int = 4
    prosody_ahead_frames: int = 128
    threads: int = 1
    seed: int = 0
    precision: Precision = "auto"
    compile: Compile = "auto"

    def __post_init__(self) -> None:
        sizes = self.chunk_frames
        if not isinstance(sizes, Sequence) or not sizes or not all(_is_whole(frames, 1, WINDOW) for frames in sizes):
            raise InputError(f"chunk_frames needs a list of whole numbers from 1 to {WINDOW}, got {sizes!r}")
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if not _is_whole(value, least):
                raise InputError(f"{name} needs a whole number of {least} or more, got {value!r}")
        check_names(self.precision, self.compile)


@dataclass(slots=True)
class Speech:
    """One utterance on its way through the engine."""

    utterance: Utterance
    script: Script
    encoding: Encoding
    plan: Plan
    row: RowState
    told: Floats = field(default_factory=lambda: np.zeros((0, 6), np.float32))  # [frames so far, 6]
    f0: Floats = field(default_factory=lambda: np.zeros(0, np.float32))  # [2 frames so far] Hz
    frame: int = 0  # frames given to the model
    packets: int = 0
    sounds: bool = False  # something audible was made
    put_out: int = 0  # samples put out
    first_frame_s: float | None = None  # when the first packet was decoded, on time.monotonic
    done: bool = False

    @property
    def frames(self) -> int:
        """Frames of the whole utterance, as far as it is planned."""
        return len(self.plan.alignment)

    @property
    def opening(self) -> int:
        """Frames of the first block of prosody."""
        return self.plan.unheard + FIRST_PROSODY_FRAMES

    @property
    def partial(self) -> bool:
        """Only its beginning has been read: enough for a first packet of ``opening`` frames at most."""
        return not self.plan.whole


@dataclass(slots=True)
class Engine:
    """Text in, audio out, with one voice folder. Utterances are independent of one another; one call at a time."""

    voice: VoiceManifest
    model: SpeechModel
    front_end: FrontEnd
    config: EngineConfig = field(default_factory=EngineConfig)
    noise: Samples = field(init=False, repr=False)
    """Standard normal, the same for each utterance; a longer one hears it again, which nobody can."""

    def __post_init__(self) -> None:
        random = np.random.Generator(np.random.SFC64(self.config.seed))
        self.noise = random.standard_normal(NOISE_FRAMES * FRAME_SAMPLES, np.float32)

    @staticmethod
    def load(folder: Path = EMBEDDED_VOICE, config: EngineConfig | None = None, user: UserLexicon | None = None) -> Engine:
        """Loads a voice folder. Raises WeightsError before any sound if a file is missing, truncated or altered."""
        config = config or EngineConfig()
        keep_freed_memory()
        voice = VoiceManifest.load(folder)
        model = load_model(voice, config.precision, config.compile, config.threads)
        return Engine(voice, model, FrontEnd(voice.symbols, user), config)

    @property
    def files(self) -> tuple[Path, ...]:
        """What it is loaded from, the compiled file too if there is none yet: when one is replaced, load a new engine."""
        weights = (self.voice.folder / name for name in self.voice.files)
        return (self.voice.folder / MANIFEST, *weights, compiled_path(self.voice))

    @staticmethod
    def compile(folder: Path = EMBEDDED_VOICE, path: Path | None = None) -> Path:
        """Writes the compiled file of a voice, which the int8 path maps into memory; gives its path.

        It speaks 200 sentences to measure what ranges the products need, which takes some ten seconds.
        """
        from tts_engine.models.compiling import compile_voice

        voice = VoiceManifest.load(folder)
        front_end = FrontEnd(voice.symbols)

        def speak(model: SpeechModel, text: str, name: str, speed: float) -> None:
            for _ in Engine(voice, model, front_end).speak(Utterance(text, voice=name, speed=speed)):
                pass

        return compile_voice(voice, speak, path)

    def speak(self, utterance: Utterance) -> Iterator[AudioChunk]:
        """All packets of an utterance, made as they are asked for."""
        speech = self.begin(utterance)
        while not speech.done:
            yield self.step(speech)

    def begin(self, utterance: Utterance) -> Speech:
        """Reads the text and plans the frames, of a long sentence the first ones. Raises VoiceError if the voice does not speak
        the language."""
        _check(utterance)
        script = self.front_end.read(utterance)
        speaker = self.voice.speaker(utterance.voice, script.language)
        if script.silent:
            return Speech(utterance, script, Encoding((), speaker.id), silent_plan(utterance, script), None)
        encoding = Encoding(script.ids, speaker.id)
        with _engine_errors(utterance):
            self.model.encode_more(encoding)
        plan = self._plan(utterance, script, encoding)
        speech = Speech(utterance, script, encoding, plan, self.model.start(plan.unheard))
        fitted = any(speed != 1 for speed in script.speed)  # its durations depend on their sum
        if speech.partial and (fitted or plan.sure < speech.opening):
            self.complete(speech)
        return speech

    def complete(self, speech: Speech) -> None:
        """Reads a ``partial`` utterance to its end. When it raises, it can be tried again."""
        while not speech.encoding.done:
            with _engine_errors(speech.utterance):
                self.model.encode_more(speech.encoding)
        speech.plan = self._plan(speech.utterance, speech.script, speech.encoding, speech.plan.shaper.fed)

    def _plan(self, utterance: Utterance, script: Script, encoding: Encoding, fed: int = 0) -> Plan:
        config = self.config
        edges = Edges(config.open_frames, config.lead_frames, config.close_frames)
        quiet = frozenset(self.voice.symbols[symbol] for symbol in (*PAUSE_SYMBOLS, " ") if symbol in self.voice.symbols)
        if not np.isfinite(encoding.log_durations).all():
            raise EngineError("the voice gives durations that are no numbers: its weights are damaged or of another model")
        return plan_utterance(utterance, script, encoding.log_durations, edges, quiet, fed)

    def step(self, speech: Speech) -> AudioChunk:
        """The next packet. The one with ``last`` set closes the utterance."""
        if speech.frames:
            if speech.partial and speech.packets:
                self.complete(speech)
            return self.step_together([speech], self.wanted_frames(speech))[0]
        assert not speech.done
        speech.done = True
        return self._chunk(speech, speech.plan.shaper.feed(np.zeros(0, np.float32)))

    def wanted_frames(self, speech: Speech, *, larger: bool = False) -> int:
        """How many frames the next packet of an utterance should have; ``larger``: twice as many as ``chunk_frames`` says."""
        sizes = self.config.chunk_frames
        plan = speech.plan
        size = sizes[min(speech.packets, len(sizes) - 1) if speech.sounds else 0] * (2 if larger and not speech.partial else 1)
        size += 0 if speech.packets else plan.unheard
        put_out = speech.frame - FLUSH_FRAMES
        if put_out >= plan.tail:
            return min(size, TAIL_STEP_FRAMES, speech.frames - put_out)
        edge = bisect_right(plan.closes, put_out)
        rest = (plan.closes[edge] if edge < len(plan.closes) else min(plan.tail, speech.frames)) - put_out
        most = size * 3 // 2 if speech.packets else size
        return rest if rest <= min(most, WINDOW) else min(size, WINDOW)

    def step_together(self, speeches: Sequence[Speech], count: int) -> list[AudioChunk]:
        """The next ``count`` frames (1 to 64) of several utterances in one batch; one packet each, in order.

        When it raises, no utterance has moved on, so each can be tried alone.
        """
        assert all(speech.frames and not speech.done for speech in speeches)
        for speech in speeches:
            if speech.partial and speech.frame + count > speech.opening:
                self.complete(speech)
        rows = len(speeches)
        x = np.zeros((rows, count, speeches[0].encoding.encoded.shape[1] + 10), np.float32)
        f0 = np.zeros((rows, MELS_PER_FRAME * count), np.float32)
        noise = np.empty((rows, FRAME_SAMPLES * count), np.float32)
        for i, speech in enumerate(speeches):
            self._fill_input(speech, x[i], f0[i], noise[i])
        with _engine_errors(speeches[0].utterance):
            lengths = [speech.frames for speech in speeches]
            samples = self.model.packet([speech.row for speech in speeches], x, f0, noise, lengths)
        return [self._finish_step(speech, count, samples[i].copy()) for i, speech in enumerate(speeches)]

    def _fill_input(self, speech: Speech, x: Floats, f0: Floats, noise: Floats) -> None:
        """What the models read for the next frames: fills ``x`` [frames, channels + 10] and ``f0``, both zeros, and ``noise``.

        Beyond the end they stay zeros.
        """
        first, stop = speech.frame, min(speech.frame + len(x), speech.frames)
        self._look_ahead(speech, stop)
        if first < stop:
            have = stop - first
            speech.plan.alignment.expand(speech.encoding.encoded, first, stop, out=x[:have, :-6])
            x[:have, -6:] = speech.told[first:stop]
            f0[: MELS_PER_FRAME * have] = speech.f0[MELS_PER_FRAME * first : MELS_PER_FRAME * stop]
        # the model takes the noise of one decoder frame back
        table = self.noise
        start = (first - 1) * FRAME_SAMPLES % len(table)
        part = min(len(noise), len(table) - start)
        noise[:part], noise[part:] = table[start : start + part], table[: len(noise) - part]

    def _finish_step(self, speech: Speech, count: int, samples: Samples) -> AudioChunk:
        low = max(0, FLUSH_FRAMES + speech.plan.unheard - speech.frame) * FRAME_SAMPLES  # before the first sample
        high = (speech.frames + FLUSH_FRAMES - speech.frame) * FRAME_SAMPLES  # behind the last
        speech.frame += count
        speech.packets += 1
        speech.first_frame_s = speech.first_frame_s or time.monotonic()
        speech.sounds = speech.sounds or bool(np.abs(samples[low:high]).max(initial=0.0) > AUDIBLE)
        parts = speech.plan.shaper.feed(samples[low:high])
        speech.done = speech.plan.shaper.done
        return self._chunk(speech, parts)

    @staticmethod
    def _chunk(speech: Speech, parts: list[Samples]) -> AudioChunk:
        samples = parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.float32), *parts])
        start = speech.put_out
        speech.put_out += len(samples)
        words = tuple(word for word in speech.plan.words if start <= word.start_sample < speech.put_out)
        made_s = time.monotonic()
        return AudioChunk(samples, FORMAT, speech.utterance, start, words, speech.done, speech.first_frame_s, made_s)

    def _look_ahead(self, speech: Speech, stop: int) -> None:
        """Makes prosody up to frame ``stop`` at least, in blocks whose edges do not depend on the packets.

        So F0 is the same to the last bit for any packets: a difference of one part in a million would add up in the phase.
        """
        while len(speech.told) < stop:
            made = len(speech.told)
            ahead = self.config.prosody_ahead_frames if made else speech.opening
            end = min(speech.frames, made + ahead)
            low, high = max(0, made - PROSODY_REACH_FRAMES), min(speech.frames, end + PROSODY_REACH_FRAMES)
            expanded = speech.plan.alignment.expand(speech.encoding.encoded, low, high)
            with _engine_errors(speech.utterance):
                raw = self.model.prosody(expanded)[made - low : end - low]
            semitones = speech.plan.semitones
            told, f0 = condition_prosody(raw, 0.0 if semitones is None else semitones[made:end])
            speech.told = np.concatenate((speech.told, told))
            speech.f0 = np.concatenate((speech.f0, f0))


@contextmanager
def _engine_errors(utterance: Utterance) -> Iterator[None]:
    """Turns whatever a model raises into an EngineError that names the text."""
    try:
        yield
    except SaylineError:
        raise
    except Exception as error:
        raise EngineError(f"synthesis failed in {utterance.text[:60]!r}: {error}") from error


def _check(utterance: Utterance) -> None:
    """Raises InputError for what cannot be spoken."""
    if not isinstance(utterance.text, str):
        raise InputError(f"the text of an utterance is a str, not {type(utterance.text).__name__}")
    if utterance.language not in (None, *get_args(Language)):
        raise InputError(f"language must be one of {', '.join(get_args(Language))} or None, not {utterance.language!r}")
    for name, field_name, value in (
        ("speed", "speed", utterance.speed),
        ("volume", "volume", utterance.volume),
        ("pitch", "pitch", utterance.pitch),
        ("break_before_ms", "break", utterance.break_before_ms),
        ("break_after_ms", "break", utterance.break_after_ms),
        *((f"the tag {mark.tag.name}", mark.tag.name, mark.tag.value) for mark in utterance.marks),
    ):
        if field_name not in RANGES:
            raise InputError(f"there is no tag {field_name!r}: use {', '.join(RANGES)}")
        low, high = RANGES[field_name]
        try:
            fits = low <= value <= high
        except TypeError:
            fits = False
        if not fits:
            raise InputError(f"{name} must lie between {low:g} and {high:g}, got {value!r}")


def _is_whole(value: object, least: int, most: float = math.inf) -> bool:
    return isinstance(value, int) and least <= value <= most
