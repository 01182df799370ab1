"""Brings PortAudio in, through the package sounddevice, for those who play and those who listen."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import sys
from typing import Any

from voice_agent.errors import DeviceError

__all__ = ["import_sounddevice"]


def import_sounddevice(purpose: str, instead: str) -> Any:
    """The sounddevice module; DeviceError says what to install where it or PortAudio is missing.

    ``purpose``: what needs it ("playing"); ``instead``: what to do without ("or write to a file …").
    """
    try:
        import sounddevice
    except ImportError as error:
        raise DeviceError(f"{purpose} needs the package sounddevice: pip install sounddevice, {instead}") from error
    except OSError as error:
        raise DeviceError(
            f"{purpose} needs the PortAudio library: install it (Debian, Ubuntu: apt install libportaudio2; "
            f"macOS: brew install portaudio), {instead}"
        ) from error
    _quieten_alsa()
    return sounddevice


@functools.cache
def _quieten_alsa() -> Any:
    """Keep ALSA from printing each failed attempt; what matters comes as an exception. Returns what must live on."""
    if not sys.platform.startswith("linux"):
        return None
    handler = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p)(
        lambda *_: None
    )
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libasound.so.2").snd_lib_error_set_handler(handler)
    return handler
