"""/health, /metrics, and that the alerts and the dashboard in deploy/ speak of figures that are there."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from dataclasses import asdict
from pathlib import Path
from unittest.mock import AsyncMock

import httpx
import numpy as np
import pytest
import yaml

from tts_engine.scheduler import Scheduler
from tts_engine.types import AudioChunk, AudioFormat, Utterance
from voice_agent.server.app import create_app
from voice_agent.server.config import EngineSettings, KeySettings, Limits, ServerConfig
from voice_agent.server.health import Health
from voice_agent.server.metrics import Metrics
from voice_agent.server.page import overview
from voice_agent.server.score import Score
from voice_agent.server.service import Service
from voice_agent.server.settings import load_config
from voice_agent.testing.fake_engine import FakeSynthesizer

DEPLOY = Path(__file__).parents[3] / "deploy"
KEY = "0123456789abcdef0123"


class Hand:
    """A clock that is moved by hand."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def scored(*latencies_s: float) -> float:
    score = Score(Hand())
    for latency_s in latencies_s:
        score.answered(latency_s)
    return score.value


def test_the_score_follows_its_formula() -> None:
    assert scored() == 100
    assert scored(0.0) == 100  # 90 + 100, at most 100
    assert scored(0.095) == pytest.approx(95)
    assert scored(0.2) == pytest.approx(90)
    assert scored(0.2, 0.2, 0.05) == pytest.approx(100)  # 0.9 · 81 + 50, at most 100
    assert scored(*[0.095] * 100) == pytest.approx(50, abs=0.1)
    assert scored(*[0.5] * 10) == pytest.approx(100 * 0.9**10)


def test_three_slow_answers_in_a_row_halve_it() -> None:
    assert scored(1.5, 1.5) == pytest.approx(81)
    assert scored(1.5, 1.5, 1.5) == pytest.approx(100 * 0.9**3 / 2)
    assert scored(1.5, 1.5, 1.5, 1.5) == pytest.approx(100 * 0.9**4 / 4)
    assert scored(1.5, 1.5, 0.9, 1.5) == pytest.approx(100 * 0.9**4)


def test_old_answers_are_forgotten() -> None:
    clock = Hand()
    score = Score(clock)
    for _ in range(30):
        score.answered(2.0)
    assert score.value < 1
    clock.now_s += 61
    assert score.value == 100


def service_of(config: ServerConfig | None = None) -> Service:
    service = Service(config or ServerConfig(), FakeSynthesizer())
    service.ready = True
    return service


async def test_the_states_of_a_server() -> None:
    service = service_of(ServerConfig(limits=Limits(streams=2), engine=EngineSettings(sessions=3)))
    assert Health.of(service).status == "ok"
    service.ready = False
    assert Health.of(service).status == "starting"
    service.ready = True
    for _ in range(30):
        service.score.answered(2.0)
    assert (Health.of(service).status, Health.of(service).detail) == ("sick", "recent answers were slow")
    with service.streams.open("speech", "web", "auto"), service.streams.open("speech", "web", "auto"):
        assert Health.of(service).status == "full"
        service.gate.draining = True
        assert Health.of(service).status == "draining"


class LateEngine(FakeSynthesizer):
    """A slow engine that loads until it is told to have loaded."""

    def __init__(self) -> None:
        super().__init__(cost=100)
        self.loaded = asyncio.Event()

    async def ready(self) -> None:
        await self.loaded.wait()


async def test_a_request_that_waited_while_the_engine_loaded_does_not_make_it_sick() -> None:
    engine = LateEngine()
    service = Service(ServerConfig(limits=Limits(wait_s=0.001)), engine)
    starting = asyncio.create_task(service.start())
    early = service.engine.open()
    await early.put(Utterance("hello"))
    await asyncio.sleep(0.01)
    engine.loaded.set()
    await starting
    assert service.failure is None
    assert Health.of(service).status == "ok"
    early.cancel()


async def test_a_server_whose_places_are_taken_says_so() -> None:
    service = Service(ServerConfig(engine=EngineSettings(sessions=2)), FakeSynthesizer())
    told: list[str] = []
    service.on_ready.append(lambda: told.append(Health.of(service).status))
    assert Health.of(service).status == "starting"
    await service.start()
    assert told == ["ok"]
    with service.engine.seat("one"), service.engine.seat("another"):  # neither speaks, and both may
        assert Health.of(service).status == "full"
    assert Health.of(service).status == "ok"


