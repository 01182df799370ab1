"""Takes any LLM stream there is and gives deltas: one adapter for SDK objects, raw HTTP bodies, iterators, queues and
files.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import os
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing
from typing import Any

from voice_agent.errors import SaylineError
from voice_agent.llm.deltas import Break, Delta, End, TextDelta, ToolCall
from voice_agent.llm.failures import from_exception, unknown_shape
from voice_agent.llm.files import is_file, read_file
from voice_agent.llm.pump import close_blocking, interrupt_http, pumped
from voice_agent.llm.queues import is_queue, read_queue
from voice_agent.llm.responses import response_body, response_in
from voice_agent.llm.shapes import FORMATS, ChunkReader, classify, error_in

log = logging.getLogger(__name__)

_READ_BYTES = 65_536
_YIELD_EVERY = 64
_CLOSE_WAIT_S = 1.0


def stream_deltas(source: Any, *, format: str | None = None, name: str = "the LLM stream") -> AsyncGenerator[Delta, None]:
    """The deltas of any LLM stream; joined, its `TextDelta` texts are exactly what the model said.

    ``source``: a string or bytes; an iterator, iterable or generator, sync or async; an awaitable or a callable that
    gives one; a queue of asyncio, of threads or of processes (None or `End` ends it, an exception in it is raised); a file
    object such as ``sys.stdin``; a stream object of ``openai`` and other SDKs; an HTTP response of ``httpx``, ``requests``
    or ``aiohttp``; a context manager that gives one of these; one whole chunk or response. Its items: strings, raw SSE or
    NDJSON cut anywhere, chunk objects or dicts of the formats in `FORMATS`, or deltas.

    ``format`` names the wire format where it should not be detected: "text" takes strings as they are, also ones that
    look like SSE or JSON chunks. ``name`` is what error messages call the stream.

    What blocks runs in a thread of its own with at most four items read ahead; nothing else is read before it is
    asked for. Cancelling it, or closing it (``contextlib.aclosing``) where it is left early, closes the source.
    Raises `SourceError` after the deltas that came before the fault; ``retryable`` says whether the same request may
    succeed later. Raises `InputError` at once for an unknown format.
    """
    return _deltas(source, ChunkReader(format, name), name)


async def _deltas(source: Any, reader: ChunkReader, name: str) -> AsyncGenerator[Delta, None]:
    taken = 0
    async with aclosing(_items(source)) as items:
        while not reader.done:
            try:
                item = await anext(items)
            except StopAsyncIteration:
                break
            except (Exception, asyncio.CancelledError) as error:
                if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                    raise
                for delta in reader.cut_off():
                    yield delta
                if isinstance(error, SaylineError):
                    raise
                raise from_exception(error, name) from error
            for delta in reader.feed(item):
                yield delta
            taken += 1
            if taken % _YIELD_EVERY == 0:
                await asyncio.sleep(0)  # a source that never waits must let others run, and a cancellation in
    for delta in reader.flush():
        yield delta


def _is_cancelled() -> bool:
    """Whether this task is; a source may also raise a CancelledError of its own, when something that it waits for ends."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _items(source: Any) -> AsyncGenerator[Any, None]:
    """The items of the source, one by one."""
    if isinstance(source, str | bytes | bytearray | memoryview | TextDelta | ToolCall | Break | End):
        yield source
    elif isinstance(source, list | tuple | deque):
        for item in source:
            yield item
    else:
        async with aclosing(_opened(source)) as items:
            async for item in items:
                yield item


