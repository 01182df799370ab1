"""What the server is told: one frozen tree of settings with their bounds. ``settings`` reads it."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field, fields
from typing import Literal

from tts_engine.engine import EngineConfig
from tts_engine.models.choice import Compile, Precision
from voice_agent.errors import ConfigError, InputError

__all__ = [
    "EngineSettings",
    "IceServer",
    "KeySettings",
    "Limits",
    "LlmSettings",
    "LogSettings",
    "RecognizerSettings",
    "RtcSettings",
    "ServerConfig",
]

_LEAST_KEY_CHARS = 16
_UNLIMITED = ("requests_per_minute", "concurrent", "queued_sessions", "drain_s")
"""Numbers that may be 0."""


def _check_numbers(settings: object) -> None:
    for each in fields(settings):  # type: ignore[arg-type]
        value = getattr(settings, each.name)
        if not isinstance(value, int | float) or isinstance(value, bool):
            continue
        least = 0 if each.name in _UNLIMITED else 1e-3 if isinstance(value, float) else 1
        if not least <= value <= 1e12:
            raise ConfigError(f"{each.name} is {value!r}: use a number from {least:g} on")


@dataclass(frozen=True, slots=True)
class KeySettings:
    """An API key and what its holder may do. ``name`` stands for it in logs and metrics.

    ``requests_per_minute`` and ``concurrent``: how often requests may begin and how many may be open, 0: no limit.
    """

    name: str
    key: str = field(repr=False)
    requests_per_minute: int = 600
    concurrent: int = 64

    def __post_init__(self) -> None:
        _check_numbers(self)
        if not self.name.strip():
            raise ConfigError("a key needs a name, which stands for it in the log")
        if len(self.key) < _LEAST_KEY_CHARS or not self.key.isascii() or not self.key.isprintable() or " " in self.key:
            raise ConfigError(
                f"the key of {self.name!r} has to be {_LEAST_KEY_CHARS} or more ASCII characters without blanks: "
                "make one with `openssl rand -hex 32`"
            )


@dataclass(frozen=True, slots=True)
class IceServer:
    """A STUN or TURN server for WebRTC."""

    urls: tuple[str, ...]
    username: str = ""
    credential: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        for url in self.urls:
            if not url.startswith(("stun:", "stuns:", "turn:", "turns:")):
                raise ConfigError(f"{url!r} is no ICE server: it starts with stun:, turn: or turns:")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one client may ask for.

    ``text_chars``: of one request, or that may wait in one live stream. ``body_bytes``, ``sdp_bytes``: of a request.
    ``message_bytes``: of one WebSocket message. ``header_s``, ``body_s``: how long a request may take to arrive.
    ``send_s``: how long a client may take nothing of what is sent. ``idle_s``: how long a live stream may be silent on
    both sides, ``session_s``: how long it may last. ``wait_s``: how long a listener may wait for the engine before new
    speech is refused. ``requests_per_minute``, ``concurrent``: of one address without a key, 0: no limit.
    ``connections``: open sockets in all. ``streams``: that speak or listen at a time, in all.
    """

    text_chars: int = 20_000
    body_bytes: int = 262_144
    sdp_bytes: int = 65_536
    message_bytes: int = 65_536
    header_s: float = 10.0
    body_s: float = 15.0
    send_s: float = 30.0
    idle_s: float = 120.0
    session_s: float = 3600.0
    wait_s: float = 0.5
    requests_per_minute: int = 0
    concurrent: int = 0
    connections: int = 2000
    streams: int = 128

    def __post_init__(self) -> None:
        _check_numbers(self)


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The engine that all share, as in ``tts_engine.scheduler.SchedulerConfig`` and ``tts_engine.engine.EngineConfig``."""

    sessions: int = 64
    queued_sessions: int = 32
    ahead_s: float = 4.0
    workers: int | None = None
    memory_limit_mb: float | None = None
    precision: Precision = "auto"
    compile: Compile = "auto"
    chunk_frames: tuple[int, ...] = (6, 64)

    def __post_init__(self) -> None:
        _check_numbers(self)
        try:
            self.arithmetic()
        except InputError as error:
            raise ConfigError(str(error)) from None

    def arithmetic(self) -> EngineConfig:
        """How the engine computes."""
        return EngineConfig(self.chunk_frames, precision=self.precision, compile=self.compile)


@dataclass(frozen=True, slots=True)
class LlmSettings:
    """The model that answers. ``kind`` "none": conversations are refused; "demo": scripted answers."""

    kind: Literal["openai", "demo", "none"] = "openai"
    model: str = "gpt-4o-mini"
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    system: str | None = None


@dataclass(frozen=True, slots=True)
class RecognizerSettings:
    """What writes down the users of WebRTC. ``kind`` "whisper": on this machine, ``model`` is a folder (None: the installed
    package); "openai": a server of OpenAI's kind, ``model`` is a name; "none": users type.
    """

    kind: Literal["whisper", "openai", "none"] = "whisper"
    model: str | None = None
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class RtcSettings:
    """WebRTC: ICE servers that both sides use, and how many peers may be connected."""

    ice_servers: tuple[IceServer, ...] = ()
    sessions: int = 16

    def __post_init__(self) -> None:
        _check_numbers(self)


@dataclass(frozen=True, slots=True)
class LogSettings:
    """``text``: put what was said into the log, which is left out otherwise. ``traces``: spans by OpenTelemetry."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    text: bool = False
    traces: bool = False


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Everything about a server.

    ``keys``: who may call; none are needed on a loopback address. ``allow_anyone``: serve another address without keys.
    ``hosts``: names under which the server is reached, beside those of the loopback (where no key is needed, others are
    refused, or any web page could reach it by a name of its own). ``origins``: pages of these origins may call, beside the
    server's own; "*": all. ``drain_s``: how long speech in flight may go on after SIGTERM. ``voice``: where a request
    names none.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    keys: tuple[KeySettings, ...] = ()
    allow_anyone: bool = False
    hosts: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    drain_s: float = 20.0
    voice: str = "auto"
    limits: Limits = field(default_factory=Limits)
    engine: EngineSettings = field(default_factory=EngineSettings)
    llm: LlmSettings = field(default_factory=LlmSettings)
    rtc: RtcSettings = field(default_factory=RtcSettings)
    recognizer: RecognizerSettings = field(default_factory=RecognizerSettings)
    logs: LogSettings = field(default_factory=LogSettings)

    def __post_init__(self) -> None:
        if not 0 <= self.port <= 65_535:
            raise ConfigError(f"port is {self.port}: use 1 to 65535, or 0 for any free one")
        if not 0 <= self.drain_s <= 3600:
            raise ConfigError(f"drain_s is {self.drain_s}: use seconds from 0 to 3600")
        names = [key.name for key in self.keys]
        if len(set(names)) < len(names) or len({key.key for key in self.keys}) < len(names):
            raise ConfigError("keys: each needs a name and a key of its own")
        for origin in self.origins:
            if origin != "*" and (not origin.startswith(("http://", "https://")) or origin.count("/") != 2):
                raise ConfigError(f"origins: {origin!r} is no origin: write it as https://example.com, without a path")
        if not self.loopback and not self.keys and not self.allow_anyone:
            raise ConfigError(
                f"{self.host} can be reached from other machines and no API key is set: set keys (SAYLINE_API_KEY), or "
                "allow_anyone (--allow-anyone) if everyone who reaches it may use it"
            )

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        return is_loopback(self.host)

    @property
    def open_to_all(self) -> bool:
        """Whether other machines may call without a key."""
        return not self.loopback and not self.keys

    @property
    def open_to_pages(self) -> bool:
        """Whether nothing but the name in the address bar keeps a foreign web page out."""
        return not self.keys and not self.allow_anyone


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine's own."""
    name = host.strip("[]").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
