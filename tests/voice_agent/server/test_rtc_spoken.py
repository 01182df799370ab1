"""A spoken conversation over WebRTC with a real recogniser: asked, interrupted and answered again by voice alone."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests import recogniser
from tests.recogniser import english_words
from tests.voice_agent.scripted import ScriptedModel
from tests.voice_agent.server.humming import HummingEngine
from tests.voice_agent.server.rtc_client import Microphone, RtcClient
from tests.voice_agent.server.serving import serving, until
from voice_agent.server.app import create_app
from voice_agent.server.config import ServerConfig

pytestmark = [pytest.mark.peer, pytest.mark.slow]

LONG = ["This is a long answer, which goes on for a while. ", "It has many words that nobody needs. "] * 10


def speech(text: str, folder: Path) -> np.ndarray:
    """The text said by another voice, 48 kHz."""
    if shutil.which("flite") is None or shutil.which("sox") is None:
        pytest.skip("no flite or sox on this machine, which speak for the user")
    raw, path = folder / "raw.wav", folder / "said.wav"
    subprocess.run(["flite", "-voice", "slt", "-t", text, "-o", raw], check=True)
    subprocess.run(["sox", raw, "-r", "48000", "-c", "1", path], check=True)
    samples, _ = soundfile.read(path, dtype="float32")
    return samples


async def test_a_question_an_interruption_and_another_question(tmp_path):
    recogniser.require()
    model = ScriptedModel(LONG)
    app = create_app(ServerConfig(), engine=HummingEngine(cost=0.01, level=0.3), model=model)
    first, second = "Tell me a long story.", "Stop that please, I have another question."
    async with serving(app) as address:
        await app.state.service.recognizer.ready()
        microphone = Microphone()
        async with RtcClient(f"http://{address}", microphone=microphone, language="en") as client:
            assert (await client.until("Hello"))["microphone"]
            microphone.say(speech(first, tmp_path))
            final = await client.until("Transcribed", limit_s=60)
            while not final["final"]:
                final = await client.until("Transcribed", limit_s=60)
            assert english_words(final["text"]) == english_words(first)
            for _ in range(4):
                await client.until("Caption", limit_s=60)
            microphone.say(speech(second, tmp_path))
            await client.until("Ducked", "Held", limit_s=60)
            interruption = await client.until("Interruption", limit_s=60)
            assert "".join(LONG).startswith(interruption["heard"])
            while not (final := await client.until("Transcribed", limit_s=60))["final"]:
                pass
            assert "question" in final["text"]
            await until(lambda: len(model.asked) == 2, limit_s=60)
            kept = [message["content"] for message in model.asked[1] if message["role"] == "assistant"]
            assert kept == [interruption["heard"]]
            client.send("interrupt")
