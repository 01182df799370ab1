"""WebRTC over a network that loses 5 % of the packets and delays them by 50 ms ± 50 ms: understood, and without drift."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tests import recogniser
from tests.edits import edits
from tests.recogniser import english_words, transcribe
from tests.voice_agent.server.browser import chromium, page_of, record, recorded, require
from tests.voice_agent.server.lossy_path import blind_offer, lossy_path
from tests.voice_agent.server.rtc_client import RATE
from tests.voice_agent.server.serving import serving, until
from tts_engine.scheduler import Scheduler
from voice_agent.llm.demo import DemoChat, answer_to
from voice_agent.server.app import create_app
from voice_agent.server.config import RecognizerSettings, ServerConfig

pytestmark = [pytest.mark.peer, pytest.mark.slow]

ROOT = Path(__file__).parents[3]
QUESTION = "When are you open?"
LOSS, JITTER_S = 0.05, 0.05
SPACE, OURS, THEIRS = "sayline-test", "10.213.7.1", "10.213.7.2"


@asynccontextmanager
async def server() -> AsyncGenerator[str, None]:
    engine = Scheduler()
    engine.start()
    try:
        app = create_app(ServerConfig(recognizer=RecognizerSettings(kind="none")), engine=engine, model=DemoChat())
        async with serving(app) as address:
            await until(lambda: app.state.service.ready, limit_s=60)
            yield f"http://{address}"
    finally:
        engine.close()


def assert_understood(sound: np.ndarray, most_errors: float) -> None:
    expected = english_words(answer_to([QUESTION]))
    heard = english_words(transcribe(sound, "en", RATE))
    assert edits(heard, expected) / len(expected) <= most_errors, f"heard {heard}"


async def listen(url: str, out: Path, before: list[str], rewrite: Any = None) -> dict[str, Any]:
    """Runs the listener behind ``before``, hands its offer to the server, and gives what it has kept."""
    command = [*before, sys.executable, "-m", "tests.voice_agent.server.rtc_listener", str(out), QUESTION]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        offer = json.loads(await process.stdout.readline())
        if rewrite is not None:
            offer["sdp"] = blind_offer(offer["sdp"])
        async with httpx.AsyncClient(timeout=30) as http:
            answer = (await http.post(f"{url}/rtc/offer", json=offer)).raise_for_status().json()
        if rewrite is not None:
            answer["sdp"] = rewrite(answer["sdp"])
        process.stdin.write(f"{json.dumps(answer)}\n".encode())
        async with asyncio.timeout(150):
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return dict(np.load(out))


def assert_no_drift(got: dict[str, Any]) -> None:
    """The frames' places keep to the time of their arrival, and are not later at the end than at the start."""
    late_s = got["times"] - got["places"] / RATE
    quarter = len(late_s) // 4
    drift_s = np.median(late_s[-quarter:]) - np.median(late_s[:quarter])
    assert abs(drift_s) < 0.1, f"drifted by {drift_s:.3f} s in {got['times'][-1] - got['times'][0]:.0f} s"


async def test_a_peer_behind_a_lossy_relay(tmp_path):
    recogniser.require()
    async with server() as url, lossy_path(LOSS, JITTER_S) as path:
        got = await listen(url, tmp_path / "heard.npz", [], path.through)
    assert path.lost / (path.lost + path.passed) == pytest.approx(LOSS, rel=0.6)
    assert str(got["heard"]) == answer_to([QUESTION])
    assert_no_drift(got)
    assert_understood(got["sound"], 0.25)  # the peer's decoder conceals nothing: each loss is 20 ms of silence


async def test_a_browser_behind_a_lossy_relay():
    """Chromium's own jitter buffer and concealment; it gives no addresses of its own, and connects nevertheless."""
    require()
    recogniser.require()
    async with server() as url, lossy_path(LOSS, JITTER_S) as path, chromium() as browser, page_of(browser, url) as page:

        async def rewrite(route: Any) -> None:
            offer = route.request.post_data_json
            offer["sdp"] = blind_offer(offer["sdp"])
            response = await route.fetch(post_data=json.dumps(offer))
            answer = await response.json()
            answer["sdp"] = path.through(answer["sdp"])
            await route.fulfill(response=response, json=answer)

        await page.route("**/rtc/offer", rewrite)
        await page.fill("#question", QUESTION)
        await page.press("#question", "Enter")
        await page.wait_for_selector("#state[data-state=thinking]", timeout=30_000)
        await record(page)
        await page.wait_for_selector("#state[data-state=idle]", timeout=90_000)
        await page.wait_for_timeout(1000)
        sound = await recorded(page)
        assert path.lost > 20
        words = await page.eval_on_selector_all(".word.heard", "words => words.map(word => word.textContent)")
        assert " ".join(words) == answer_to([QUESTION])
        await page.click("#hang-up")
    assert_understood(sound, 0.2)


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def bad_network():
    """A network namespace behind a pair of interfaces with netem on both; skips with the reason where it cannot be."""
    if shutil.which("ip") is None or shutil.which("tc") is None:
        pytest.skip("no iproute2 on this machine")
    if os.geteuid() != 0:
        pytest.skip("a network namespace needs root")
    inside = ("ip", "netns", "exec", SPACE)
    netem = ("qdisc", "add", "root", "netem", "delay", "50ms", "50ms", "loss", "5%")
    steps = [
        ("ip", "netns", "add", SPACE),
        ("ip", "link", "add", "sayline0", "type", "veth", "peer", "name", "sayline1", "netns", SPACE),
        ("ip", "addr", "add", f"{OURS}/30", "dev", "sayline0"),
        ("ip", "link", "set", "sayline0", "up"),
        (*inside, "ip", "addr", "add", f"{THEIRS}/30", "dev", "sayline1"),
        (*inside, "ip", "link", "set", "sayline1", "up"),
        ("tc", *netem[:2], "dev", "sayline0", *netem[2:]),
        (*inside, "tc", *netem[:2], "dev", "sayline1", *netem[2:]),
    ]
    try:
        for step in steps:
            done = run(*step)
            if done.returncode:
                pytest.skip(f"no network namespace with netem here: {' '.join(step)}: {done.stderr.strip()}")
        yield list(inside)
    finally:
        run("ip", "link", "del", "sayline0")
        run("ip", "netns", "del", SPACE)


async def test_a_peer_in_a_network_with_netem(tmp_path, bad_network):
    recogniser.require()
    async with server() as url:
        got = await listen(url, tmp_path / "heard.npz", bad_network)
    assert str(got["heard"]) == answer_to([QUESTION])
    assert_no_drift(got)
    assert_understood(got["sound"], 0.25)


def test_the_relay_loses_and_delays():
    """What stands in for netem does what it says."""

    async def main() -> None:
        got: list[float] = []
        loop = asyncio.get_running_loop()
        async with lossy_path(0.2, 0.02) as path:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as target:
                target.bind(("127.0.0.1", 0))
                target.setblocking(False)
                port = target.getsockname()[1]
                path.through(f"a=candidate:1 1 udp 1 127.0.0.1 {port} typ host\r\n")
                sent_s = loop.time()
                for _ in range(500):
                    path.from_client(b"x", ("127.0.0.1", port))
                while path.passed > len(got) and loop.time() < sent_s + 5:
                    await loop.sock_recv(target, 10)
                    got.append(loop.time() - sent_s)
        assert path.lost == pytest.approx(100, abs=40)
        assert len(got) == path.passed
        assert np.mean(got) == pytest.approx(0.02, abs=0.015)

    asyncio.run(main())
