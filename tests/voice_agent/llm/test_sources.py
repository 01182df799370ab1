"""Everything that a stream can come from: read without blocking, only when asked for, closed without a trace."""

# ruff: noqa: ASYNC220, ASYNC230 (opening a test file or starting a process takes no time that matters here)

from __future__ import annotations

import asyncio
import functools
import io
import multiprocessing
import os
import pty
import queue
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.llm_replay import outcome, read
from voice_agent.errors import InputError, SourceError
from voice_agent.llm.any_stream import stream_deltas
from voice_agent.llm.deltas import Delta, End, TextDelta
from voice_agent.llm.pump import READ_AHEAD

WORDS = ["One", " two", " three."]
TEXT = "One two three."
QUICK_MS = 250  # a few on an idle machine; the sources below would block for seconds


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(0.5)
        assert not thread.is_alive(), f"{thread} is left"


async def agen() -> AsyncIterator[str]:
    for word in WORDS:
        yield word


async def coroutine() -> AsyncIterator[str]:
    return agen()


class OnlyNext:
    """An async iterator without ``__aiter__``."""

    def __init__(self) -> None:
        self.words = iter(WORDS)

    async def __anext__(self) -> str:
        try:
            return next(self.words)
        except StopIteration:
            raise StopAsyncIteration from None


class AsyncCallable:
    async def __call__(self) -> AsyncIterator[str]:
        return agen()


class AwaitedOrEntered:
    """As a request of ``aiohttp``: who awaits it has to close what it gives."""

    def __await__(self) -> Iterator[Any]:
        raise AssertionError("nobody would close it")
        yield

    async def __aenter__(self) -> AsyncIterator[str]:
        return agen()

    async def __aexit__(self, *error: object) -> None:
        pass


@asynccontextmanager
async def entered() -> AsyncIterator[AsyncIterator[str]]:
    yield agen()


@contextmanager
def entered_blocking() -> Iterator[Iterator[str]]:
    yield iter(WORDS)


SOURCES: dict[str, Callable[[], Any]] = {
    "string": lambda: TEXT,
    "bytes": lambda: TEXT.encode(),
    "list": lambda: list(WORDS),
    "tuple": lambda: tuple(WORDS),
    "iterator": lambda: iter(WORDS),
    "generator": lambda: (word for word in WORDS),
    "dict view": lambda: dict.fromkeys(WORDS).keys(),
    "async generator": agen,
    "async iterator": OnlyNext,
    "coroutine": coroutine,
    "coroutine of coroutine": lambda: asyncio.sleep(0, coroutine()),
    "future": lambda: asyncio.ensure_future(coroutine()),
    "async function": lambda: coroutine,
    "async generator function": lambda: agen,
    "partial": lambda: functools.partial(asyncio.sleep, 0, WORDS),
    "callable object": AsyncCallable,
    "class": lambda: OnlyNext,
    "awaitable that can be entered": AwaitedOrEntered,
    "function": lambda: lambda: iter(WORDS),
    "function giving a coroutine": lambda: lambda: coroutine(),
    "function giving a string": lambda: lambda: TEXT,
    "async context": entered,
    "context": entered_blocking,
    "text file": lambda: io.StringIO(TEXT),
    "binary file": lambda: io.BytesIO(TEXT.encode()),
    "nested": lambda: stream_deltas(stream_deltas(agen())),
}


@pytest.mark.parametrize("name", SOURCES)
async def test_kinds_of_source(name: str) -> None:
    got = await read(SOURCES[name]())
    assert got.text == TEXT
    assert got.error is None
    assert isinstance(got.deltas[-1], End)


async def test_deltas_come_one_by_one() -> None:
    assert [d.text for d in (await read(agen())).deltas if isinstance(d, TextDelta)] == WORDS


@pytest.mark.parametrize("make", [asyncio.Queue, queue.Queue, queue.SimpleQueue, queue.LifoQueue])
async def test_queues(make: Callable[[], Any]) -> None:
    for last in (None, End("stop")):
        source = make()
        for item in reversed([last, "B"]) if make is not queue.LifoQueue else [last, "B"]:
            source.put_nowait(item) if isinstance(source, asyncio.Queue) else source.put(item)
        got = await read(source)
        assert got.text == "B"
        assert got.error is None


async def test_queues_between_processes() -> None:
    with multiprocessing.get_context("spawn").Manager() as manager:
        makers: list[Callable[[], Any]] = [multiprocessing.Queue, multiprocessing.SimpleQueue, multiprocessing.JoinableQueue]
        for make in [*makers, manager.Queue]:
            source = make()
            for item in (*WORDS, None):
                source.put(item)
            assert (await read(source)).text == TEXT, make


