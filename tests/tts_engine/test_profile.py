"""The profiler times an engine without changing what it says, and leaves nothing behind."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest

from tts_engine.engine import Engine, EngineConfig
from tts_engine.models import rows
from tts_engine.profile import PARTS, Profiler
from tts_engine.types import Utterance

TEXT = "The engineer will arrive between two and five."


def said(engine: Engine) -> np.ndarray:
    return np.concatenate([chunk.samples for chunk in engine.speak(Utterance(TEXT))])


def test_own_times_leave_out_what_is_inside() -> None:
    profiler = Profiler()
    with profiler.span("outer"):
        time.sleep(0.02)
        with profiler.span("inner"):
            time.sleep(0.03)
        with profiler.span("inner"):
            time.sleep(0.01)
    inner, again, outer = profiler.spans
    assert (inner.name, again.name, outer.name) == ("inner", "inner", "outer")
    assert inner.own_s == inner.end_s - inner.start_s >= 0.03
    assert outer.own_s == pytest.approx(outer.end_s - outer.start_s - inner.own_s - again.own_s)


def test_a_span_that_raises_is_kept() -> None:
    profiler = Profiler()
    with pytest.raises(ZeroDivisionError), profiler.span("outer"), profiler.span("inner"):
        raise ZeroDivisionError
    assert [span.name for span in profiler.spans] == ["inner", "outer"]
    with profiler.span("next"):
        pass
    assert profiler.spans[-1].own_s == profiler.spans[-1].end_s - profiler.spans[-1].start_s


def test_it_changes_nothing_and_leaves_nothing(engine: Engine) -> None:
    before = said(engine)
    signal_step, attributes = rows.signal_step, set(vars(engine.model))
    profiler = Profiler()
    with profiler.watch(engine) as watched:
        assert np.array_equal(said(watched), before)
    assert rows.signal_step is signal_step
    assert set(vars(engine.model)) == attributes
    count = len(profiler.spans)
    assert np.array_equal(said(engine), before)
    assert len(profiler.spans) == count


def test_the_parts_add_up(engine: Engine) -> None:
    profiler = Profiler()
    with profiler.watch(engine) as watched:
        started_s = time.monotonic()
        said(watched)
        took_s = time.monotonic() - started_s
    names = {span.name for span in profiler.spans}
    assert {"front end", "encoder", "prosody", "network", "signal", "packet", "plan"} <= names <= set(PARTS)
    assert 0.5 * took_s < sum(span.own_s for span in profiler.spans) <= took_s
    assert all(span.own_s >= 0 for span in profiler.spans)


def test_decoder_and_vocoder_are_told_apart_where_they_are_one_graph() -> None:
    engine = Engine.load(config=EngineConfig(compile="onnx"))
    before, sessions = said(engine), dict(engine.model._sessions)
    profiler = Profiler()
    with profiler.watch(engine) as watched:
        assert np.array_equal(said(watched), before)
    assert engine.model._sessions == sessions
    spans = {name: [span for span in profiler.spans if span.name == name] for name in ("network", "decoder", "vocoder body")}
    assert len({len(found) for found in spans.values()}) == 1
    for whole, decoder, body in zip(*spans.values(), strict=True):
        assert whole.start_s < decoder.start_s < decoder.end_s == body.start_s < body.end_s == whole.end_s
        assert whole.own_s + decoder.own_s + body.own_s == pytest.approx(whole.end_s - whole.start_s)


def test_the_trace_can_be_read(engine: Engine, tmp_path) -> None:
    profiler = Profiler()
    with profiler.watch(engine) as watched:
        said(watched)
    profiler.add("sink", 1.0, 1.5)
    profiler.write_trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert len(events) == len(profiler.spans)
    assert all(event["ph"] == "X" and event["dur"] >= 0 for event in events)
    assert events[-1]["dur"] == 500_000


def test_torch_is_traced_where_it_computes(models, tmp_path) -> None:
    from tts_engine.models.torch_trace import torch_trace
    from tts_engine.text.frontend import FrontEnd
    from tts_engine.weights import VoiceManifest

    voice = VoiceManifest.load()
    engine = Engine(voice, models, FrontEnd(voice.symbols))
    with torch_trace(tmp_path / "trace.json") as mark:
        profiler = Profiler(mark)
        with profiler.watch(engine) as watched:
            said(watched)
    names = {event["name"] for event in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]}
    assert {"decoder", "vocoder body", "signal", "aten::linear"} <= names
