"""Replaced files come into use within 200 ms, bad ones never; nobody who speaks is disturbed."""

from __future__ import annotations

import asyncio
import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from tts_engine.engine import Engine
from tts_engine.hot_swap import MISSING_POLLS, FileWatch, HotSwap
from tts_engine.models.eager import EagerModel
from tts_engine.scheduler import Scheduler
from tts_engine.text.frontend import FrontEnd
from tts_engine.types import Utterance
from tts_engine.weights import EMBEDDED_VOICE, VoiceManifest, seal


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").write_text("2")
    return tmp_path


def polls(watch: FileWatch, count: int = 4) -> int:
    return sum(watch.poll() for _ in range(count))


# ---- the watch, poll by poll -----------------------------------------------------------------------------------------


def test_a_change_is_told_once_when_it_has_come_to_rest(folder: Path) -> None:
    watch = FileWatch([folder / "a", folder / "b"])
    assert polls(watch) == 0
    (folder / "a").write_text("other")
    assert [watch.poll() for _ in range(4)] == [False, True, False, False]


def test_a_file_that_grows_is_waited_for(folder: Path) -> None:
    watch = FileWatch([folder / "a"])
    for _ in range(5):
        with (folder / "a").open("a") as file:
            file.write("more")
        assert not watch.poll()
    assert watch.poll()


def test_moved_away_and_copied_anew(folder: Path) -> None:
    watch = FileWatch([folder / "a", folder / "b"])
    (folder / "a").rename(folder / "a.bak")
    assert polls(watch) == 0
    (folder / "a").write_text("1")
    assert polls(watch) == 1


def test_moved_away_and_back_is_no_change(folder: Path) -> None:
    watch = FileWatch([folder / "a"])
    (folder / "a").rename(folder / "a.bak")
    assert polls(watch) == 0
    (folder / "a.bak").rename(folder / "a")
    assert polls(watch) == 0


def test_replaced_by_renaming(folder: Path) -> None:
    watch = FileWatch([folder / "a"])
    (folder / "new").write_text("3")
    (folder / "new").rename(folder / "a")
    assert polls(watch) == 1


def test_a_file_that_stays_away_is_warned_of_once(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    watch = FileWatch([folder / "a", folder / "b"])
    (folder / "a").unlink()
    assert polls(watch, 3 * MISSING_POLLS) == 0
    assert [record.getMessage() for record in caplog.records] == [
        f"{folder / 'a'} is gone; what was loaded from it stays in use"
    ]


# ---- the thread ------------------------------------------------------------------------------------------------------


def until(done: Callable[[], bool], limit_s: float = 5.0) -> float:
    """Seconds until it is so."""
    started = time.monotonic()
    while not done():
        assert time.monotonic() - started < limit_s
        time.sleep(0.002)
    return time.monotonic() - started


def test_what_is_loaded_is_handed_over_and_a_failure_is_not(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    used: list[str] = []

    def load() -> str:
        text = (folder / "a").read_text()
        if text == "bad":
            raise ValueError("does not match its hash")
        return text

    swap = HotSwap([folder / "a"], load, used.append)
    swap.start()
    try:
        (folder / "a").write_text("good")
        assert until(lambda: used == ["good"]) < 0.2
        (folder / "a").write_text("bad")
        until(lambda: bool(caplog.records))
        (folder / "a").write_text("better")
        until(lambda: used == ["good", "better"])
    finally:
        swap.stop()
    assert "refused, the old ones stay in use: does not match its hash" in caplog.records[0].getMessage()
    assert not [thread for thread in threading.enumerate() if thread.name == "sayline-hot-swap"]


# ---- the scheduler ---------------------------------------------------------------------------------------------------


class Voice:
    """A copy of the embedded voice, and how it is altered."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.loads = 0

    def load(self) -> Engine:
        voice = VoiceManifest.load(self.folder)
        engine = Engine(voice, EagerModel.load(voice), FrontEnd(voice.symbols))
        self.loads += 1
        return engine

    def alter(self) -> None:
        """Other weights, in the way of an update: the old file moved away, the new one copied, then sealed."""
        path, new = self.folder / "acoustic.safetensors", self.folder / "new"
        with safe_open(path, framework="np") as file:
            metadata = file.metadata()
        tensors = load_file(path)
        tensors["duro.bias"] += np.asarray(0.2, tensors["duro.bias"].dtype)  # everything lasts longer
        save_file(tensors, new, metadata)
        path.rename(path.with_suffix(".bak"))
        shutil.copy(new, path)
        seal(self.folder)


@pytest.fixture
def voice(tmp_path: Path) -> Voice:
    shutil.copytree(EMBEDDED_VOICE, tmp_path / "voice")
    return Voice(tmp_path / "voice")


@pytest.fixture
def scheduler(voice: Voice) -> Iterator[Scheduler]:
    scheduler = Scheduler(voice.load)
    yield scheduler
    scheduler.close()


async def say(scheduler: Scheduler, text: str) -> np.ndarray:
    session = scheduler.open()
    await session.put(Utterance(text))
    session.end()
    return np.concatenate([chunk.samples async for chunk in session])


async def test_a_replaced_voice_speaks_the_next_sentence_and_the_old_one_ends_its_own(
    scheduler: Scheduler, voice: Voice, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    await scheduler.ready()
    text = "This is a sentence that was begun before the files were replaced, and goes on for a while."
    before, short = await say(scheduler, text), await say(scheduler, "Hello there.")
    under_way = scheduler.open()
    await under_way.put(Utterance(text))
    under_way.end()
    parts = [(await anext(under_way)).samples]
    voice.alter()
    await asyncio.to_thread(until, lambda: "new files are in use" in caplog.text)
    parts += [chunk.samples async for chunk in under_way]
    np.testing.assert_allclose(np.concatenate(parts), before, atol=1e-4)
    assert len(await say(scheduler, "Hello there.")) > len(short)


async def test_an_altered_file_that_is_not_sealed_is_refused(
    scheduler: Scheduler, voice: Voice, caplog: pytest.LogCaptureFixture
) -> None:
    await scheduler.ready()
    before = await say(scheduler, "Hello there.")
    path = voice.folder / "vocoder.safetensors"
    path.rename(path.with_suffix(".bak"))
    path.write_bytes(path.with_suffix(".bak").read_bytes()[:-1000])
    await asyncio.to_thread(until, lambda: "refused" in caplog.text)
    assert "truncated" in caplog.text
    np.testing.assert_allclose(await say(scheduler, "Hello there."), before, atol=1e-4)
    assert voice.loads == 1
