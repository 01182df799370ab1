"""Speaks with a TTS service of Pipecat's that points at our server; run by tests/voice_agent/server/test_peers.py.

    python run_pipecat.py {openai,deepgram,deepgram_http} ADDRESS OUT.pcm TEXT

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
from loguru import logger
from pipecat.frames.frames import (
    ErrorFrame,
    InterruptionFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    TTSAudioRawFrame,
    TTSStoppedFrame,
)
from pipecat.pipeline.worker import PipelineParams
from pipecat.services.deepgram.tts import DeepgramHttpTTSService, DeepgramTTSService
from pipecat.services.openai.tts import OpenAITTSService
from pipecat.tests.utils import SleepFrame, run_test

KEY = "not needed"


def answer(text: str) -> list:
    """An LLM's answer in tokens."""
    tokens = [LLMTextFrame(token) for token in re.findall(r"\s*\S{1,4}", text)]
    return [LLMFullResponseStartFrame(), *tokens, LLMFullResponseEndFrame()]


async def speak(kind: str, address: str, text: str) -> tuple[bytes, dict[str, object]]:
    """The audio, and what there is to tell of it."""
    logger.remove()
    logger.add(sys.stderr, level="WARNING")
    async with aiohttp.ClientSession() as session:
        if kind == "openai":
            service = OpenAITTSService(api_key=KEY, base_url=f"http://{address}/v1")
        elif kind == "deepgram":
            service = DeepgramTTSService(api_key=KEY, base_url=f"ws://{address}")
        else:
            service = DeepgramHttpTTSService(api_key=KEY, base_url=f"http://{address}", aiohttp_session=session)
        # A first answer is interrupted, as by a user who speaks: nothing of it may be heard in the second.
        interrupted = [
            *answer("This must not be heard. " * 20),
            SleepFrame(sleep=1.0),
            InterruptionFrame(),
            SleepFrame(sleep=0.5),
        ]
        began_s = time.monotonic()
        down, up = await run_test(
            service,
            frames_to_send=[*interrupted, *answer(text)],
            pipeline_params=PipelineParams(audio_out_sample_rate=24_000),
            start_timeout=10.0,
        )
    cut = next(i for i, frame in enumerate(down) if isinstance(frame, InterruptionFrame))
    before = [frame for frame in down[:cut] if isinstance(frame, TTSAudioRawFrame)]
    after = [frame for frame in down[cut:] if isinstance(frame, TTSAudioRawFrame)]
    assert all((frame.sample_rate, frame.num_channels) == (24_000, 1) for frame in after)
    told = {
        "seconds": round(time.monotonic() - began_s, 2),
        "before": len(before),
        "frames": len(after),
        "stopped": sum(isinstance(frame, TTSStoppedFrame) for frame in down[cut:]),
        "errors": [frame.error for frame in [*up, *down] if isinstance(frame, ErrorFrame)],
    }
    return b"".join(frame.audio for frame in after), told


def main(kind: str, address: str, out: str, text: str) -> None:
    audio, told = asyncio.run(speak(kind, address, text))
    Path(out).write_bytes(audio)
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