@pytest.mark.parametrize(("ready", "status", "code"), [(True, "ok", 200), (False, "starting", 503)])
async def test_health_over_http_needs_no_key(ready: bool, status: str, code: int) -> None:
    app = create_app(ServerConfig(keys=(KeySettings("a", KEY),)), engine=FakeSynthesizer())
    app.state.service.ready = ready
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        health = await client.get("/health")
        assert (health.status_code, health.json()["status"]) == (code, status)
        assert set(health.json()) == {"status", "score", "rows", "free_rows", "waiting", "streams"}
        assert (await client.get("/metrics")).status_code == 401
        figures = await client.get("/metrics", headers={"authorization": f"Bearer {KEY}"})
        assert figures.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert "sayline_rows 64.0" in figures.text
        assert 'sayline_refused_total{code="invalid_api_key"} 1.0' in figures.text


def chunk(level: float, seconds: float = 0.1, start_sample: int = 0) -> AudioChunk:
    return AudioChunk(np.full(round(24_000 * seconds), level, np.float32), AudioFormat(), Utterance("x"), start_sample)


async def test_what_a_stream_is_told_becomes_figures() -> None:
    service = service_of()
    with service.streams.open("live", "web", "auto") as stream:
        stream.asked()
        stream.text(12, "secret words")
        stream.sent(chunk(0.0))
        stream.sent(chunk(0.5, start_sample=2400))
        stream.heard(0.2)
        stream.interrupted(0.03)
        stream.text(5)
        stream.sent(chunk(0.5))
        stream.underran(2)
    text = service.metrics.text().decode()
    for line in (
        'sayline_first_sound_seconds_count{kind="live"} 2.0',
        'sayline_first_audible_seconds_count{kind="live"} 2.0',
        'sayline_end_to_end_seconds_count{kind="live"} 2.0',
        'sayline_barge_in_silence_seconds_count{kind="live"} 1.0',
        'sayline_barge_ins_total{kind="live"} 1.0',
        'sayline_underruns_total{kind="live"} 2.0',
        'sayline_text_characters_total{kind="live"} 17.0',
        'sayline_heard_seconds_total{kind="live"} 0.2',
        'sayline_requests_total{kind="live",outcome="ok"} 1.0',
    ):
        assert line in text
    assert float(re.search(r'sayline_audio_seconds_total\{kind="live"\} (\S+)', text)[1]) == pytest.approx(0.3)
    shown = overview(service, "web")
    assert shown["live"] == []
    assert [row["count"] for row in shown["latency"]] == [2, 2, 2]
    assert shown["underruns"] == 2


def test_buckets_resolve_5_to_500_ms() -> None:
    """Between two neighbours a latency is known to a third, so a quantile is too."""
    text = Metrics()
    text.latency("first_audible", "live", 0.1)
    edges = sorted({float(edge) for edge in re.findall(r'le="([\d.]+)"', text.text().decode())})
    inside = [edge for edge in edges if 0.005 <= edge <= 0.5]
    assert (inside[0], inside[-1]) == (0.005, 0.5)
    assert 0.25 in inside
    assert max(high / low for low, high in itertools.pairwise(inside)) <= 1.51


def names_of(expression: str) -> set[str]:
    return set(re.findall(r"sayline_\w+", expression))


def known() -> set[str]:
    text = create_app(ServerConfig(), engine=FakeSynthesizer()).state.service.metrics.text().decode()
    kinds = dict(re.findall(r"# TYPE (\S+) (\S+)", text))
    return {f"{name}_bucket" if kind == "histogram" else name for name, kind in kinds.items()}


def test_alerts_speak_of_figures_that_are_there() -> None:
    rules = yaml.safe_load((DEPLOY / "alerts.yaml").read_text())["groups"][0]["rules"]
    names = {name for rule in rules for name in names_of(rule["expr"])}
    assert names <= known()
    slow = next(rule for rule in rules if rule["alert"] == "SaylineSlowToAudible")
    assert "0.99" in slow["expr"]
    assert slow["expr"].endswith("> 0.25")
    assert all(rule["annotations"]["action"] for rule in rules)


def test_the_dashboard_speaks_of_all_figures() -> None:
    dashboard = json.loads((DEPLOY / "grafana.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    names = {name for expression in expressions for name in names_of(expression)}
    assert names == known()
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])


def test_the_example_settings_are_the_defaults() -> None:
    assert load_config(DEPLOY / "sayline.yaml") == ServerConfig()
    written = yaml.safe_load((DEPLOY / "sayline.yaml").read_text(encoding="utf-8"))
    known = asdict(ServerConfig())
    assert set(written) == set(known) - {"keys"}  # which have no default
    assert all(set(written[name]) == set(known[name]) for name in known if isinstance(known[name], dict))


async def test_the_engine_is_closed_whatever_else_fails_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[bool] = []
    monkeypatch.setattr(Scheduler, "close", lambda engine: closed.append(True))
    monkeypatch.setattr(Scheduler, "ready", AsyncMock())
    app = create_app(ServerConfig())

    async def fail() -> None:
        raise RuntimeError("it would not end")

    app.state.service.on_close.append(fail)
    with pytest.raises(RuntimeError, match="would not end"):
        async with app.router.lifespan_context(app):
            pass
    assert closed == [True]
