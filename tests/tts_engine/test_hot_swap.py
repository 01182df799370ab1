"""Replaced files are seen at once and come into use, bad ones never; nobody who speaks is disturbed."""

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
from tts_engine.models.choice import is_slower
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


def test_a_link_that_is_turned_to_another_file(folder: Path) -> None:
    (folder / "link").symlink_to(folder / "a")
    watch = FileWatch([folder / "link"])
    (folder / "turned").symlink_to(folder / "b")
    (folder / "turned").rename(folder / "link")
    assert polls(watch) == 1


def test_a_file_that_was_never_there_need_not_come_and_is_seen_when_it_does(folder: Path) -> None:
    watch = FileWatch([folder / "a", folder / "later"])
    (folder / "a").write_text("other")
    assert polls(watch) == 1
    (folder / "later").write_text("3")
    assert polls(watch) == 1
    (folder / "later").unlink()
    assert polls(watch) == 0


def test_new_files_do_not_wait_for_ever_for_one_that_stays_away(folder: Path) -> None:
    """Such as weights whose compiled file belonged to the old ones and was taken away."""
    watch = FileWatch([folder / "a", folder / "b"])
    (folder / "b").unlink()
    (folder / "a").write_text("other")
    assert polls(watch, MISSING_POLLS - 1) == 0
    assert polls(watch) == 1
    (folder / "b").write_text("back")
    assert polls(watch) == 1


def test_a_file_that_stays_away_is_warned_of_once(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    watch = FileWatch([folder / "a", folder / "b"])
    (folder / "a").unlink()
    assert polls(watch, 3 * MISSING_POLLS) == 0
    assert [record.getMessage() for record in caplog.records] == [
        f"{folder / 'a'} is gone; what was loaded from it stays in use"
    ]


# ---- the thread ------------------------------------------------------------------------------------------------------


def until(done: Callable[[], bool], limit_s: float = 20.0) -> float:
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
        assert until(lambda: used == ["good"]) < 2.0  # 50 ms on an idle machine
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


@pytest.mark.parametrize(
    ("form", "than", "slower"),
    [
        ("onnx float32", "onnx int8", True),
        ("eager float32", "onnx float32", True),
        ("onnx int8", "onnx int8", False),
        ("onnx int8", "eager bfloat16", False),
        ("onnx int8", "cuda float16", False),
        ("cuda float16", "onnx int8", False),
        ("of another kind", "onnx int8", False),
    ],
)
def test_only_forms_on_the_cpu_have_an_order(form: str, than: str, slower: bool) -> None:
    """Whether a GPU is the faster one is timed at every load, so its outcome is no reason to refuse a voice."""
    assert is_slower(form, than) is slower


# ---- the compiled file -----------------------------------------------------------------------------------------------


class CompiledVoice:
    """A copy of the embedded voice in its compiled form, with people who ask for a sentence again and again."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "compiled.int8.safetensors"
        self.scheduler = Scheduler(lambda: Engine.load(folder))
        self.whole = 0

    async def ask(self) -> None:
        """Until cancelled; fails if a sentence is lost or cut."""
        expected = len(await say(self.scheduler, "Yes."))
        while True:
            assert abs(len(await say(self.scheduler, "Yes.")) - expected) < 1200
            self.whole += 1

    def put_slowly(self, content: bytes) -> None:
        """Moves the old file away, and copies the new one in pieces."""
        self.path.rename(self.path.with_suffix(".bak"))
        with self.path.open("wb") as file:
            for first in range(0, len(content), 1 << 21):
                file.write(content[first : first + (1 << 21)])
                file.flush()
                time.sleep(0.04)  # longer than a poll


def altered(content: bytes) -> bytes:
    return content[:-100] + bytes(byte ^ 1 for byte in content[-100:])


def with_metadata(path: Path, **changes: str) -> bytes:
    with safe_open(path, framework="np") as file:
        metadata = file.metadata()
    save_file(load_file(path), path.with_suffix(".new"), metadata | changes)
    return path.with_suffix(".new").read_bytes()


async def test_a_bad_compiled_file_is_never_used_and_nobody_notices(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    shutil.copytree(EMBEDDED_VOICE, tmp_path / "voice")
    voice = CompiledVoice(tmp_path / "voice")
    caplog.set_level(logging.INFO)
    scheduler, good = voice.scheduler, voice.path.read_bytes()
    bad = [
        (b"", "damaged"),
        (good[: len(good) // 2], "damaged"),
        (altered(good), "was altered"),
        (with_metadata(voice.path, format="sayline-compiled-0"), "run `sayline compile` again"),
        (with_metadata(voice.path, weights="others"), "other weights"),
    ]
    asking = [asyncio.create_task(voice.ask()) for _ in range(2)]
    try:
        await scheduler.ready()
        first = scheduler.engine
        for content, says in bad:
            caplog.clear()
            await asyncio.to_thread(voice.put_slowly, content)
            await asyncio.to_thread(until, lambda says=says: "refused" in caplog.text and says in caplog.text)
            assert scheduler.engine is first
        caplog.clear()
        await asyncio.to_thread(voice.put_slowly, good)
        await asyncio.to_thread(until, lambda: scheduler.engine is not first)
        second = scheduler.engine
        shutil.copy(voice.path, voice.path.with_suffix(".other"))
        voice.path.with_suffix(".link").symlink_to(voice.path.with_suffix(".other"))
        voice.path.with_suffix(".link").rename(voice.path)
        await asyncio.to_thread(until, lambda: scheduler.engine is not second)
        assert scheduler.engine.model.form == "onnx int8"
        whole = voice.whole
        await asyncio.to_thread(until, lambda: voice.whole > whole)
        assert not any(task.done() for task in asking)
    finally:
        for task in asking:
            task.cancel()
        results = await asyncio.gather(*asking, return_exceptions=True)
        scheduler.close()
    assert all(isinstance(result, asyncio.CancelledError) for result in results), results


async def test_a_voice_that_gets_its_compiled_file_later_is_computed_faster_from_then_on(tmp_path: Path) -> None:
    folder = tmp_path / "voice"
    shutil.copytree(EMBEDDED_VOICE, folder, ignore=shutil.ignore_patterns("compiled*"))
    scheduler = Scheduler(lambda: Engine.load(folder))
    try:
        await scheduler.ready()
        assert scheduler.engine.model.form == "onnx float32"
        shutil.copy(EMBEDDED_VOICE / "compiled.int8.safetensors", folder)
        await asyncio.to_thread(until, lambda: scheduler.engine.model.form == "onnx int8")
        assert len(await say(scheduler, "Yes."))
    finally:
        scheduler.close()
