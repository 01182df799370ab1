"""WebRTC peers that send rubbish, and fifty that vanish without a word: refused or cleaned up, and nothing is left."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
import threading
from pathlib import Path

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.examples import examples
from tests.voice_agent.scripted import ScriptedModel
from tests.voice_agent.server.rtc_client import RtcClient
from tests.voice_agent.server.serving import serving, until
from voice_agent.server import rtc_peer
from voice_agent.server.app import create_app
from voice_agent.server.config import RecognizerSettings, RtcSettings, ServerConfig
from voice_agent.testing.fake_engine import FakeSynthesizer

ROUNDS, PEERS = 5, 10


def make_app(sessions: int = 50):
    config = ServerConfig(rtc=RtcSettings(sessions=sessions), recognizer=RecognizerSettings(kind="none"))
    return create_app(config, engine=FakeSynthesizer(cost=0.01), model=ScriptedModel(["Word after word. "] * 100))


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


async def a_real_offer() -> str:
    client = RtcClient("")
    try:
        return await client.offer()
    finally:
        await client.leave()


def spoiled(sdp: str, draw) -> str:
    """The offer with lines dropped, doubled, swapped, cut off or replaced by rubbish."""
    lines = sdp.split("\r\n")
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(lines) - 1))
        way = draw(st.sampled_from(["drop", "double", "cut", "number", "rubbish", "move"]))
        if way == "drop":
            del lines[place]
        elif way == "double":
            lines.insert(place, lines[place])
        elif way == "cut":
            lines[place] = lines[place][: draw(st.integers(0, len(lines[place])))]
        elif way == "number":
            lines[place] = re.sub(r"\d+", str(draw(st.sampled_from([-1, 0, 65_536, 10**30]))), lines[place])
        elif way == "rubbish":
            lines[place] = draw(st.text(max_size=40))
        else:
            lines.insert(draw(st.integers(0, len(lines) - 1)), lines.pop(place))
        if not lines:
            break
    return "\r\n".join(lines)


async def test_spoiled_offers_are_refused_and_leave_nothing(monkeypatch):
    monkeypatch.setattr(rtc_peer, "_CONNECT_S", 0.0)
    offers: list[str] = []
    real = await a_real_offer()

    @settings(max_examples=examples(60), suppress_health_check=list(HealthCheck))
    @given(st.data())
    def collect(data):
        offers.append(spoiled(real, data.draw))

    collect()
    offers += ["", "v=0", "\r\n" * 1000, "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\n" * 3, real + real, real.replace("opus", "speex")]
    offers.append(real + "a=candidate:1 1 udp 1 10.0.0.1 9 typ host\r\n" * 200)
    app = make_app()
    async with serving(app) as address, httpx.AsyncClient(base_url=f"http://{address}", timeout=60) as http:
        await http.get("/health")
        before = open_files(), threading.active_count(), len(asyncio.all_tasks())
        kinds = []
        for offer in offers:
            answer = await http.post("/rtc/offer", json={"type": "offer", "sdp": offer})
            kinds.append(answer.status_code)
            assert answer.status_code in (200, 400, 503), answer.text
            if answer.status_code == 400:
                assert answer.json()["error"]["message"]
            else:
                assert not answer.is_error or answer.headers["retry-after"]
        for body in (b"", b"{", b"[]", b'{"type": "answer", "sdp": "x"}', b'{"type": "offer"}', b'{"type": "offer", "sdp": 5}'):
            assert (await http.post("/rtc/offer", content=body)).status_code == 400
        huge = await http.post("/rtc/offer", content=json.dumps({"type": "offer", "sdp": "x" * 70_000}))
        assert huge.status_code == 413
        assert kinds.count(400) > 15
        await until(lambda: not app.state.service.streams.live)
        await until(lambda: len(asyncio.all_tasks()) <= before[2] + 2, limit_s=60)
        await until(lambda: open_files() <= before[0] + 4)
        assert threading.active_count() <= before[1] + 6


_VANISHING = """
import asyncio, sys
sys.path.insert(0, {root!r})
from tests.voice_agent.server.rtc_client import RtcClient

async def main():
    clients = [RtcClient({url!r}, listens=n < 2) for n in range({count})]
    connected = []

    async def live():
        while True:
            await asyncio.sleep(0.5)
            for client in connected:
                client.send("played", delay_s=0.1)

    living = asyncio.create_task(live())
    for client in clients:
        connected.append(await client.__aenter__())
        client.send("text", text="Go on.")
    for client in clients:
        await client.until("TurnBegan")
    print("ready", flush=True)
    await living

asyncio.run(main())
"""


@pytest.mark.slow
async def test_fifty_peers_that_vanish_are_noticed_and_leave_nothing(monkeypatch):
    """Five processes of ten peers each, two of which hear an answer, are killed; another peer goes on."""
    monkeypatch.setattr(rtc_peer, "_VANISHED_LOOKS", 10)
    app = make_app(ROUNDS * PEERS + 1)
    root = str(Path(__file__).parents[3])
    async with serving(app) as address:
        url = f"http://{address}"
        async with RtcClient(url) as other:
            await other.until("Hello")
            keeping = asyncio.create_task(_keep_alive(other))
            before = open_files(), threading.active_count(), len(asyncio.all_tasks())
            for _ in range(ROUNDS):
                await vanish(_VANISHING.format(root=root, url=url, count=PEERS), app)
            await until(lambda: len(app.state.service.streams.live) == 1, limit_s=60)
            await until(lambda: len(asyncio.all_tasks()) <= before[2] + 3, limit_s=60)
            await until(lambda: open_files() <= before[0] + 4)
            await until(lambda: threading.active_count() <= before[1] + 6)
            other.send("text", text="Still there?")  # who did not vanish is unharmed
            await other.until("Caption")
            keeping.cancel()
            await asyncio.wait({keeping})


async def vanish(code: str, app) -> None:
    """Ten peers in a process of their own, killed when all are spoken to."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE, start_new_session=True
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(120):
            assert await process.stdout.readline() == b"ready\n"
        # where the machine is held up, some were silent for long enough to be taken for gone already
        assert len(app.state.service.streams.live) > PEERS // 2
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


async def _keep_alive(client: RtcClient) -> None:
    while True:
        client.send("played", delay_s=0.1)
        await asyncio.sleep(0.5)
