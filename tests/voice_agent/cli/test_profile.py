"""``sayline profile`` as a user meets it."""

from __future__ import annotations

import json

from tests.voice_agent.cli.test_commands import sayline


def test_a_table_and_a_trace(tmp_path) -> None:
    trace = tmp_path / "trace.json"
    done = sayline("profile", "Good morning. How are you?", "--rounds", "2", "--trace", str(trace))
    assert done.returncode == 0, done.stderr.decode()
    shown = done.stdout.decode()
    assert all(part in shown for part in ("text stages", "front end", "encoder", "prosody", "signal", "hand-over", "sink"))
    names = {event["name"] for event in json.loads(trace.read_text())["traceEvents"]}
    assert {"front end", "encoder", "prosody", "signal", "sink"} <= names


def test_json(tmp_path) -> None:
    done = sayline("profile", "Good morning.", "--rounds", "1", "--json", "--trace", str(tmp_path / "t.json"))
    report = json.loads(done.stdout)
    assert report["audio_s"] > 0.5
    parts = {row["part"]: row for row in report["parts"]}
    assert parts["encoder"]["calls"] == 1
    assert 0 < parts["by the clock"]["first_packet_ms"] <= parts["by the clock"]["all_ms"]


def test_eager_torch_has_its_operations_in_the_trace(tmp_path) -> None:
    trace = tmp_path / "trace.json"
    done = sayline("profile", "Good morning.", "--rounds", "1", "--compile", "none", "--trace", str(trace))
    assert done.returncode == 0, done.stderr.decode()
    assert all(part in done.stdout.decode() for part in ("decoder", "vocoder body"))
    names = {event["name"] for event in json.loads(trace.read_text())["traceEvents"]}
    assert {"decoder", "signal", "aten::linear"} <= names


def test_an_arithmetic_that_nobody_knows() -> None:
    done = sayline("profile", "Good morning.", "--precision", "float64")
    assert done.returncode == 2
    assert "precision must be one of" in done.stderr.decode()


def test_a_trace_that_cannot_be_written(tmp_path) -> None:
    done = sayline("profile", "Good morning.", "--rounds", "1", "--trace", str(tmp_path / "nowhere" / "t.json"))
    assert done.returncode == 4
    assert "choose another place with --trace" in done.stderr.decode()


def test_nothing_to_say(tmp_path) -> None:
    done = sayline("profile", "…", "--rounds", "1", "--trace", str(tmp_path / "t.json"))
    assert done.returncode == 0
    assert "nothing to say" in done.stderr.decode()
    assert "by the clock" not in done.stdout.decode()
