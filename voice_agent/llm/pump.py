"""Runs a blocking iterator in a thread of its own and hands its items to the event loop, a few at most read ahead."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import socket
import threading
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import suppress
from typing import Any

from voice_agent.llm.chunks import field

READ_AHEAD = 4
_STOP_WAIT_S = 0.02
OpenItems = Callable[[Callable[[], bool]], Iterable[Any]]


async def pumped(
    open_items: OpenItems,
    *,
    interrupt: Callable[[], None] = lambda: None,
    discard: Callable[[Any], None] = lambda item: None,
) -> AsyncGenerator[Any, None]:
    """The items of ``open_items(stopped)``, which is called and iterated in a daemon thread.

    When the consumer stops, ``stopped()`` turns true, ``interrupt`` is called to end a read that blocks, and the
    thread closes the iterator and ends. A thread that is blocked in something that cannot be interrupted ends at its
    next item; nobody waits for it. ``discard`` gets the items that were read ahead and never taken.
    """
    pump = _Pump(open_items, discard)
    pump.start()
    try:
        while True:
            item = await pump.get()
            if item is pump:
                return
            yield item
    finally:
        await pump.stop(interrupt)


class _Pump:
    def __init__(self, open_items: OpenItems, discard: Callable[[Any], None]) -> None:
        self._open_items = open_items
        self._discard = discard
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._changed = threading.Condition()
        self._items: deque[Any] = deque()
        self._stopped = False
        self._ended = False
        self._error: BaseException | None = None
        run = contextvars.copy_context().run
        self._thread = threading.Thread(target=run, args=(self._run,), name="llm-source", daemon=True)

    def start(self) -> None:
        self._thread.start()

    async def get(self) -> Any:
        """The next item; the pump itself at the end. Raises what the iterator raised, after the items before it."""
        while True:
            with self._changed:
                if self._items:
                    item = self._items.popleft()
                    self._changed.notify()
                    return item
                if self._ended:
                    if self._error is not None:
                        raise self._error
                    return self
                self._wake.clear()
            await self._wake.wait()

    async def stop(self, interrupt: Callable[[], None]) -> None:
        with self._changed:
            self._stopped = True
            left = list(self._items)
            self._items.clear()
            ended = self._ended
            self._changed.notify()
        for item in left:
            self._discard(item)
        if not ended:
            interrupt()
            with suppress(TimeoutError):
                async with asyncio.timeout(_STOP_WAIT_S):
                    while not self._ended:
                        self._wake.clear()
                        await self._wake.wait()
        if self._ended:
            self._thread.join()

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            items = self._open_items(lambda: self._stopped)
            try:
                for item in items:
                    if not self._put(item):
                        break
            finally:
                close_blocking(items)
        except BaseException as problem:
            error = problem
        with self._changed:
            self._error = error
            self._ended = True
        self._notify_loop()

    def _put(self, item: Any) -> bool:
        with self._changed:
            while len(self._items) >= READ_AHEAD and not self._stopped:
                self._changed.wait()
            if self._stopped:
                self._discard(item)
                return False
            self._items.append(item)
            wake = len(self._items) == 1
        if wake:
            self._notify_loop()
        return True

    def _notify_loop(self) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            self._loop.call_soon_threadsafe(self._wake.set)


def close_blocking(source: Any) -> None:
    """Calls ``close()`` of an iterator that has one, ignoring its errors."""
    close = getattr(source, "close", None)
    if not callable(close) or not (hasattr(source, "__next__") or inspect.iscoroutine(source)):
        return
    with suppress(Exception):
        result = close()
        if inspect.iscoroutine(result):
            result.close()


def interrupt_http(source: Any) -> None:
    """Wakes a thread that is blocked reading an HTTP response, or the one of an SDK's stream object, by shutting its socket
    down.
    """
    extensions = field(field(source, "response"), "extensions") or field(source, "extensions")
    stream = field(extensions, "network_stream")
    with suppress(Exception):
        stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
