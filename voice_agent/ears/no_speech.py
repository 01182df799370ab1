"""Tells words that were said from words that a recogniser makes up when nobody has spoken.

Recognisers of the Whisper family always write something: noise becomes "you" or a whole sentence, silence the credits of
a film. What they say about their own certainty separates the two (docs/dialogue.md has the figures), and some phrases are
never said to an assistant.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

import numpy as np

from tts_engine.types import Samples
from voice_agent.audio import samples_to_pcm
from voice_agent.ears.config import RATE

__all__ = ["Evidence", "doubt", "is_often_made_up", "voiced_s"]

LEAST_VOICED_S = 0.09
"""Audio with less of what may be speech is not worth a recogniser's time."""
_CERTAIN_NO_SPEECH = 0.6
_LIKELY_NO_SPEECH = 0.4
_LEAST_LOGPROB = -1.6  # of anything
_FAIR_LOGPROB = -1.2  # where no speech is likely
_SURE_LOGPROB = -0.7  # of a phrase that recognisers like to make up
_REPETITIVE = 2.4  # the threshold of Whisper's own decoding
_FRAME_S = 0.03
_BRACKETS = {"(": ")", "[": "]", "（": "）", "【": "】", "*": "*", "<": ">"}
_CREDITS = re.compile(
    r"amara\.org|subtitles? (?:by|were)|captions? by|transcri(?:bed|ption) by|translated by|thanks?(?: you)? for watching"
    r"|like and subscribe|subscribe to (?:my|our|the) channel|see you in the next video|^©"
    r"|字幕\s*(?:by|由|志[愿願]者|[组組]|提供|制作|製作)|[点點][赞贊].*[订訂][阅閱]|请不吝|請不吝|明[镜鏡][与與][点點][点點]"
    r"|[感谢謝]{2}(?:大家|您|你们|你們)?的?[观觀收][看]|(?:作[词詞]|作曲|[词詞]曲|编曲|編曲)\s*[:：]?\s*李宗盛",
    re.IGNORECASE,
)
_MADE_UP = re.compile(
    r"you|thank you(?: very much| so much)?|thanks|bye|bye[ -]?bye|the end|oh|ah|so|hmm+|i|the|okay"
    r"|谢谢(?:大家)?|謝謝(?:大家)?|你|我|嗯|啊|好",
    re.IGNORECASE,
)
_MARKS = re.compile(r"[^\w\s'’-]+")


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a recogniser says about the words it gave; None where it does not tell.

    ``no_speech``: the probability that there is none. ``logprob``: the mean log probability of a token.
    """

    no_speech: float | None = None
    logprob: float | None = None


def doubt(text: str, evidence: Evidence) -> str:
    """Why ``text`` was probably not said; empty where it may be believed.

    The rules follow those of Whisper (Radford et al., "Robust speech recognition via large-scale weak supervision", 2022,
    section 4.5), stricter where the text is a favourite of the model.
    """
    said = text.strip()
    bare = _MARKS.sub("", said).strip()
    if not bare:
        return "no words" if not said or "♪" not in said else "music"
    if said[0] in _BRACKETS and said.endswith(_BRACKETS[said[0]]):
        return "a description of a sound"
    if _CREDITS.search(said):
        return "the credits of a film"
    if repetitive(said):
        return "it repeats itself"
    no_speech, logprob = evidence.no_speech, evidence.logprob
    if no_speech is not None and no_speech > _CERTAIN_NO_SPEECH:
        return f"no speech with a probability of {no_speech:.2f}"
    if logprob is None:
        return ""
    least = _LEAST_LOGPROB
    if no_speech is not None and no_speech > _LIKELY_NO_SPEECH:
        least = _SURE_LOGPROB if _MADE_UP.fullmatch(bare) else _FAIR_LOGPROB
    return f"too unsure (log probability {logprob:.2f})" if logprob < least else ""


def is_often_made_up(text: str) -> bool:
    """Whether the text is what recognisers like to write for a cough or a bit of noise ("Thank you.")."""
    return _MADE_UP.fullmatch(_MARKS.sub("", text).strip()) is not None


def repetitive(text: str) -> bool:
    """Whether the text says the same over and over, which compresses well."""
    data = text.encode()
    return len(data) > 40 and len(data) / len(zlib.compress(data)) > _REPETITIVE


def voiced_s(samples: Samples) -> float:
    """Seconds of 16 kHz mono audio that webrtcvad, at its strictest, takes for speech."""
    import webrtcvad

    detector = webrtcvad.Vad(3)
    step = round(RATE * _FRAME_S)
    data = samples_to_pcm(np.asarray(samples, dtype=np.float32))
    frames = (data[at : at + 2 * step] for at in range(0, len(data) - 2 * step + 1, 2 * step))
    return sum(_FRAME_S for frame in frames if detector.is_speech(frame, RATE))
