"""What the server is told: one frozen tree of settings, read from flags, environment and a YAML file, in that order."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from typing import Literal

from voice_agent.errors import ConfigError

__all__ = ["EngineSettings", "IceServer", "KeySettings", "Limits", "LlmSettings", "LogSettings", "RtcSettings", "ServerConfig"]


@dataclass(frozen=True, slots=True)
class KeySettings:
    """An API key and what its holder may do. ``name`` stands for it in logs and metrics.

    ``requests_per_minute`` and ``concurrent``: how often requests may begin and how many may be open, 0: no limit.
    """

    name: str
    key: str = field(repr=False)
    requests_per_minute: int = 600
    concurrent: int = 64


@dataclass(frozen=True, slots=True)
class IceServer:
    """A STUN or TURN server for WebRTC."""

    urls: tuple[str, ...]
    username: str = ""
    credential: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class Limits:
    """What one client may ask for.

    ``text_chars``: of one request, or that may wait in one live stream. ``body_bytes``, ``sdp_bytes``: of a request.
    ``message_bytes``: of one WebSocket message. ``body_s``, ``header_s``: how long a request may take to arrive.
    ``send_s``: how long a client may take nothing of what is sent. ``idle_s``: how long a live stream may be silent on
    both sides, ``session_s``: how long it may last. ``requests_per_minute``, ``concurrent``: of one address without key.
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
    requests_per_minute: int = 0
    concurrent: int = 0
    connections: int = 2000
    streams: int = 128


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The engine that all share, as in ``tts_engine.scheduler.SchedulerConfig``."""

    sessions: int = 64
    queued_sessions: int = 32
    ahead_s: float = 4.0
    workers: int | None = None
    memory_limit_mb: float | None = None


@dataclass(frozen=True, slots=True)
class LlmSettings:
    """The model that answers. ``kind`` "none": conversations are refused; "demo": scripted answers."""

    kind: Literal["openai", "demo", "none"] = "openai"
    model: str = "gpt-4o-mini"
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    system: str | None = None


@dataclass(frozen=True, slots=True)
class RtcSettings:
    """WebRTC: ICE servers that both sides use, and how many peers may be connected."""

    ice_servers: tuple[IceServer, ...] = ()
    sessions: int = 16


@dataclass(frozen=True, slots=True)
class LogSettings:
    """``text``: put what was said into the log, which is left out otherwise."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    text: bool = False


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """Everything about a server.

    ``keys``: who may call; none are needed on a loopback address. ``allow_anyone``: serve another address without keys.
    ``origins``: pages of these origins may call, beside the server's own; "*": all.
    ``drain_s``: how long speech in flight may go on after SIGTERM. ``voice``: where a request names none.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    keys: tuple[KeySettings, ...] = ()
    allow_anyone: bool = False
    origins: tuple[str, ...] = ()
    drain_s: float = 20.0
    voice: str = "auto"
    limits: Limits = field(default_factory=Limits)
    engine: EngineSettings = field(default_factory=EngineSettings)
    llm: LlmSettings = field(default_factory=LlmSettings)
    rtc: RtcSettings = field(default_factory=RtcSettings)
    logs: LogSettings = field(default_factory=LogSettings)

    def __post_init__(self) -> None:
        if not self.loopback and not self.keys and not self.allow_anyone:
            raise ConfigError(
                f"{self.host} can be reached from other machines and no API key is set: set keys, or allow_anyone "
                "(--allow-anyone) if everyone who reaches it may use it"
            )

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False
