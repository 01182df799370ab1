"""What a peer of WebRTC and ``/rtc`` tell one another over HTTP; the settings may also come over the data channel."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Answer", "Offer", "Settings"]


class Settings(BaseModel):
    """How the answers are spoken."""

    model_config = ConfigDict(extra="forbid")
    voice: str = Field(default="auto", min_length=1, max_length=200, description="Any of /v1/audio/voices.")
    speed: float = Field(default=1.0, ge=0.5, le=2.0, allow_inf_nan=False)
    language: Literal["en", "zh"] | None = Field(default=None, description="Of both sides; detected when left out.")


class Offer(BaseModel):
    """What ``POST /rtc/offer`` takes: a session description of WebRTC, and settings."""

    model_config = ConfigDict(extra="forbid")
    type: Literal["offer"]
    sdp: str = Field(min_length=1, description="With all candidates in it: there is no trickling.")
    settings: Settings = Field(default_factory=Settings)


class Answer(BaseModel):
    """The server's session description. ``DELETE /rtc/{id}`` ends the session."""

    type: Literal["answer"] = "answer"
    sdp: str
    id: str