async def test_queue_that_fills_while_it_is_read() -> None:
    source: queue.Queue[Any] = queue.Queue(maxsize=1)

    def produce() -> None:
        for word in (*WORDS, None):
            time.sleep(0.01)
            source.put(word)

    thread = threading.Thread(target=produce)
    thread.start()
    assert (await read(source)).text == TEXT
    thread.join()


async def test_exception_in_a_queue_is_raised() -> None:
    for source in (asyncio.Queue[Any](), queue.Queue[Any]()):
        source.put_nowait("Half")
        source.put_nowait(ConnectionResetError("gone"))
        got = await read(source)
        assert got.text == "Half"
        assert got.error is not None
        assert isinstance(got.error.__cause__, ConnectionResetError)
        assert got.error.retryable


async def test_joinable_queue() -> None:
    source: asyncio.Queue[Any] = asyncio.Queue()
    source.put_nowait("A")
    source.put_nowait(None)
    await read(source)
    await asyncio.wait_for(source.join(), 1)


# --- files -----------------------------------------------------------------------------------------------------------


async def arrivals(file: Any, write: Callable[[bytes], object], close: Callable[[], object]) -> list[str]:
    """What came after each write, half lines and half characters among them."""
    deltas = stream_deltas(file)
    got = []
    for piece in ("One", " two\n", " thr"):
        write(piece.encode())
        delta = await asyncio.wait_for(anext(deltas), 1)
        assert isinstance(delta, TextDelta)
        got.append(delta.text)
    write("好".encode()[:2])
    write("好".encode()[2:] + b"!")
    close()
    got.append("".join([d.text async for d in deltas if isinstance(d, TextDelta)]))
    return got


@pytest.mark.parametrize("mode", ["r", "rb"])
async def test_pipe_is_read_as_it_comes(mode: str) -> None:
    reading, writing = os.pipe()
    with open(reading, mode, encoding="utf-8" if mode == "r" else None) as file:
        got = await arrivals(file, lambda data: os.write(writing, data), lambda: os.close(writing))
    assert got == ["One", " two\n", " thr", "好!"]


