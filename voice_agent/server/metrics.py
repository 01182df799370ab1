"""The server's figures for Prometheus, and the recent ones for people."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from voice_agent.server.refusals import RefusedError

__all__ = ["CONTENT_TYPE", "Latency", "Metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Latency = Literal["first_sound", "first_audible", "end_to_end"]
_SECONDS = (
    0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.065, 0.08, 0.1, 0.125, 0.15, 0.175, 0.2, 0.25, 0.3, 0.4, 0.5,
    0.75, 1.0, 2.0, 5.0, 10.0,
)  # fmt: skip
_FACTORS = (0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 5.0)
_RECENT = 1000
_SHARES = (0.5, 0.9, 0.99)


class Metrics:
    """Counts in a registry of its own. ``kind`` is how speech was asked for: speech, chat, live, deepgram, rtc."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self._latency = {
            "first_sound": Histogram(
                "sayline_first_sound_seconds",
                "From when what a turn says first was written until its first packet went out",
                ["kind"], buckets=_SECONDS, registry=registry,
            ),
            "first_audible": Histogram(
                "sayline_first_audible_seconds",
                "From the token that completes what a turn says first until the first packet above -50 dBFS went out",
                ["kind"], buckets=_SECONDS, registry=registry,
            ),
            "end_to_end": Histogram(
                "sayline_end_to_end_seconds",
                "From the request, or the end of what the user said, until the first audible packet went out",
                ["kind"], buckets=_SECONDS, registry=registry,
            ),
        }  # fmt: skip
        self._rtf = Histogram(
            "sayline_real_time_factor",
            "Seconds that a stream waited for packets whose text was there, for each second of them",
            ["kind"], buckets=_FACTORS, registry=registry,
        )  # fmt: skip
        self._silence = Histogram(
            "sayline_barge_in_silence_seconds",
            "From an interruption until nothing of the turn went out any more",
            ["kind"], buckets=_SECONDS, registry=registry,
        )  # fmt: skip
        self._requests = Counter("sayline_requests", "Requests and sessions that ended", ["kind", "outcome"], registry=registry)
        self._refused = Counter("sayline_refused", "Requests that were refused", ["code"], registry=registry)
        self._audio = Counter("sayline_audio_seconds", "Audio that went out", ["kind"], registry=registry)
        self._heard = Counter("sayline_heard_seconds", "Audio that was heard, where that is known", ["kind"], registry=registry)
        self._chars = Counter("sayline_text_characters", "Characters to speak that came in", ["kind"], registry=registry)
        self._underruns = Counter(
            "sayline_underruns", "Packets that went out after the listener had run dry", ["kind"], registry=registry
        )
        self._barge_ins = Counter("sayline_barge_ins", "Interruptions", ["kind"], registry=registry)
        self._recent: dict[Latency, deque[float]] = {
            name: deque(maxlen=_RECENT) for name in ("first_sound", "first_audible", "end_to_end")
        }
        self.underruns = 0

    def watch(self, name: str, about: str, read: Callable[[], float]) -> None:
        """A gauge whose value is read whenever somebody looks."""
        Gauge(f"sayline_{name}", about, registry=self.registry).set_function(read)

    def latency(self, name: Latency, kind: str, seconds: float) -> None:
        """How long something took; see the three names."""
        self._latency[name].labels(kind).observe(seconds)
        self._recent[name].append(seconds)

    def underran(self, kind: str, count: int = 1) -> None:
        self._underruns.labels(kind).inc(count)
        self.underruns += count

    def interrupted(self, kind: str, silence_s: float) -> None:
        self._barge_ins.labels(kind).inc()
        self._silence.labels(kind).observe(silence_s)

    def refused(self, error: RefusedError) -> None:
        self._refused.labels(error.code or str(error.status)).inc()

    def ended(
        self, kind: str, outcome: str, *, chars: int, audio_s: float, heard_s: float, real_time_factor: float | None
    ) -> None:
        """A stream is over."""
        self._requests.labels(kind, outcome).inc()
        self._chars.labels(kind).inc(chars)
        self._audio.labels(kind).inc(audio_s)
        self._heard.labels(kind).inc(heard_s)
        if real_time_factor is not None:
            self._rtf.labels(kind).observe(real_time_factor)

    def percentiles(self) -> list[dict[str, str | int | float | None]]:
        """P50, P90 and P99 of the last 1,000 turns, in seconds; None while there is none."""
        rows: list[dict[str, str | int | float | None]] = []
        for name, recent in self._recent.items():
            ordered = sorted(recent)
            shares = {
                f"p{round(100 * share)}_s": ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None
                for share in _SHARES
            }
            rows.append({"name": name, "count": len(ordered), **shares})
        return rows

    def text(self) -> bytes:
        """Everything in Prometheus' text format."""
        return generate_latest(self.registry)