def _opened(source: Any) -> AsyncGenerator[Any, None]:
    if isinstance(source, type):
        return _called(source)
    if is_queue(source):
        return read_queue(source)
    if isinstance(source, asyncio.StreamReader):
        return _stream_reader(source)
    if hasattr(source, "__aiter__") or hasattr(source, "__anext__"):
        return _async_iterator(source)
    if (response := response_in(source)) is not None:
        return _response(response)
    if is_file(source):
        return read_file(source)
    if inspect.isawaitable(source):  # what can be entered as well is: so it is closed
        return _entered(source) if hasattr(source, "__aenter__") else _awaited(source)
    if isinstance(source, Mapping | os.PathLike) or hasattr(source, "model_dump"):
        return _single(source)
    if hasattr(source, "__iter__") or hasattr(source, "__next__"):
        return pumped(functools.partial(_iterated, source), interrupt=functools.partial(interrupt_http, source))
    if hasattr(source, "__aenter__"):
        return _entered(source)
    if hasattr(source, "__enter__"):
        return _entered_blocking(source)
    if callable(source):
        return _called(source)
    return _single(source)


async def _single(chunk: Any) -> AsyncGenerator[Any, None]:
    if classify(chunk) is None and error_in(chunk) is None:
        raise unknown_shape(chunk, FORMATS)
    yield chunk


async def _async_iterator(source: Any) -> AsyncGenerator[Any, None]:
    iterator = source.__aiter__() if hasattr(source, "__aiter__") else source
    if iterator is not source and hasattr(source, "__anext__"):
        iterator = source  # one thing to close: the wrapper that __aiter__ made would outlive a cancellation
    try:
        while True:
            try:
                item = await anext(iterator)
            except StopAsyncIteration:
                return
            yield item
    finally:
        await _close(iterator)


async def _close(iterator: Any) -> None:
    close = getattr(iterator, "aclose", None) or getattr(iterator, "close", None)
    if not callable(close):
        return
    try:
        async with asyncio.timeout(_CLOSE_WAIT_S):
            result = close()
            if inspect.isawaitable(result):
                await result
    except Exception as error:
        log.debug("closing the LLM stream failed: %r", error)


async def _awaited(source: Any) -> AsyncGenerator[Any, None]:
    async with aclosing(_items(await source)) as items:
        async for item in items:
            yield item


async def _entered(source: Any) -> AsyncGenerator[Any, None]:
    async with source as inner, aclosing(_single(inner) if inner is source else _items(inner)) as items:
        async for item in items:
            yield item


def _entered_blocking(source: Any) -> AsyncGenerator[Any, None]:
    """Entering blocks where it sends a request, so it is done in the thread that reads, and undone there."""
    inside: list[Any] = []

    def pieces(stopped: Callable[[], bool]) -> Iterator[Any]:
        with source as inner:
            response = response_in(inner)
            inside.append(inner if response is None else response)
            yield from _iterated(inner if response is None else response_body(response), stopped)

    def interrupt() -> None:
        for inner in inside:
            interrupt_http(inner)

    return pumped(pieces, interrupt=interrupt)


def _response(response: Any) -> AsyncGenerator[Any, None]:
    body = response_body(response)
    if hasattr(body, "__aiter__"):
        return _async_iterator(body)
    return pumped(functools.partial(_iterated, body), interrupt=functools.partial(interrupt_http, response))


async def _called(function: Callable[[], Any]) -> AsyncGenerator[Any, None]:
    """What the function gives. A plain function may block (a request that is sent), so it runs in a thread."""
    if _is_async_function(function):
        result = function()
    else:
        async with aclosing(pumped(lambda stopped: iter([function()]), discard=close_blocking)) as results:
            result = await anext(results)
    async with aclosing(_items(result)) as items:
        async for item in items:
            yield item


def _is_async_function(function: Any) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    candidates = (function, type(function).__call__)
    return any(inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each) for each in candidates)


async def _stream_reader(reader: asyncio.StreamReader) -> AsyncGenerator[bytes, None]:
    while data := await reader.read(_READ_BYTES):
        yield data


def _iterated(source: Any, stopped: Callable[[], bool]) -> Iterator[Any]:
    if not (hasattr(source, "__next__") or hasattr(source, "__iter__")):
        raise unknown_shape(source, FORMATS)
    iterator = source if hasattr(source, "__next__") else iter(source)
    try:
        while not stopped():
            try:
                item = next(iterator)
            except StopIteration:
                return
            yield item
    finally:
        close_blocking(iterator)
