"""Everything that can go wrong, as one tree.

    SaylineError
    ├── InputError            what was handed in cannot be used: text, voice name, option, file
    │   ├── VoiceError        unknown voice, or a voice that does not speak the language
    │   └── ConfigError       a YAML or environment setting: names the file and the key
    ├── WeightsError          a weight file is missing, truncated or altered
    ├── EngineError           synthesis failed inside
    ├── BusyError             all places are taken: says when to try again; nothing is lost
    ├── SourceError           the LLM stream failed or has an unknown shape
    ├── SinkError             a place to play to failed
    │   └── DeviceError       no sound device, device lost, PortAudio missing
    ├── RecognizerError       speech recognition failed: the conversation can go on
    └── MissingExtraError     an optional package is not installed: names the extra

Each message says what to do next; ``retryable`` says whether the same call may succeed later.
"""

from __future__ import annotations

from tts_engine.errors import BusyError, EngineError, InputError, SaylineError, VoiceError, WeightsError

__all__ = [
    "BusyError",
    "ConfigError",
    "DeviceError",
    "EngineError",
    "InputError",
    "MissingExtraError",
    "RecognizerError",
    "SaylineError",
    "SinkError",
    "SourceError",
    "VoiceError",
    "WeightsError",
    "clipped",
]


class ConfigError(InputError):
    """A setting that cannot be used; the message names the file, the key and the allowed values."""


class SourceError(SaylineError):
    """The LLM stream failed, or its chunks have a shape that is not known."""


class SinkError(SaylineError):
    """A sink could not take the audio."""


class DeviceError(SinkError):
    """There is no usable sound device, or it went away."""


class RecognizerError(SaylineError):
    """Speech could not be written down; the next attempt may succeed."""


class MissingExtraError(SaylineError):
    """An optional package is needed; the message names the command that installs it."""


def clipped(text: str, most_chars: int = 60) -> str:
    """A text as messages show it: cut where it is long."""
    return text if len(text) <= most_chars else f"{text[: most_chars - 3]}..."
