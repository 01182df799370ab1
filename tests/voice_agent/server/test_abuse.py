"""Clients that mean no good: nothing crashes, nothing is left of them, and whoever listens meanwhile hears everything."""

from __future__ import annotations

import asyncio
import gc
import logging
import random

import psutil
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import InvalidStatus

from tests.voice_agent.server.abusers import ABUSES, PATH, abuse, open_socket, order
from tests.voice_agent.server.serving import LiveClient, serving, until
from voice_agent.server.app import create_app
from voice_agent.server.config import KeySettings, Limits, ServerConfig
from voice_agent.testing.fake_engine import FakeSynthesizer

# no clause that a stream may be cut at when it stalls: the samples depend on the text alone
TEXT = "The parcel left on Monday. It arrives at noon on Friday. "


async def listen(address: str) -> list[int]:
    """A client that means well: the samples of each of its turns."""
    samples = []
    async with LiveClient(f"ws://{address}{PATH}?words=false&ahead_s=3600") as client:
        for _ in range(5):
            before = len(client.audio)
            for token in TEXT.split(" "):
                await client.send("append", text=token + " ")
                await asyncio.sleep(0.005)
            await client.send("end")
            await client.until("done")
            samples.append(len(client.audio) - before)
    return samples


@pytest.mark.parametrize("what", ABUSES, ids=lambda what: what.__name__)
async def test_others_are_not_harmed_and_nothing_is_left(what, caplog):
    caplog.set_level(logging.ERROR)
    app = create_app(ServerConfig(limits=Limits(header_s=0.5, send_s=2.0)), engine=FakeSynthesizer(cost=0.01))
    me = psutil.Process()
    async with serving(app) as address:
        alone = await listen(address)
        before = (len(asyncio.all_tasks()), me.num_fds())
        listening = asyncio.create_task(listen(address))
        for seed in range(4):
            await asyncio.gather(*(abuse(address, what, random.Random(f"{seed} {i}")) for i in range(10)))
        assert await listening == alone
        await until(lambda: not app.state.service.streams.live and app.state.service.engine.sessions == 0)
        gc.collect()
        await until(lambda: len(asyncio.all_tasks()) <= before[0] and me.num_fds() <= before[1])
        assert await listen(address) == alone
    assert [record.getMessage() for record in caplog.records if record.name.startswith("voice_agent")] == []


async def test_a_peer_that_is_only_half_there_is_left(caplog):
    """Its handshake and its text came, then it neither reads nor writes nor closes."""
    limits = Limits(send_s=1.0, idle_s=1.5)
    app = create_app(ServerConfig(limits=limits), engine=FakeSynthesizer(cost=0.0))
    async with serving(app) as address:
        host, port = address.split(":")
        peers = []
        for i in range(10):
            reader, writer = await asyncio.open_connection(host, int(port), limit=512)
            wants_much = f"{PATH}?ahead_s=3600&encoding=pcm_f32le&sample_rate=48000"
            await open_socket(reader, writer, address, wants_much)
            writer.write(order("append", text="so many words " * 60) * (20 * (i % 2)))
            peers.append((reader, writer))
        await until(lambda: len(app.state.service.streams.live) == 10)
        await until(lambda: not app.state.service.streams.live)
        for _, writer in peers:
            writer.transport.abort()


async def test_a_key_gets_its_places_back_from_sockets_that_vanish():
    key = "0123456789abcdef"
    settings = (KeySettings("few", key, concurrent=3, requests_per_minute=0),)
    app = create_app(ServerConfig(keys=settings), engine=FakeSynthesizer(cost=0.01))
    async with serving(app) as address:
        url, headers = f"ws://{address}{PATH}", {"authorization": f"Bearer {key}"}

        async def take_all() -> list[ClientConnection]:
            sockets = [await connect(url, additional_headers=headers, proxy=None) for _ in range(3)]
            with pytest.raises(InvalidStatus) as refused:
                await connect(url, additional_headers=headers, proxy=None)
            assert refused.value.response.status_code == 429
            assert int(refused.value.response.headers["retry-after"]) >= 1
            return sockets

        for _ in range(5):
            for i, socket in enumerate(await take_all()):
                if i:  # idle, or in the middle of speech
                    await socket.send('{"type": "append", "text": "This will never be heard by anyone. "}')
                socket.transport.abort()
            await until(lambda: not app.state.service.gate.open and not app.state.service.streams.live)
