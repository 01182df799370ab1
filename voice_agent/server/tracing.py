"""Spans of OpenTelemetry for those who run it: nothing is imported, and nothing measured, unless it is asked for."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Protocol

from voice_agent.errors import MissingExtraError

__all__ = ["Tracer"]


class Traced(Protocol):
    """What a span tells of a stream, once it is over."""

    uid: str
    voice: str
    outcome: str
    text_chars: int
    audio_s: float
    first_sound_s: float | None


class Tracer:
    """A span a stream, through whatever provider the process has (``opentelemetry-instrument`` sets one up)."""

    def __init__(self, enabled: bool) -> None:
        """Raises MissingExtraError where traces are asked for and the API is not installed."""
        self._tracer: Any = None
        if enabled:
            try:
                from opentelemetry import trace
            except ImportError as error:
                raise MissingExtraError(
                    "logs.traces needs OpenTelemetry: pip install opentelemetry-distro opentelemetry-exporter-otlp, "
                    "and run the server with opentelemetry-instrument"
                ) from error
            self._tracer = trace.get_tracer("sayline")

    @contextmanager
    def span(self, name: str, stream: Traced) -> Generator[None, None, None]:
        """A span around the block, with what became of the stream."""
        if self._tracer is None:
            yield
            return
        with self._tracer.start_as_current_span(name) as span:
            try:
                yield
            finally:
                span.set_attribute("sayline.uid", stream.uid)
                span.set_attribute("sayline.voice", stream.voice)
                span.set_attribute("sayline.text_chars", stream.text_chars)
                span.set_attribute("sayline.audio_s", stream.audio_s)
                if stream.first_sound_s is not None:
                    span.set_attribute("sayline.first_sound_s", stream.first_sound_s)
