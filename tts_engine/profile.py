"""Where the milliseconds go: timed spans around the parts of an engine, which is otherwise left as it is.

profiler = Profiler()
with profiler.watch(engine) as watched:
    for chunk in watched.speak(Utterance("Good morning.")): ...
profiler.spans
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tts_engine.engine import Engine, Speech
from tts_engine.models import rows
from tts_engine.types import AudioChunk, Utterance

_BEGIN, _STEP = "plan", "packet"
PARTS = (
    "text stages",
    "front end",
    "encoder",
    _BEGIN,
    "prosody",
    "row state",
    "network",
    "decoder",
    "vocoder body",
    "signal",
    _STEP,
    "hand-over",
    "sink",
)
"""All spans, in the order of the line. "network" is what decoder and vocoder body, where they are one call, leave of it; "plan"
is what is left of beginning an utterance (pauses, word times), "packet" of a step (noise, expansion, shaping)."""


@dataclass(frozen=True, slots=True)
class Span:
    """One stretch of work. Times are of ``time.monotonic``; ``own_s`` is without the spans inside it."""

    name: str
    start_s: float
    end_s: float
    own_s: float
    thread: int


class Profiler:
    """Collects spans of all threads. ``mark``: also entered around each span (a tracer's own)."""

    def __init__(self, mark: Callable[[str], AbstractContextManager[object]] = nullcontext) -> None:
        self.spans: list[Span] = []
        self._mark = mark
        self._open = threading.local()

    @contextmanager
    def span(self, name: str) -> Iterator[None]:
        """Times the block."""
        inside: list[float] = getattr(self._open, "inside", [])
        self._open.inside = []
        start_s = time.monotonic()
        try:
            with self._mark(name):
                yield
        finally:
            end_s = time.monotonic()
            self.spans.append(Span(name, start_s, end_s, end_s - start_s - sum(self._open.inside), threading.get_ident()))
            inside.append(end_s - start_s)
            self._open.inside = inside

    def add(self, name: str, start_s: float, end_s: float) -> None:
        """A stretch that was timed elsewhere, on ``time.monotonic``."""
        self.spans.append(Span(name, start_s, end_s, end_s - start_s, threading.get_ident()))

    @contextmanager
    def watch(self, engine: Engine) -> Iterator[Engine]:
        """An engine that does the same and is timed, for as long as the block lasts. The one that is handed in rests."""
        model: Any = engine.model
        timed = [
            (engine.front_end, "read", "front end"),
            (model, "encode_more", "encoder"),
            (model, "prosody", "prosody"),
            (model, "packet", "row state"),
            (model, "_network", "network"),
            (rows, "signal_step", "signal"),
        ]
        if hasattr(model, "vocoder"):
            timed += [(model.acoustic, "decode_step", "decoder"), (model.vocoder, "body_step", "vocoder body")]
        with ExitStack() as stack:
            for owner, attribute, name in timed:
                stack.enter_context(_replaced(owner, attribute, self._timed(getattr(owner, attribute), name)))
            parts = stack.enter_context(model.timed_packets()) if hasattr(model, "timed_packets") else []
            before = len(self.spans)
            yield _WatchedEngine(engine, self)
        self._split(before, parts)

    def _split(self, first: int, parts: Sequence[Mapping[str, float]]) -> None:
        """Makes ``parts`` (seconds by name) of each network, of those among the spans from ``first`` on, spans of their own."""
        networks = [span for span in self.spans[first:] if span.name == "network"]
        networks.sort(key=lambda span: span.start_s)
        for span, inside in zip(networks, parts, strict=False):  # an error may have kept one from its run
            left_s = span.own_s - sum(inside.values())
            self.spans[self.spans.index(span)] = replace(span, own_s=max(0.0, left_s))
            at_s = span.end_s
            for name, took_s in reversed(list(inside.items())):
                self.spans.append(Span(name, at_s - took_s, at_s, took_s, span.thread))
                at_s -= took_s

    def _timed(self, function: Callable[..., Any], name: str) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            with self.span(name):
                return function(*arguments, **options)

        return run

    def write_trace(self, path: Path) -> None:
        """The spans in Chrome's trace format, for chrome://tracing and https://ui.perfetto.dev."""
        path.write_text(json.dumps({"traceEvents": self._events(), "displayTimeUnit": "ms"}), encoding="utf-8")

    def _events(self) -> list[dict[str, object]]:
        """The spans as complete events of Chrome's trace format; times in microseconds."""
        return [
            {
                "name": span.name,
                "ph": "X",
                "ts": 1e6 * span.start_s,
                "dur": 1e6 * (span.end_s - span.start_s),
                "pid": os.getpid(),
                "tid": span.thread,
                "cat": "sayline",
            }
            for span in self.spans
        ]


@contextmanager
def _replaced(owner: Any, attribute: str, function: Callable[..., Any]) -> Iterator[None]:
    """Another function in the place of an object's or a module's, until the block ends."""
    own = vars(owner).get(attribute)  # None: the one of its class
    setattr(owner, attribute, function)
    try:
        yield
    finally:
        if own is None:
            delattr(owner, attribute)
        else:
            setattr(owner, attribute, own)


class _WatchedEngine(Engine):
    def __init__(self, engine: Engine, profiler: Profiler) -> None:
        super().__init__(engine.voice, engine.model, engine.front_end, engine.config)
        self._profiler = profiler

    def begin(self, utterance: Utterance) -> Speech:
        with self._profiler.span(_BEGIN):
            return super().begin(utterance)

    def complete(self, speech: Speech) -> None:
        with self._profiler.span(_BEGIN):
            super().complete(speech)

    def step(self, speech: Speech) -> AudioChunk:
        with self._profiler.span(_STEP):
            return super().step(speech)

    def step_together(self, speeches: Sequence[Speech], count: int) -> list[AudioChunk]:
        with self._profiler.span(_STEP):
            return super().step_together(speeches, count)
