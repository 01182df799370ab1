"""WebRTC's echo canceller, as the livekit wheel carries it, behind the contract of an echo guard."""

from __future__ import annotations

from typing import Any

import numpy as np

from tts_engine.types import Samples
from voice_agent.audio import pcm_to_samples, samples_to_pcm
from voice_agent.ears.canceller import FALL
from voice_agent.ears.config import RATE
from voice_agent.ears.features import BANDS, Bands, in_bands
from voice_agent.errors import MissingExtraError

__all__ = ["WebRtcCanceller"]

_SUPPRESSED = 0.01  # what it leaves of the playout's power, before more is known


class WebRtcCanceller:
    """AEC3 with its suppressor: linear cancelling, then what is left is turned down, with some of the user's speech."""

    def __init__(self) -> None:
        try:
            from livekit.rtc import AudioFrame
            from livekit.rtc.apm import AudioProcessingModule
        except ImportError as error:
            raise MissingExtraError(f'echo="aec" needs the extra aec: pip install "sayline[aec]" ({error})') from error
        self._frame: Any = AudioFrame
        self._module: Any = AudioProcessingModule
        self.reset()

    def reset(self) -> None:
        self._processor = self._module(echo_cancellation=True, high_pass_filter=True)
        self._left: Bands = np.zeros(BANDS)

    def feed(self, microphone: Samples, played: Samples) -> tuple[Samples, Bands]:
        self._processor.process_reverse_stream(self._wrap(played))
        frame = self._wrap(microphone)
        self._processor.process_stream(frame)
        spectrum = np.abs(np.fft.rfft(played)) ** 2
        expected = in_bands(spectrum, len(played)) * (2.0 * _SUPPRESSED / len(played) ** 2)
        self._left = np.maximum(expected, self._left * FALL)
        return pcm_to_samples(bytes(frame._data)), self._left

    def _wrap(self, samples: Samples) -> Any:
        return self._frame(bytearray(samples_to_pcm(samples)), RATE, 1, len(samples))
