"""Pipecat's and LiveKit's own TTS classes, pointed at our server by nothing but a base URL, say what they were given."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import numpy as np
import pytest

from tests.edits import edits
from tests.recogniser import english_words, require, transcribe
from tests.voice_agent.server.serving import serving
from voice_agent.server.app import create_app
from voice_agent.server.config import ServerConfig

TEXT = "Your parcel left the warehouse this morning. It should be with you on Friday."
RUNNERS = Path(__file__).parents[2] / "peers"
FOLDER = os.environ.get("SAYLINE_FRAMEWORKS", "")

pytestmark = pytest.mark.peer


def python_of(framework: str) -> Path:
    """The interpreter of a framework's environment; skips where there is none."""
    python = Path(FOLDER) / framework / "bin" / "python"
    if not FOLDER or not python.exists():
        pytest.skip(f"no environment of {framework}: run tests/peers/setup.sh DIR and set SAYLINE_FRAMEWORKS=DIR")
    require()
    return python


@pytest.mark.parametrize("kind", ["openai", "deepgram", "deepgram_http"])
@pytest.mark.parametrize("framework", ["pipecat", "livekit"])
async def test_a_framework_speaks_through_our_server(framework: str, kind: str, tmp_path: Path) -> None:
    python = python_of(framework)
    out = tmp_path / "out.pcm"
    async with serving(create_app(ServerConfig())) as address:
        runner = await asyncio.create_subprocess_exec(
            python, RUNNERS / f"run_{framework}.py", kind, address, out, TEXT,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        printed, complaints = await asyncio.wait_for(runner.communicate(), 120)
    assert runner.returncode == 0, complaints.decode()
    told = json.loads(printed)
    assert told["errors"] == []
    if framework == "pipecat":
        assert told["before"] > 0  # the answer that was interrupted had begun
        assert told["stopped"] == 1
    samples = np.frombuffer(out.read_bytes(), "<i2").astype(np.float32) / (1 << 15)
    assert 3 < len(samples) / 24_000 < 8
    heard = english_words(transcribe(samples, "en"))
    assert edits(heard, english_words(TEXT)) <= 1, heard
