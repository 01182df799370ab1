"""The WebSocket sink against a client that plays: its messages, its reports, and how it goes away."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.voice_agent.sinks.playing_client import PlayingClient
from tts_engine.types import AudioFormat
from voice_agent.errors import InputError, SinkError
from voice_agent.sinks import WebSocketSink
from voice_agent.testing.clock import LoopClock, run_virtual
from voice_agent.testing.sink_conformance import chunk_of, tone


def sink_to(client, **options):
    return WebSocketSink(client, clock=LoopClock(), **options)


def reporting():
    client = PlayingClient()
    sink = sink_to(client, reports=True)
    client.report_to = sink.receive
    return client, sink


def test_the_header_comes_first_and_the_end_last():
    async def main():
        client = PlayingClient()
        async with sink_to(client) as sink:
            await sink.write(chunk_of(tone(0.1), last=True))
        assert client.messages == [
            {"type": "start", "encoding": "pcm_s16le", "sample_rate": 24_000, "channels": 1, "epoch": 0},
            {"type": "end"},
        ]
        assert client.binary == [960] * 5

    run_virtual(main())


def test_speech_is_sent_ahead_of_what_is_heard_but_not_far():
    async def main():
        client = PlayingClient()
        async with sink_to(client, latency_s=0.1) as sink:
            writing = asyncio.ensure_future(sink.write(chunk_of(tone(10.0), last=True)))
            await asyncio.sleep(1.0)
            assert 2.7 < sum(client.binary) / 48_000 < 3.1
            assert sink.playhead.heard_s == pytest.approx(0.9)
            await writing

    run_virtual(main())


def test_what_the_client_reports_counts():
    async def main():
        _, sink = reporting()
        async with sink:
            await sink.write(chunk_of(tone(1.0)))
            await asyncio.sleep(0.5)
            assert sink.playhead.heard_samples == pytest.approx(12_000, abs=480)
            assert sink.receive(json.dumps({"type": "played", "samples": 13_000, "epoch": 0}))
            assert sink.playhead.heard_samples == 13_000
            sink.receive(json.dumps({"type": "played", "samples": 10**9, "epoch": 0}))
            assert sink.playhead.heard_samples == 24_000  # never more than was sent

    run_virtual(main())


def test_a_clear_takes_the_clients_own_count():
    async def main():
        client, sink = reporting()
        async with sink:
            await sink.write(chunk_of(tone(1.5)))
            await asyncio.sleep(0.511)
            head = await sink.clear()
            assert head.heard_samples == len(client.heard())
            assert client.messages[-1] == {"type": "clear", "epoch": 1}
            late = json.dumps({"type": "played", "samples": 30_000, "epoch": 0})
            assert sink.receive(late)  # of before the clear, on the way while it was sent
            await sink.write(chunk_of(tone(1.0)))
            assert sink.playhead.heard_samples < head.heard_samples + 2400

    run_virtual(main())


def test_a_clear_does_not_wait_long_for_a_mute_client():
    async def main():
        client, sink = reporting()
        async with sink:
            await sink.write(chunk_of(tone(1.0)))
            await asyncio.sleep(0.3)
            client.mute = True
            await asyncio.sleep(0.1)
            began_s = asyncio.get_running_loop().time()
            head = await sink.clear()
            assert asyncio.get_running_loop().time() - began_s < 0.3
            assert head.heard_s == pytest.approx(0.3, abs=0.03)

    run_virtual(main())


def test_a_client_that_reports_nothing_is_gone():
    async def main():
        client, sink = reporting()
        client.mute = True
        await sink.start()
        began_s = asyncio.get_running_loop().time()
        with pytest.raises(SinkError, match="no progress for 10 s"):
            await sink.write(chunk_of(tone(5.0)))
        assert 9 < asyncio.get_running_loop().time() - began_s < 11
        await sink.close()

    run_virtual(main())


def test_a_long_pause_is_no_stall():
    async def main():
        _, sink = reporting()
        async with sink:
            await sink.write(chunk_of(tone(0.5), last=True))
            await asyncio.sleep(60)
            await sink.write(chunk_of(tone(3.0), last=True))
            await sink.drain()
            assert sink.playhead.heard_s == pytest.approx(3.5)

    run_virtual(main())


@pytest.mark.parametrize(
    "message",
    [
        "",
        "{",
        "[]",
        "null",
        "5",
        '"played"',
        '{"type": "played"}',
        '{"type": "ping"}',
        b"\xff",
        '{"type":"played","samples":"x"}',
        '{"type":"played","samples":1e999}',
        '{"type":"played","samples":NaN}',
        "[" * 100_000,
    ],
    ids=lambda message: repr(message[:32]),
)
def test_other_messages_are_left_alone(message):
    assert not sink_to(PlayingClient(), reports=True).receive(message)


def test_a_client_that_goes_away():
    async def main():
        client = PlayingClient()
        sink = sink_to(client)
        await sink.start()
        await sink.write(chunk_of(tone(0.1)))
        client.fail = ConnectionError("closed")
        with pytest.raises(SinkError, match=r"the listener is gone.*closed"):
            await sink.write(chunk_of(tone(9.0)))
        with pytest.raises(SinkError):
            await sink.drain()
        await sink.clear()
        await sink.close()

    run_virtual(main())


def test_a_send_that_blocks_holds_up_nobody():
    async def main():
        client = PlayingClient()
        send = client.send

        async def stuck(message):
            await send(message)
            if isinstance(message, bytes):
                await asyncio.sleep(3600)

        client.send = stuck
        sink = sink_to(client)
        await sink.start()
        writing = asyncio.ensure_future(sink.write(chunk_of(tone(9.0))))
        await asyncio.sleep(0.1)
        await asyncio.wait_for(sink.clear(), 0.05)
        await asyncio.wait_for(writing, 0.05)
        assert len(client.binary) == 1
        await asyncio.wait_for(sink.close(), 5)

    run_virtual(main())


def test_a_width_that_nobody_knows():
    with pytest.raises(InputError, match="2, 3 or 4 bytes"):
        WebSocketSink(PlayingClient(), format=AudioFormat(24_000, 1, 1))


@pytest.mark.peer
async def test_a_real_web_socket():
    """Over a real connection, with a client that reports what it has played."""
    server = pytest.importorskip("websockets.asyncio.server", reason="pip install websockets")
    client = pytest.importorskip("websockets.asyncio.client", reason="pip install websockets")
    heard: list[float] = []
    spoken = asyncio.Event()

    async def serve(connection):
        async with WebSocketSink(connection, reports=True) as sink:

            async def read():
                async for message in connection:
                    assert sink.receive(message)

            reading = asyncio.create_task(read())
            await sink.write(chunk_of(tone(0.5), last=True))
            await sink.drain()
            heard.append(sink.playhead.heard_s)
            writing = asyncio.create_task(sink.write(chunk_of(tone(9.0))))
            await asyncio.sleep(0.3)
            head = await sink.clear()
            heard.append(head.heard_s)
            await writing
            reading.cancel()
        spoken.set()

    player = PlayingClient()
    async with server.serve(serve, "127.0.0.1", 0) as serving:
        port = serving.sockets[0].getsockname()[1]
        async with client.connect(f"ws://127.0.0.1:{port}") as connection:
            reports: set[asyncio.Task[None]] = set()

            def report(message: str) -> None:
                sending = asyncio.ensure_future(connection.send(message))
                reports.add(sending)
                sending.add_done_callback(reports.discard)

            player.report_to = report
            async for message in connection:
                await player.send(message)
        await spoken.wait()
    assert heard[0] == pytest.approx(0.5)
    assert heard[1] == pytest.approx(0.8, abs=0.1)
    assert heard[1] * 24_000 == pytest.approx(len(player.heard()))
    assert [message["type"] for message in player.messages] == ["start", "clear", "end"]


def test_a_hold_is_told_and_nothing_is_sent_meanwhile():
    async def main():
        client, sink = reporting()
        async with sink:
            writing = asyncio.ensure_future(sink.write(chunk_of(tone(4.0))))
            await asyncio.sleep(0.5)
            head = await sink.hold()
            assert head.heard_samples == len(client.heard())  # what the client said when it stood still
            assert head.heard_s == pytest.approx(0.5, abs=0.06)
            sent = sum(client.binary)
            await asyncio.sleep(30.0)  # a client that is held makes no progress, and is not gone
            assert sum(client.binary) == sent
            assert sink.playhead == head
            await sink.resume()
            sink.set_gain(-12.0)
            await writing
            await sink.drain()
            assert len(client.heard()) == 96_000
            kinds = [message["type"] for message in client.messages]
            assert kinds == ["start", "hold", "resume", "gain"]
            assert client.messages[-1] == {"type": "gain", "db": -12.0}

    run_virtual(main())


def test_a_client_that_knows_no_hold_plays_what_it_has_and_that_counts():
    async def main():
        client, sink = reporting()
        client.knows_hold = False
        async with sink:
            writing = asyncio.ensure_future(sink.write(chunk_of(tone(4.0))))
            await asyncio.sleep(0.5)
            began_s = asyncio.get_running_loop().time()
            await sink.hold()
            assert asyncio.get_running_loop().time() - began_s < 0.3
            await asyncio.sleep(5.0)
            head = sink.playhead
            assert head.heard_samples == len(client.heard())
            assert head.heard_s < 3.0  # what it had been sent, and no more
            await sink.resume()
            await writing
            await sink.drain()
            assert len(client.heard()) == 96_000

    run_virtual(main())


def test_a_gain_from_before_the_start_is_told_behind_the_header():
    async def main():
        client = PlayingClient()
        sink = sink_to(client)
        sink.set_gain(-6.0)
        async with sink:
            await sink.write(chunk_of(tone(0.1), last=True))
        assert [message["type"] for message in client.messages] == ["start", "gain", "end"]

    run_virtual(main())


@pytest.mark.parametrize("db", [float("nan"), float("inf")])
def test_a_gain_is_a_number(db):
    with pytest.raises(InputError, match="decibels"):
        sink_to(PlayingClient()).set_gain(db)
