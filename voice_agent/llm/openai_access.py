"""Opens the client of an OpenAI-compatible server: for a model, for speech, in or out."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from voice_agent.errors import ConfigError
from voice_agent.llm.failures import redacted

if TYPE_CHECKING:
    from openai import AsyncOpenAI

__all__ = ["open_client"]

_OPENAI_URL = "https://api.openai.com/v1"
_CONNECT_S = 5.0
_NO_KEY = "unused"  # local servers need none, but the client insists on one


def open_client(
    base_url: str | None, api_key: str | None, *, timeout_s: float, retries: int, instead: str = ""
) -> tuple[AsyncOpenAI, str]:
    """The client, and its address as it may be shown.

    ``base_url`` and ``api_key`` default to OPENAI_BASE_URL and OPENAI_API_KEY; only OpenAI's own address needs a key.
    ``timeout_s`` bounds each wait for the next bytes. Raises ConfigError where they cannot be used; ``instead``: what to do
    without a key, beside setting one or the address of another server.
    """
    import openai  # here: importing it takes a second, and everything else works without it

    url = (base_url or os.environ.get("OPENAI_BASE_URL") or _OPENAI_URL).strip()
    key = api_key or os.environ.get("OPENAI_API_KEY") or ""
    if not url.startswith(("http://", "https://")):
        raise ConfigError(
            f"{redacted(url)!r} is no address of a server: it starts with http:// or https://, and usually ends in "
            "/v1 (OPENAI_BASE_URL)"
        )
    if not key and url.rstrip("/") == _OPENAI_URL:
        raise ConfigError(
            "OPENAI_API_KEY is not set: set it to your key, or set OPENAI_BASE_URL to a server of your own, such as "
            f"http://localhost:11434/v1{instead}"
        )
    client = openai.AsyncOpenAI(
        base_url=url,
        api_key=key or _NO_KEY,
        timeout=openai.Timeout(timeout_s, connect=min(_CONNECT_S, timeout_s)),
        max_retries=retries,
    )
    return client, redacted(url)