async def test_fifo_and_terminal(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    with open(slave, "rb", buffering=0) as file:
        deltas = stream_deltas(file)
        os.write(master, "Hello 你好\n".encode())
        delta = await asyncio.wait_for(anext(deltas), 1)
        assert isinstance(delta, TextDelta)
        assert delta.text.strip() == "Hello 你好"
        os.write(master, b"\x04")  # end of file on a terminal
        assert [type(d) async for d in deltas] == [End]
    os.close(master)
    path = tmp_path / "fifo"
    os.mkfifo(path)
    with open(path, "r+b", buffering=0) as writer, open(path, "rb") as reader:
        deltas = stream_deltas(reader)
        writer.write(b"Hi")
        assert await asyncio.wait_for(anext(deltas), 1) == TextDelta("Hi")
        await deltas.aclose()


async def test_standard_input_of_a_slow_process() -> None:
    code = """
import asyncio, sys
from voice_agent.llm.any_stream import stream_deltas

async def main():
    async for delta in stream_deltas(sys.stdin):
        print(repr(delta), flush=True)

asyncio.run(main())
"""
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for word in ("Hel", "lo"):
            process.stdin.write(word.encode())
            line = await asyncio.to_thread(process.stdout.readline)
            assert word in line.decode()
        process.stdin.close()
        assert "End" in (await asyncio.to_thread(process.stdout.readline)).decode()


async def test_subprocess_output() -> None:
    command = [sys.executable, "-c", "import time\nprint('One', end='', flush=True)\ntime.sleep(.2)\nprint(' two')"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert (await read(process.stdout)).text == "One two\n"
    process_ = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    assert (await read(process_.stdout)).text == "One two\n"
    await process_.wait()


async def test_files_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes(b"line\n" + "你好".encode() * 50_000 + b"\xff!")
    with open(path, encoding="utf-8") as file:
        assert file.readline() == "line\n"
        assert (await read(file)).text == "你好" * 50_000 + "\ufffd!"
        assert not file.closed
    with open(path, "rb") as binary:
        assert (await read(binary)).text.startswith("line\n你好")
    path.write_bytes("你好".encode("gbk"))
    with open(path, encoding="gbk") as file:
        assert (await read(file)).text == "你好"
    with tempfile.NamedTemporaryFile("w+", encoding="utf-8") as temporary:
        temporary.write("Hi")
        temporary.seek(0)
        assert (await read(temporary)).text == "Hi"
    with open(os.devnull, "rb") as nothing:
        assert (await read(nothing)).deltas == [End()]


async def test_socket_file_gives_what_arrived() -> None:
    here, there = socket.socketpair()
    with here, there, here.makefile("rb") as file:
        deltas = stream_deltas(file)
        there.sendall(b"Hel")
        assert await asyncio.wait_for(anext(deltas), 1) == TextDelta("Hel")
        there.close()
        assert [d async for d in deltas] == [End()]


# --- back-pressure ---------------------------------------------------------------------------------------------------


async def test_async_source_is_not_read_ahead() -> None:
    taken = 0

    async def source() -> AsyncIterator[str]:
        nonlocal taken
        while True:
            taken += 1
            yield "x"

    async with aclosing(stream_deltas(source())) as deltas:
        for _ in range(3):
            await anext(deltas)
        await asyncio.sleep(0.02)
        assert taken == 3


async def test_sync_source_is_read_ahead_by_a_few() -> None:
    taken = 0

    def source() -> Iterator[str]:
        nonlocal taken
        while True:
            taken += 1
            yield "x"

    async with aclosing(stream_deltas(source())) as deltas:
        await anext(deltas)
        await asyncio.sleep(0.05)
        assert taken <= READ_AHEAD + 2


async def test_slow_sync_source_does_not_block_the_loop() -> None:
    def source() -> Iterator[str]:
        for word in WORDS:
            time.sleep(0.05)
            yield word

    ticks = 0

    async def heartbeat() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.001)
            ticks += 1

    beat = asyncio.create_task(heartbeat())
    assert (await read(source())).text == TEXT
    beat.cancel()
    assert ticks > 20, "the loop stood still while the source slept"


async def test_flood_of_tokens_leaves_room_for_others() -> None:
    """A hundred thousand tokens at once: other tasks run in between, and cancelling works."""
    chunk = {"choices": [{"delta": {"content": "word "}}]}
    ticks = 0

    async def ticker() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    tick = asyncio.create_task(ticker())
    got = await read([chunk] * 100_000)
    tick.cancel()
    assert len(got.text) == 500_000
    assert ticks > 1000


# --- cancelling and closing ------------------------------------------------------------------------------------------


async def cancelled_in_ms(source: Any) -> float:
    started = asyncio.Event()

    async def consume() -> None:
        async for _ in stream_deltas(source):
            started.set()

    task = asyncio.create_task(consume())
    await asyncio.wait_for(started.wait(), 2)
    await asyncio.sleep(0.02)
    before = time.perf_counter()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return (time.perf_counter() - before) * 1000


async def test_cancelling_each_kind_of_source() -> None:
    closed: list[str] = []

    async def stalled() -> AsyncIterator[str]:
        try:
            yield "x"
            await asyncio.sleep(60)
        finally:
            closed.append("async")

    def endless() -> Iterator[str]:
        try:
            while True:
                yield "x"
                time.sleep(0.001)
        finally:
            closed.append("sync")

    waiting: asyncio.Queue[str] = asyncio.Queue()
    waiting.put_nowait("x")
    blocking: queue.Queue[str] = queue.Queue()
    blocking.put("x")
    reading, writing = os.pipe()
    os.write(writing, b"x")
    here, there = socket.socketpair()
    there.sendall(b"x")
    with open(reading, "rb") as pipe, here, there:
        for source in (stalled(), stalled, endless(), endless, waiting, blocking, pipe):
            assert await cancelled_in_ms(source) < QUICK_MS, source
    os.close(writing)
    await asyncio.sleep(0.01)
    assert sorted(closed) == ["async", "async", "sync", "sync"]
    assert len(asyncio.all_tasks()) == 1


async def test_blocked_thread_keeps_nobody_waiting() -> None:
    release = threading.Event()
    closed = threading.Event()

    def stuck() -> Iterator[str]:
        try:
            yield "x"
            release.wait(10)
            yield "y"
        finally:
            closed.set()

    assert await cancelled_in_ms(stuck()) < QUICK_MS
    release.set()
    assert await asyncio.to_thread(closed.wait, 1)


async def test_result_of_a_cancelled_call_is_closed() -> None:
    release, closed = threading.Event(), threading.Event()

    def words() -> Iterator[str]:
        try:
            yield "x"
        finally:
            closed.set()

    def call() -> Iterator[str]:
        release.wait(10)
        source = words()
        next(source)
        return source

    task = asyncio.create_task(outcome(stream_deltas(call)))
    await asyncio.sleep(0.02)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    release.set()
    assert await asyncio.to_thread(closed.wait, 1)


async def test_leaving_early_closes_the_source() -> None:
    closed: list[str] = []

    class Stream:
        def __init__(self) -> None:
            self.words = iter(WORDS)

        def __aiter__(self) -> Stream:
            return self

        async def __anext__(self) -> str:
            return next(self.words)

        async def close(self) -> None:
            closed.append("stream")

    class Blocking:
        def __iter__(self) -> Blocking:
            return self

        def __next__(self) -> str:
            return "x"

        def close(self) -> None:
            closed.append("blocking")

    for source in (Stream(), Blocking()):
        deltas = stream_deltas(source)
        await anext(deltas)
        await deltas.aclose()
    assert closed == ["stream", "blocking"]


async def test_closing_that_hangs_or_fails_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voice_agent.llm.any_stream._CLOSE_WAIT_S", 0.02)

    class Bad:
        def __init__(self, fails: bool) -> None:
            self.fails = fails

        def __aiter__(self) -> Bad:
            return self

        async def __anext__(self) -> str:
            return "x"

        async def aclose(self) -> None:
            if self.fails:
                raise RuntimeError("no")
            await asyncio.sleep(60)

    for fails in (True, False):
        deltas = stream_deltas(Bad(fails))
        await anext(deltas)
        await asyncio.wait_for(deltas.aclose(), 1)


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("blocking", [False, True])
@pytest.mark.parametrize(
    ("error", "retryable"),
    [
        (ConnectionResetError("reset by peer"), True),
        (TimeoutError(), True),
        (ValueError("bad value"), False),
        (type("ReadTimeout", (Exception,), {})("slow"), True),
        (type("RemoteProtocolError", (Exception,), {})("incomplete chunked read"), True),
        (type("APIStatusError", (Exception,), {"status_code": 503})("down"), True),
        (type("APIStatusError", (Exception,), {"status_code": 401})("bad key sk-abcdefghijklmn"), False),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
async def test_errors_of_the_source(blocking: bool, error: Exception, retryable: bool) -> None:
    def items() -> Iterator[str]:
        yield from WORDS
        raise error

    async def items_async() -> AsyncIterator[str]:
        for word in WORDS:
            yield word
        raise error

    got = await read(items() if blocking else items_async())
    assert got.text == TEXT
    assert got.error is not None
    assert got.error.__cause__ is error
    assert got.error.retryable is retryable
    assert "abcdefghij" not in str(got.error)


@pytest.mark.parametrize("held", ["data", ":", "{", '{"model": "x', " \n", "event: party"])
async def test_text_that_was_held_back_comes_before_the_error(held: str) -> None:
    async def items() -> AsyncIterator[str]:
        yield held
        raise ConnectionResetError("gone")

    got = await read(items())
    assert got.text == held
    assert got.error is not None


@pytest.mark.parametrize("blocking", [False, True])
async def test_a_cancellation_of_the_sources_own_is_an_error(blocking: bool) -> None:
    """A source that waits for a task which somebody cancels: the reader goes on."""

    def items() -> Iterator[str]:
        yield from WORDS
        raise asyncio.CancelledError

    async def items_async() -> AsyncIterator[str]:
        for word in WORDS:
            yield word
        inner = asyncio.ensure_future(asyncio.sleep(10))
        asyncio.get_running_loop().call_soon(inner.cancel)
        await inner

    got = await read(items() if blocking else items_async())
    assert got.text == TEXT
    assert "cancelled" in str(got.error)


class Itself:
    """Entering gives the same thing, which gives nothing."""

    def __enter__(self) -> Itself:
        return self

    async def __aenter__(self) -> Itself:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    async def __aexit__(self, *error: object) -> None:
        pass


@pytest.mark.parametrize("source", [Itself(), Path("tokens.txt"), {"a": 1}, object(), None, 5])
async def test_what_gives_nothing_shows_its_shape(source: Any) -> None:
    with pytest.raises(SourceError, match="unknown shape") as caught:
        [delta async for delta in stream_deltas(source)]
    assert type(source).__name__ in str(caught.value)


async def test_our_own_errors_pass_unchanged() -> None:
    def items() -> Iterator[str]:
        yield "x"
        raise InputError("mine")

    with pytest.raises(InputError, match="mine"):
        [delta async for delta in stream_deltas(items())]


async def test_function_that_fails() -> None:
    def connect() -> Iterator[str]:
        raise ConnectionRefusedError("nobody listens")

    with pytest.raises(SourceError, match="nobody listens"):
        [delta async for delta in stream_deltas(connect)]


async def test_consumer_errors_are_not_the_sources() -> None:
    closed = []

    async def items() -> AsyncIterator[str]:
        try:
            yield "x"
        finally:
            closed.append(True)

    async def consume() -> list[Delta]:
        async with aclosing(stream_deltas(items())) as deltas:
            async for _ in deltas:
                raise KeyError("mine")
        return []

    with pytest.raises(KeyError, match="mine"):
        await consume()
    assert closed == [True]
