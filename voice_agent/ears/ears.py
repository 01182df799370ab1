"""The ears: audio in, decisions out. Driven by the samples alone, so a recording gives the same decisions each time."""

from __future__ import annotations

from collections import deque

import numpy as np

from tts_engine.types import AudioFormat, Samples
from voice_agent.audio import map_channels
from voice_agent.ears.background import LASTING, Background, prominence_db
from voice_agent.ears.config import RATE, EarsConfig
from voice_agent.ears.decisions import Decision
from voice_agent.ears.echo import AUDIBLE, EchoLeak, echo_guard
from voice_agent.ears.endpoint import EndOfTurn, EndOfTurnRules
from voice_agent.ears.features import SILENT_DB, WINDOW, decibels, in_bands, is_voiced, spectrum
from voice_agent.ears.recording import Recording
from voice_agent.ears.resampling import QuickResampler
from voice_agent.ears.turn_taking import HOP, HOP_S, BargeInClassifier, Hop, TurnTaking
from voice_agent.ears.vad import Vad, WebRtcVad
from voice_agent.errors import InputError

__all__ = ["Ears"]

_SPEECH, _STILL_SPEECH = 0.5, 0.35  # probabilities that begin speech, and that let it go on
_STILL_DB = 2.0  # speech that has begun goes on so much closer to the background
_STILL_SHARE = 0.6  # ... and with so much of the prominence, in dB, of its voiced sounds,
_STILL_BELOW_DB = 12.0  # ... or so much below them where nothing else was ever as loud
_RISE, _FALL = 0.1, 0.01  # how fast that prominence is followed
_MASKED = 0.1  # of the room's power: an echo of less is not heard in it
_ROUNDING = 2  # samples by which a playout may be longer or shorter than the microphone's stretch


