"""Reads queues, of asyncio, of threads, of processes and of other libraries, until an item says that it was the last."""

from __future__ import annotations

import asyncio
import inspect
import queue
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from functools import partial
from typing import Any

from voice_agent.llm.deltas import End
from voice_agent.llm.pump import pumped

__all__ = ["is_queue", "read_queue"]

_POLL_S = 0.05


def is_queue(source: Any) -> bool:
    """Whether things are put into it and taken out of it: ``put`` and ``get``, which no stream and no mapping has."""
    return all(callable(getattr(source, name, None)) for name in ("get", "put")) and not isinstance(source, Mapping)


def read_queue(source: Any) -> AsyncGenerator[Any, None]:
    """The items up to None, an `End`, or the queue's shutdown; an exception among them is raised."""
    if inspect.iscoroutinefunction(source.get):
        return _awaited(source)
    return pumped(partial(_blocking, source))


async def _awaited(source: Any) -> AsyncGenerator[Any, None]:
    closed = getattr(asyncio, "QueueShutDown", ())
    while True:
        try:
            item = await source.get()
        except closed:
            return
        if _taken(source, item):
            return
        yield item
        if isinstance(item, End):
            return


def _blocking(source: Any, stopped: Callable[[], bool]) -> Iterator[Any]:
    closed = getattr(queue, "ShutDown", ())
    get = _polling(source)
    while not stopped():
        try:
            item = get()
        except queue.Empty:
            continue
        except closed:
            return
        if _taken(source, item):
            return
        yield item
        if isinstance(item, End):
            return


def _polling(source: Any) -> Callable[[], Any]:
    """Takes an item, or raises ``queue.Empty`` after a moment: a thread that waits for ever could not be ended."""
    parameters = inspect.signature(source.get).parameters.values()
    if any(parameter.name == "timeout" or parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return partial(source.get, timeout=_POLL_S)

    def get() -> Any:  # ``multiprocessing.SimpleQueue``
        if source.empty():
            time.sleep(_POLL_S)
            raise queue.Empty
        return source.get()

    return get


def _taken(source: Any, item: Any) -> bool:
    """Tells the queue that the item was taken; whether it ends the stream. Raises an exception that was put in."""
    if callable(done := getattr(source, "task_done", None)):
        done()
    if isinstance(item, BaseException):
        raise item
    return item is None
