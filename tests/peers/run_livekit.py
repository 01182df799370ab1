"""Speaks with a TTS class of LiveKit's that points at our server; run by tests/voice_agent/server/test_peers.py.

    python run_livekit.py {openai,deepgram,deepgram_http} ADDRESS OUT.pcm TEXT

Writes the audio of all frames, 24 kHz 16 bits, and prints one JSON line.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from pathlib import Path

import aiohttp
from livekit.agents.utils import http_context
from livekit.plugins import deepgram, openai

KEY = "not needed"


async def speak(kind: str, address: str, text: str) -> tuple[bytes, dict[str, object]]:
    """The audio, and what there is to tell of it."""
    async with aiohttp.ClientSession() as session:
        if kind == "openai":
            service = openai.TTS(api_key=KEY, base_url=f"http://{address}/v1")
        else:
            scheme = "ws" if kind == "deepgram" else "http"
            service = deepgram.TTS(api_key=KEY, base_url=f"{scheme}://{address}/v1/speak", http_session=session)
        began_s = time.monotonic()
        frames = []
        if kind == "deepgram":
            for part in re.split(r"(?<=[.!?]) ", text):  # each an answer of its own, over one connection
                async with service.stream() as stream:
                    for token in re.findall(r"\s*\S{1,4}", part):
                        stream.push_text(token)
                    stream.end_input()
                    frames += [event.frame async for event in stream]
        else:
            async with service.synthesize(text) as stream:
                frames = [event.frame async for event in stream]
        seconds = time.monotonic() - began_s
        await service.aclose()
    assert all((frame.sample_rate, frame.num_channels) == (24_000, 1) for frame in frames)
    audio = b"".join(bytes(frame.data) for frame in frames)
    return audio, {"seconds": round(seconds, 2), "frames": len(frames), "errors": []}


async def in_context(kind: str, address: str, text: str) -> tuple[bytes, dict[str, object]]:
    """LiveKit's classes take their connections from a context."""
    async with http_context.open():
        return await speak(kind, address, text)


def main(kind: str, address: str, out: str, text: str) -> None:
    audio, told = asyncio.run(in_context(kind, address, text))
    Path(out).write_bytes(audio)
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