class Ears:
    """Hears one microphone. ``feed`` takes audio as it comes and gives what was decided while it sounded.

    Any chunking gives the same decisions. Besides the audio kept of an unfinished turn (``EarsConfig.max_turn_s``) memory
    does not grow.
    """

    def __init__(
        self,
        config: EarsConfig | None = None,
        *,
        vad: Vad | None = None,
        end_of_turn: EndOfTurn | None = None,
        classifier: BargeInClassifier | None = None,
    ) -> None:
        """``vad``, ``end_of_turn``: instead of webrtcvad and the rules; ``classifier``: knows interruptions by their sound.

        Raises MissingExtraError where ``config.echo`` needs a package that is not installed.
        """
        self.config = config or EarsConfig()
        self._vad = vad or WebRtcVad(self.config.vad_mode, self.config.vad_frame_s)
        self._guard = echo_guard(self.config.echo)
        self._leak = EchoLeak()
        self._background = Background()
        self._recording = Recording()
        self._turns = TurnTaking(
            self.config, end_of_turn or EndOfTurnRules(self.config.end_of_turn), self._recording.between, classifier
        )
        self.reset()

    def reset(self) -> None:
        """Forget everything, the time included: the next sample is at 0 s."""
        self._resampler: QuickResampler | None = None
        self._format: AudioFormat | None = None
        self._received = 0  # frames of the microphone
        self._waiting = np.zeros(0, dtype=np.float32)
        self._played = np.zeros(0, dtype=np.float32)
        self._played_upto = 0
        self._window = np.zeros(WINDOW, dtype=np.float32)
        self._frame = np.zeros(0, dtype=np.float32)
        self._probability = 0.0
        self._hops = 0
        self._lasting: deque[float] = deque([0.0] * LASTING, LASTING)  # prominence of the last hops
        self._usual = 0.0  # prominence of the voiced sounds of the present speech
        self.level_db = SILENT_DB
        for part in (self._vad, self._guard, self._leak, self._background, self._recording, self._turns):
            part.reset()

    @property
    def heard_s(self) -> float:
        """Seconds of audio that decisions have been made about."""
        return self._hops * HOP_S

    @property
    def speaking(self) -> bool:
        """Whether the user is in a turn, or at something that may become one."""
        return self._turns.began is not None

    @property
    def barging(self) -> bool:
        """Whether the agent is ducked or held and it is open what follows: the moment for partial words."""
        return self._turns.barging

    @property
    def silence_s(self) -> float:
        """Seconds since the user's last sound within the present speech; 0 where there is none."""
        return self._turns.silence_s

    def speech(self) -> Samples:
        """What the user has said so far, 16 kHz mono with the pre-roll: for a recogniser that does not wait for the end."""
        began = self._turns.began
        if began is None:
            return np.zeros(0, dtype=np.float32)
        return self._recording.between(began - round(self.config.pre_roll_s / HOP_S), self._hops)

    def hear(self, words: str, upto_s: float | None = None) -> None:
        """The words of :meth:`speech`, from a recogniser, partial or final; they count from the next sample on.

        ``upto_s``: ``heard_s`` when the recogniser was given the samples, None for now. Words of a speech that is over
        are ignored.
        """
        self._turns.hear(words, upto_s)

    def feed(
        self, samples: Samples, format: AudioFormat, played: Samples | None = None, words: str | None = None
    ) -> list[Decision]:
        """Hears a stretch of the microphone.

        ``samples``: float32 in [-1, 1] or int16, [samples] or [samples, channels], at any rate; it must stay the same
        until ``reset``. ``played``: what sounded from the agent in the same stretch, float32 mono at 16 kHz; None is
        silence. ``words``: see :meth:`hear`. Raises InputError for audio that does not fit its format.
        """
        mono = self._mono(samples, format)
        self._take_played(played, self._received + len(mono), format.sample_rate)
        self._format = format
        self._received += len(mono)
        if words is not None:
            self.hear(words)
        if self._resampler is None:
            self._resampler = QuickResampler(format.sample_rate)
        return self._listen(self._resampler.feed(mono))

    def flush(self) -> list[Decision]:
        """The recording is over: the rest of it, and what is undecided. Afterwards ``reset`` to hear another."""
        rest = np.zeros(0, dtype=np.float32) if self._resampler is None else self._resampler.flush()
        return self._listen(rest) + self._turns.flush()

    def _mono(self, samples: Samples, format: AudioFormat) -> Samples:
        if self._format is not None and format != self._format:
            raise InputError(f"the microphone's format changed from {self._format} to {format}: call reset() in between")
        if samples.ndim not in (1, 2) or (samples.shape[1] if samples.ndim == 2 else 1) != format.channels:
            raise InputError(f"samples of shape {samples.shape} do not fit {format.channels} channels")
        scaled = samples / np.float32(1 << 15) if samples.dtype == np.int16 else np.asarray(samples, dtype=np.float32)
        return map_channels(np.nan_to_num(scaled, nan=0.0, posinf=1.0, neginf=-1.0), 1)

    def _take_played(self, played: Samples | None, frames: int, rate: int) -> None:
        """Lines the playout up with the first ``frames`` of the microphone; what is missing by rounding is silence."""
        upto = round(frames * RATE / rate)
        wanted = upto - self._played_upto
        given = np.zeros(wanted, dtype=np.float32) if played is None else np.asarray(played, dtype=np.float32)
        if given.ndim != 1 or abs(len(given) - wanted) > _ROUNDING:
            raise InputError(f"played has shape {given.shape}: give [{wanted}], 16 kHz mono, for this stretch of audio")
        self._played_upto = upto
        fitted = np.zeros(wanted, dtype=np.float32)
        fitted[: len(given)] = given[:wanted]
        self._played = np.concatenate([self._played, fitted])

    def _listen(self, samples: Samples) -> list[Decision]:
        self._waiting = np.concatenate([self._waiting, samples])
        decisions: list[Decision] = []
        hops = len(self._waiting) // HOP
        for first in range(0, hops * HOP, HOP):
            decisions += self._hop(self._waiting[first : first + HOP], self._played[first : first + HOP])
        self._waiting = self._waiting[hops * HOP :]
        self._played = self._played[hops * HOP :]
        return decisions

    def _hop(self, microphone: Samples, played: Samples) -> list[Decision]:
        if len(played) < HOP:  # what a resampler rounds up at the end of a recording
            played = np.pad(played, (0, HOP - len(played)))
        clean, left = self._guard.feed(microphone, played)
        self._hops += 1
        self._recording.feed(clean)
        self._window = np.concatenate([self._window[HOP:], clean])
        power = spectrum(self._window)
        levels = decibels(in_bands(power, 2 * WINDOW))
        left = left * self._leak.gain
        room = self._background.power
        prominence = float(prominence_db(levels, decibels(room + left)))
        self._lasting.append(prominence)
        stands_out = self._stands_out(prominence, self._judge(clean))
        voiced = stands_out and is_voiced(power)
        if voiced:
            follow = _RISE if prominence > self._usual else _FALL
            self._usual += (prominence - self._usual) * (follow if self._usual else 1.0)
        sounding = bool(np.abs(played).max() > AUDIBLE)
        decisions = self._turns.step(Hop(stands_out, voiced, sounding, self._background.restless))
        if not self.speaking:
            self._usual = 0.0
            if left.sum() > room.sum():
                self._leak.feed(prominence > self._background.needed_db)
        alone = not sounding or left.sum() < _MASKED * room.sum()
        self._background.feed(levels, self._turns.quiet and alone)
        self.level_db = float(decibels(power.sum()))
        self._recording.forget(self._turns.needed - round(self.config.pre_roll_s / HOP_S))
        return decisions

    def _stands_out(self, prominence: float, probability: float) -> bool:
        """Speech: the detector says so, and it stands out of the room and of the echo; or still does, once it began."""
        needed = self._background.needed_db
        if self.speaking:
            own = _STILL_SHARE * self._usual
            if not self._background.restless:
                own = min(own, self._usual - _STILL_BELOW_DB)
            return probability >= _STILL_SPEECH and prominence >= max(needed - _STILL_DB, own)
        if not self._background.known or probability < _SPEECH:
            return False
        if self._background.restless:
            return sum(self._lasting) >= LASTING * self._background.lasting_db
        return prominence >= needed

    def _judge(self, clean: Samples) -> float:
        """The detector's newest answer; its frames may be longer or shorter than a hop."""
        self._frame = np.concatenate([self._frame, clean])
        while len(self._frame) >= self._vad.frame_samples:
            frame, self._frame = np.split(self._frame, [self._vad.frame_samples])
            self._probability = self._vad.feed(frame)
        return self._probability
