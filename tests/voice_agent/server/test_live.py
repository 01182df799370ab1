"""The token-in, audio-out socket over a real connection."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.exceptions import InvalidStatus

from tests.examples import examples
from tests.voice_agent.server.abusers import PATH, open_socket, order
from tests.voice_agent.server.serving import LiveClient, serving, until
from voice_agent.errors import SaylineError
from voice_agent.server.app import create_app
from voice_agent.server.config import KeySettings, Limits, ServerConfig
from voice_agent.server.live import LiveDialect
from voice_agent.server.live_session import Session
from voice_agent.testing.clock import run_virtual
from voice_agent.testing.fake_engine import FakeSynthesizer

TEXT = "The parcel left on Monday. It arrives on Friday, we hope."


@asynccontextmanager
async def live(query: str = "", config: ServerConfig | None = None, engine=None) -> AsyncGenerator[LiveClient, None]:
    """A client of a server of its own, greeted."""
    app = create_app(config or ServerConfig(), engine=engine or FakeSynthesizer(cost=0.01))
    async with serving(app) as address, LiveClient(f"ws://{address}{PATH}{query}") as client:
        await client.until("ready")
        yield client


async def test_a_turn_over_the_socket():
    async with live() as client:
        assert client.messages[0]["encoding"] == "pcm_s16le"
        assert client.messages[0]["sample_rate"] == 24_000
        for token in TEXT.split(" "):
            await client.send("append", text=token + " ")
        await client.send("end")
        done = await client.until("done")
        assert len(client.audio) == 2 * done["samples"]
        assert done["chars"] == len(TEXT) + 1
        words = {word["index"]: word["text"] for m in client.messages if m["type"] == "words" for word in m["words"]}
        assert " ".join(words.values()) == TEXT
        await client.send("truncate", epoch=1, ms=800)
        heard = await client.until("heard")
        assert heard["text"] == "The parcel left"
        assert heard["samples"] == 19_200
        await client.send("close")
        assert await client.closed() == 1000


async def test_base64_audio_says_where_it_belongs():
    async with live("?transport=base64&sample_rate=16000&words=false&speed=1.5") as client:
        assert {key: client.messages[0][key] for key in ("transport", "sample_rate", "words", "speed")} == {
            "transport": "base64",
            "sample_rate": 16_000,
            "words": False,
            "speed": 1.5,
        }
        await client.send("append", text=TEXT)
        await client.send("end")
        done = await client.until("done")
        sent = 0
        for message in client.messages:
            if message["type"] == "audio":
                assert (message["epoch"], message["start"]) == (1, sent)
                assert len(base64.b64decode(message["audio"])) == 2 * message["samples"]
                sent += message["samples"]
        assert sent == done["samples"] > 16_000
        assert not client.audio
        assert not [m for m in client.messages if m["type"] == "words"]


async def test_settings_over_the_socket():
    async with live() as client:
        await client.send("configure", voice="heart", speed=0.8, encoding="mulaw", sample_rate=8000, transport="base64")
        configured = await client.until("configured")
        assert (configured["encoding"], configured["transport"], configured["speed"]) == ("mulaw", "base64", 0.8)
        for wrong, param in (
            ({"speed": 99}, None),
            ({"speed": "fast"}, "speed"),
            ({"pace": 1}, "pace"),
            ({"encoding": "mp3"}, "encoding"),
            ({"sample_rate": 4}, None),
            ({"language": "de"}, "language"),
            ({"ahead_s": 0}, "ahead_s"),
            ({"transport": "carrier pigeon"}, "transport"),
            ({"words": "yes"}, "words"),
            ({"voice": 3}, "voice"),
        ):
            await client.send("configure", **{"transport": "binary", **wrong})
            refused = await client.until("error", "configured")
            assert refused["type"] == "error"
            assert param is None or refused["param"] == param
        await client.send("append", text="Still here.")
        await client.send("end")
        assert (await client.until("done"))["samples"] > 0
        assert not client.audio  # a configure that is refused changes nothing


@pytest.mark.parametrize(
    "query",
    [
        "?encoding=mp3",
        "?sample_rate=1",
        "?sample_rate=8000.5",
        "?voice=nobody",
        "?what=1",
        "?speed=0",
        "?language=xx",
        "?ahead_s=NaN",
    ],
)
async def test_a_query_that_cannot_be_used_is_refused_before_the_socket_opens(query):
    app = create_app(ServerConfig(), engine=FakeSynthesizer())
    async with serving(app) as address:
        with pytest.raises(InvalidStatus) as refused:
            async with LiveClient(f"ws://{address}{PATH}{query}"):
                pass
        assert refused.value.response.status_code == 400
        error = json.loads(refused.value.response.body)["error"]
        assert error["message"]
        assert error["param"] == query[1:].partition("=")[0]


async def test_a_refusal_is_no_error_in_the_log(caplog):
    app = create_app(ServerConfig(), engine=FakeSynthesizer())
    async with serving(app) as address:
        with pytest.raises(InvalidStatus):
            async with LiveClient(f"ws://{address}{PATH}?voice=nobody"):
                pass
    assert [record.getMessage() for record in caplog.records if record.levelname in ("WARNING", "ERROR")] == []


async def test_keys_and_full_houses_are_told_by_http():
    config = ServerConfig(keys=(KeySettings("one", "0123456789abcdef"),), limits=Limits(streams=1))
    app = create_app(config, engine=FakeSynthesizer())
    async with serving(app) as address:
        url = f"ws://{address}{PATH}"
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            with pytest.raises(InvalidStatus) as refused:
                async with LiveClient(url, additional_headers=headers):
                    pass
            assert refused.value.response.status_code == 401
        right = {"Authorization": "Bearer 0123456789abcdef"}
        async with LiveClient(url, additional_headers=right) as client:
            await client.until("ready")
            with pytest.raises(InvalidStatus) as refused:
                async with LiveClient(url, additional_headers=right):
                    pass
            assert refused.value.response.status_code == 503
            assert refused.value.response.headers["retry-after"]
        async with LiveClient(url, subprotocols=["token", "0123456789abcdef"]) as client:  # as a page does
            await client.until("ready")
            assert client.socket.subprotocol == "token"


async def test_messages_that_make_no_sense_are_answered_and_change_nothing():
    async with live() as client:
        wrong = [
            "", "null", "[]", "{}", "{", '{"type": 1}', '{"type": "append"}', '{"type": "append", "text": 5}', "[" * 5000,
            '{"type": "truncate"}', '{"type": "truncate", "epoch": 1}', '{"type": "played", "epoch": true, "ms": 1}',
            '{"type": "truncate", "epoch": 1, "samples": 1e999}', '{"type": "truncate", "epoch": 1, "samples": -1}',
            '{"type": "truncate", "epoch": 7, "ms": 1}', '{"type": "played", "epoch": 1, "ms": 1, "samples": 1}',
            '{"type": "played", "epoch": ' + "9" * 5000 + ', "ms": 1}', b"\xff\x00", b"{}",
        ]  # fmt: skip
        for message in wrong:
            await client.socket.send(message)
            refused = await client.until("error")
            assert refused["epoch"] is None
            assert refused["message"]
            assert not refused["retryable"]
        await client.send("append", text="\ud800 All is well. \udfff")
        await client.send("end")
        assert (await client.until("done"))["samples"] > 0


async def test_a_client_that_only_sends_rubbish_is_sent_away():
    async with live() as client:
        for _ in range(100):
            await client.socket.send("rubbish")
        assert await client.closed() == 1008


async def test_a_megabyte_at_once_is_refused_and_harms_nothing():
    config = ServerConfig(limits=Limits(message_bytes=2_000_000))
    async with live(config=config) as client:
        await client.send("append", text="x " * 500_000)
        refused = await client.until("error")
        assert (refused["code"], refused["retryable"]) == ("too_much_text", True)
        for _ in range(1000):  # and in pieces
            await client.send("append", text="word " * 200)
        await client.send("cancel")
        await client.until("cancelled")
        codes = {message["code"] for message in client.messages if message["type"] == "error"}
        assert codes == {"too_much_text"}
        await client.send("append", text="Fine.")
        await client.send("end")
        await client.until("done")


async def test_limits_of_a_session():
    limits = Limits(idle_s=0.4, session_s=1.2)
    async with live(config=ServerConfig(limits=limits)) as client:
        assert await client.closed() == 1008
        assert client.messages[-1]["code"] == "idle"
    async with live(config=ServerConfig(limits=limits)) as client:
        for _ in range(20):
            await client.send("append", text="a")
            await asyncio.sleep(0.1)
            if client.socket.close_code is not None:
                break
        assert await client.closed() == 1008
        assert client.messages[-1]["code"] == "session_limit"


async def test_a_server_that_shuts_down_finishes_what_is_said():
    app = create_app(ServerConfig(), engine=FakeSynthesizer(cost=0.05))
    async with serving(app) as address, LiveClient(f"ws://{address}{PATH}") as client:
        await client.send("append", text=TEXT)
        await client.until("words")
        app.state.service.streams.ending.set()
        assert await client.closed() == 1012
        kinds = [message["type"] for message in client.messages]
        assert "leaving" in kinds
        done = next(message for message in client.messages if message["type"] == "done")
        assert len(client.audio) == 2 * done["samples"]
        assert done["chars"] == len(TEXT)


async def test_a_client_that_does_not_read_is_left_after_a_while():
    config = ServerConfig(limits=Limits(send_s=0.5))
    app = create_app(config, engine=FakeSynthesizer(cost=0.0))
    async with serving(app) as address:
        reader, writer = await asyncio.open_connection(*address.split(":"), limit=1024)
        await open_socket(reader, writer, address, f"{PATH}?ahead_s=3600&encoding=pcm_f32le&sample_rate=48000")
        for _ in range(40):
            writer.write(order("append", text="many many words " * 30))
        await writer.drain()
        async with asyncio.timeout(20):
            await until(lambda: app.state.service.streams.live)
            await until(lambda: not app.state.service.streams.live)
        writer.transport.abort()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)
KINDS = ["configure", "append", "flush", "end", "cancel", "truncate", "played", "close", "what"]
KEYS = [
    "text",
    "epoch",
    "samples",
    "ms",
    "voice",
    "speed",
    "sample_rate",
    "encoding",
    "transport",
    "ahead_s",
    "words",
    "language",
]
ORDERS = st.builds(
    lambda kind, values: {"type": kind, **values},
    st.sampled_from(KINDS),
    st.dictionaries(st.sampled_from(KEYS), st.one_of(st.integers(-1, 3), JSON), max_size=3),
)
MESSAGES = st.one_of(ORDERS.map(json.dumps), JSON.map(json.dumps), st.text(max_size=50), st.binary(max_size=50))


@settings(max_examples=examples(60))
@given(st.lists(MESSAGES, max_size=40))
def test_any_messages_are_followed_or_refused(messages):
    """Whatever comes, the answers are valid JSON, and a turn can be spoken afterwards."""

    async def main():
        config = replace(ServerConfig(), limits=Limits(text_chars=500))
        app = create_app(config, engine=FakeSynthesizer())
        with app.state.service.streams.open("live", "test", "auto") as stream:
            dialect = LiveDialect({}, app.state.service.voices, "auto")
            session = Session(app.state.service.engine, config.limits, stream, dialect.speaking)
            speaking = asyncio.create_task(session.run())
            for message in messages:
                with contextlib.suppress(SaylineError):
                    dialect.read(session, message)
            session.cancel()
            dialect.read(session, json.dumps({"type": "configure", "ahead_s": 3600, "transport": "base64"}))
            session.append("All is well.")
            session.finish()
            kinds = []
            while (event := await session.next()) is not None:
                for text in dialect.write(event):
                    kinds.append(json.loads(text)["type"])
                    text.encode()
            assert kinds.count("done") == 1
            assert kinds[-1] == "done"
            await speaking

    run_virtual(main())


async def test_the_figures_tell_a_slow_llm_from_a_slow_server():
    app = create_app(ServerConfig(), engine=FakeSynthesizer(cost=0.0))
    async with serving(app) as address, LiveClient(f"ws://{address}{PATH}") as client:
        for token in TEXT.split(" "):
            await client.send("append", text=token + " ")
            await asyncio.sleep(0.1)
        await client.send("end")
        await client.until("done")
        figures = {row["name"]: row["p50_s"] for row in app.state.service.metrics.percentiles()}
    assert figures["end_to_end"] > 0.4
    assert 0 < figures["first_sound"] < figures["end_to_end"] - 0.3


async def test_what_breaks_the_speaker_ends_the_connection_as_failed(monkeypatch):
    async def broken(session: Session) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(Session, "run", broken)
    async with live() as client:
        assert (await client.until("error"))["code"] == "failed"
        assert await client.closed() == 1011
