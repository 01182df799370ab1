"""``sayline profile``: where the milliseconds of a text go, as a table and as a Chrome trace."""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tts_engine.engine import Engine, EngineConfig
from tts_engine.profile import PARTS, Profiler, Span
from tts_engine.scheduler import Scheduler
from tts_engine.types import Utterance
from voice_agent.cli.running import print_json, warn
from voice_agent.errors import SinkError
from voice_agent.sinks.memory import MemorySink
from voice_agent.text.prosody import ProsodyConfig
from voice_agent.turn import Turn, TurnConfig

_CLOCK = "by the clock"


@dataclass(frozen=True, slots=True)
class Round:
    """One time the text was spoken: as what, its spans, when its first packet was there, and how long it sounds."""

    utterances: Sequence[Utterance]
    spans: Sequence[Span]
    start_s: float
    first_s: float
    end_s: float
    audio_s: float


async def profile(text: str, trace: Path, rounds: int, arithmetic: tuple[str, str], voice: str, json: bool) -> None:
    """Speaks ``text`` to nobody: twice to warm up, ``rounds`` times for the table, once more for the trace.

    ``arithmetic``: precision and compile of the engine, as in ``EngineConfig``.
    """
    config = TurnConfig(prosody=ProsodyConfig(voice=voice))
    os.environ.setdefault("KINETO_LOG_LEVEL", "5")  # or torch's tracer writes its comings and goings to the terminal
    precision, compiled = arithmetic
    engine = Engine.load(config=EngineConfig(precision=precision, compile=compiled))  # type: ignore[arg-type]
    for _ in range(2):
        await _speak(text, config, engine, Profiler())
    measured = [await _speak(text, config, engine, Profiler()) for _ in range(rounds)]
    try:
        await _write_trace(text, config, engine, measured[0].utterances, trace)
    except OSError as error:
        raise SinkError(f"cannot write {trace}: {error.strerror}; choose another place with --trace") from error
    model = type(engine.model).__name__
    audio_s = measured[0].audio_s
    rows = _table(measured) if audio_s else []
    if not audio_s:
        warn("there was nothing to say: the text has no letter or digit that can be spoken")
    if json:
        print_json({"model": model, "threads": engine.config.threads, "audio_s": audio_s, "trace": str(trace), "parts": rows})
        return
    _show(rows, f"{model}, {engine.config.threads} thread, {audio_s:.2f} s of speech, medians of {rounds}; {trace}")


async def _write_trace(text: str, config: TurnConfig, engine: Engine, utterances: Sequence[Utterance], path: Path) -> None:
    """Our spans; where torch computes, its own trace of the engine with our spans in it. It sees a single thread."""
    if not hasattr(engine.model, "vocoder"):
        profiler = Profiler()
        await _speak(text, config, engine, profiler)
        profiler.write_trace(path)
        return
    from tts_engine.models.torch_trace import torch_trace

    with torch_trace(path) as mark, Profiler(mark).watch(engine) as watched:
        for utterance in utterances:
            for _ in watched.speak(utterance):
                pass


async def _speak(text: str, config: TurnConfig, engine: Engine, profiler: Profiler) -> Round:
    """One turn through scheduler and sink, all of it timed."""
    with profiler.watch(engine) as watched, contextlib.closing(Scheduler(lambda: watched)) as scheduler:
        await scheduler.ready()
        sink = MemorySink(keep=False)
        turn = Turn(scheduler, config)
        start_s = time.monotonic()
        first_s = audio_s = 0.0
        utterances = []
        async with sink, aclosing(turn.chunks(text)) as chunks:
            async for chunk in chunks:
                now_s = time.monotonic()
                first_s = first_s or now_s
                audio_s += chunk.duration_s
                if chunk.last:
                    utterances.append(chunk.utterance)
                if chunk.made_s is not None:
                    profiler.add("hand-over", chunk.made_s, now_s)
                with profiler.span("sink"):
                    await sink.write(chunk)
        end_s = time.monotonic()
        planned = [times.planned_s for times in turn.report().sentences if times.planned_s is not None]
        if planned:
            profiler.add("text stages", start_s, start_s + planned[0])
    return Round(utterances, [span for span in profiler.spans if span.end_s >= start_s], start_s, first_s, end_s, audio_s)


def _table(rounds: Sequence[Round]) -> list[dict[str, object]]:
    """A row a part: medians over the rounds of its own milliseconds, before the first packet and in all."""
    first_ms: dict[str, list[float]] = defaultdict(list)
    all_ms: dict[str, list[float]] = defaultdict(list)
    for spoken in rounds:
        for part in PARTS:
            spans = [span for span in spoken.spans if span.name == part]
            all_ms[part].append(1000 * sum(span.own_s for span in spans))
            first_ms[part].append(1000 * sum(span.own_s for span in spans if span.end_s <= spoken.first_s))
        first_ms[_CLOCK].append(1000 * (spoken.first_s - spoken.start_s))
        all_ms[_CLOCK].append(1000 * (spoken.end_s - spoken.start_s))
    calls = {part: sum(span.name == part for span in rounds[-1].spans) for part in PARTS}
    total_ms = sum(statistics.median(all_ms[part]) for part in PARTS) or 1.0
    rows: list[dict[str, object]] = []
    for part in all_ms:
        part_ms = statistics.median(all_ms[part])
        if part in calls and not calls[part]:
            continue
        rows.append(
            {
                "part": part,
                "first_packet_ms": round(statistics.median(first_ms[part]), 3),
                "all_ms": round(part_ms, 3),
                "share": round(part_ms / total_ms, 3) if part in calls else None,
                "calls": calls.get(part),
            }
        )
    return rows


def _show(rows: Sequence[dict[str, object]], title: str) -> None:
    table = Table(box=None, pad_edge=False)
    for name in ("part", "first packet ms", "all ms", "share", "calls"):
        table.add_column(name, justify="left" if name == "part" else "right")
    for row in rows:
        share = row["share"]
        table.add_row(
            str(row["part"]),
            f"{row['first_packet_ms']:.2f}",
            f"{row['all_ms']:.2f}",
            f"{share:.0%}" if isinstance(share, float) else "",
            "" if row["calls"] is None else str(row["calls"]),
        )
    console = Console()
    if not console.is_terminal:
        console.width = 160
    console.print(title, highlight=False)
    console.print(table)
