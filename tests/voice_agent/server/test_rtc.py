"""Conversations over WebRTC with a peer of aiortc: typed questions, captions, interruption, settings, the end."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import numpy as np
import pytest

from tests.voice_agent.scripted import ScriptedModel
from tests.voice_agent.server.humming import HummingEngine
from tests.voice_agent.server.rtc_client import FRAME, RATE, Microphone, RtcClient
from tests.voice_agent.server.serving import serving, until
from voice_agent.server import rtc_peer
from voice_agent.server.app import create_app
from voice_agent.server.config import KeySettings, Limits, RecognizerSettings, RtcSettings, ServerConfig
from voice_agent.server.page import overview
from voice_agent.testing.fake_engine import LETTER_SAMPLES, FakeSynthesizer

ANSWER = ["It left ", "on ", "Monday. ", "Wait ", "a day."]
LONG = ["On it ", "goes, ", "so it ", "can be ", "cut. "] * 12


@asynccontextmanager
async def server(answer: Any = ANSWER, **config: Any) -> AsyncGenerator[tuple[str, Any, ScriptedModel], None]:
    """Its URL, its service and its model."""
    model = ScriptedModel(answer)
    config.setdefault("recognizer", RecognizerSettings(kind="none"))
    app = create_app(ServerConfig(**config), engine=HummingEngine(cost=0.01, level=0.5), model=model)
    async with serving(app) as address:
        yield f"http://{address}", app.state.service, model


def spoken_s(client: RtcClient, since: int = 0) -> float:
    """Seconds of frames in which something is said."""
    return sum(float(np.abs(samples).max()) > 0.1 for _, _, samples in client.frames[since:]) * FRAME / RATE


async def test_a_typed_question_is_answered_aloud_and_with_captions():
    async with server() as (url, service, model):
        async with RtcClient(url) as client:
            hello = await client.until("Hello")
            assert hello["microphone"] is False
            assert hello["why"]
            client.send("text", text="Where is my parcel?")
            ended = await client.until("TurnEnded")
            assert ended["error"] is None
            assert not ended["interrupted"]
            assert ended["heard"] == "".join(ANSWER)
            assert " ".join(caption["text"] for caption in client.of("Caption")) == "".join(ANSWER)
            assert model.asked[0][-1]["content"] == "Where is my parcel?"
            times = {event["index"]: event for event in client.of("SentenceTimes")}
            assert [times[index]["text"] for index in sorted(times)] == ["It left on Monday.", "Wait a day."]
            stages = ("token_s", "closed_s", "planned_s", "first_frame_s", "first_sample_s", "first_audible_s", "heard_s")
            for row in times.values():
                passed = [row[stage] for stage in stages]
                assert passed == sorted(passed)
            # The captions come when the words sound here, as far as a peer that reports nothing lets the server know.
            letters = sum(map(str.isalpha, "".join(ANSWER)))
            assert spoken_s(client) == pytest.approx(letters * LETTER_SAMPLES / 24_000, rel=0.25)  # in whole frames
            row = overview(service, "anonymous")["live"][0]
            assert row["kind"] == "rtc"
            assert row["audio_s"] == pytest.approx(ended["audio_s"], abs=0.01)
        await until(lambda: not service.streams.live)


async def test_an_interruption_silences_and_keeps_what_was_heard():
    async with server(LONG) as (url, _, model), RtcClient(url) as client:
        client.send("played", delay_s=0.05)
        client.send("text", text="Go on.")
        for _ in range(8):
            await client.until("Caption")
        client.send("interrupt")
        interruption = await client.until("Interruption")
        ended = await client.until("TurnEnded")
        assert ended["interrupted"]
        assert "".join(LONG).startswith(ended["heard"])
        assert 8 <= len(ended["heard"].split()) <= 12
        assert interruption["heard"] == ended["heard"]
        await asyncio.sleep(0.5)  # what was on its way
        frames = len(client.frames)
        await asyncio.sleep(0.5)
        assert spoken_s(client, frames) == 0
        client.send("text", text="And now?")
        await client.until("Caption")
        client.send("text", text="Never mind.")  # a new question takes the place of what is said
        assert (await client.until("TurnEnded"))["interrupted"]
        await client.until("Caption")
        client.send("interrupt")
        await client.until("TurnEnded")
        said = [message for message in model.asked[-1] if message["role"] == "assistant"]
        assert said[0]["content"] == ended["heard"]


async def test_frames_come_in_time_at_48_khz():
    async with server() as (url, _, _), RtcClient(url) as client:
        await until(lambda: len(client.frames) > 150)
        places = np.array([place for _, place, _ in client.frames])
        times = np.array([at for at, _, _ in client.frames])
        assert set(np.diff(places)) == {FRAME}
        assert all(len(samples) == FRAME for _, _, samples in client.frames)
        rate = np.polyfit(times - times[0], places - places[0], 1)[0]
        assert rate == pytest.approx(RATE, rel=0.02)


async def test_settings_hold_from_the_next_turn_on():
    async with server() as (url, _, _), RtcClient(url, speed=2.0) as client:
        client.send("text", text="Quick?")
        quick = (await client.until("TurnEnded"))["audio_s"]
        client.send("settings", voice="auto", speed=1.0, language="en")
        client.send("text", text="And slow?")
        slow = (await client.until("TurnEnded"))["audio_s"]
        assert slow > 1.5 * quick
        for wrong in ({"voice": "nobody"}, {"speed": 99}, {"language": "fr"}, {"unknown": 1}):
            client.send("settings", **wrong)
            failed = await client.until("Failed")
            assert next(iter(wrong)) in failed["message"] or "nobody" in failed["message"]
        client.send("text", text="Still here?")
        assert (await client.until("TurnEnded"))["error"] is None


async def test_rubbish_on_the_data_channel_is_answered_and_harms_nothing():
    async with server() as (url, _, _), RtcClient(url) as client:
        await client.until("Hello")
        for rubbish in (
            "",
            "{",
            "[1]",
            "null",
            '{"type": 5}',
            '{"type": "text"}',
            '{"type": "played", "delay_s": "x"}',
            "[" * 50_000,
        ):
            client.channel.send(rubbish)
            await client.until("Failed")
        client.channel.send("x" * 100_000)
        await client.until("Failed")
        client.channel.send(b"\xff\x00")
        await client.until("Failed")
        for delay_s in (-1e300, 1e300, 10**400, 0):
            client.send("played", delay_s=delay_s)
        client.send("text", text="x" * 30_000)
        assert "limit" in (await client.until("Failed"))["message"]
        client.send("text", text="Where is my parcel?")
        assert (await client.until("TurnEnded"))["heard"] == "".join(ANSWER)


async def test_sessions_end_by_message_by_request_by_leaving_and_by_time():
    limits = Limits(session_s=2.0)
    async with server(LONG, limits=limits) as (url, service, _):
        for way in ("close", "delete", "leave", "time"):
            client = await RtcClient(url).__aenter__()
            client.send("text", text="Go on.")
            await client.until("Caption")
            if way == "close":
                client.send("close")
            elif way == "delete":
                async with httpx.AsyncClient(base_url=url) as http:
                    assert (await http.delete(f"/rtc/{client.id}")).status_code == 204
                    await until(lambda: not service.streams.live)
                    assert (await http.delete(f"/rtc/{client.id}")).status_code == 204  # it has ended
            elif way == "leave":
                await client.peer.close()
            else:
                assert "time is up" in (await client.until("Failed"))["message"]
            await until(lambda: not service.streams.live)
            await client.leave()


async def test_a_server_that_ends_finishes_what_is_said():
    async with server() as (url, service, _), RtcClient(url) as client:
        client.send("text", text="Where is my parcel?")
        await client.until("Caption")
        draining = asyncio.create_task(service.drain())
        ended = await client.until("TurnEnded")
        assert ended["heard"] == "".join(ANSWER)
        await draining
        assert not service.streams.live


async def test_the_figures_tell_a_slow_llm_from_a_slow_server():
    slow = ["The parcel ", 0.2, "that you ", 0.2, "ask for ", 0.2, "left on Monday."]
    async with server(slow) as (url, service, _), RtcClient(url) as client:
        await client.until("Hello")
        client.send("text", text="Where is my parcel?")
        await client.until("TurnEnded")
        figures = {row["name"]: row["p50_s"] for row in service.metrics.percentiles()}
    assert figures["end_to_end"] > 0.5
    assert 0 < figures["first_sound"] < figures["end_to_end"] - 0.4


async def test_no_more_peers_than_allowed_and_no_strangers():
    keys = (KeySettings("page", "k" * 32),)
    async with server(keys=keys, rtc=RtcSettings(sessions=1)) as (url, service, _):
        stranger = RtcClient(url)
        assert (await stranger.ask(await stranger.offer())).status_code == 401
        await stranger.leave()
        async with RtcClient(url, key="k" * 32):
            second = RtcClient(url, key="k" * 32)
            refused = await second.ask(await second.offer())
            assert refused.status_code == 503
            assert refused.json()["error"]["code"] == "overloaded"
            assert refused.headers["retry-after"]
            await second.leave()
        await until(lambda: not service.streams.live)
        async with RtcClient(url, key="k" * 32) as third:
            await third.until("Hello")


async def test_nothing_is_left_of_a_session():
    async with server() as (url, service, _):
        before = asyncio.all_tasks(), threading.active_count()
        for _ in range(3):
            async with RtcClient(url) as client:
                client.send("text", text="Where is my parcel?")
                await client.until("Caption")
        await until(lambda: not service.streams.live)
        await until(lambda: len(asyncio.all_tasks() - before[0]) == 0)
        await until(lambda: threading.active_count() <= before[1] + 4)  # the loop's pool for encoders


async def test_only_the_guest_whose_call_it_is_hangs_up_and_is_told_its_id():
    keys = (KeySettings("one", "1" * 32), KeySettings("two", "2" * 32))
    async with (
        server(keys=keys) as (url, service, _),
        RtcClient(url, key="1" * 32) as client,
        httpx.AsyncClient(base_url=url) as http,
    ):
        for key, shown in (("2" * 32, (None, None)), ("1" * 32, (client.id, "one"))):
            (row,) = (await http.get("/admin/streams", headers={"x-api-key": key})).json()["live"]
            assert (row["uid"], row["guest"], row["kind"]) == (*shown, "rtc")
        strange = await http.delete(f"/rtc/{client.id}", headers={"x-api-key": "2" * 32})
        assert strange.status_code == 404
        assert client.id in service.streams.live
        assert (await http.delete(f"/rtc/{client.id}", headers={"x-api-key": "1" * 32})).status_code == 204
        await until(lambda: not service.streams.live)


async def test_the_engine_waits_of_a_conversation_are_counted():
    async with server() as (url, service, _):
        async with RtcClient(url) as client:
            client.send("text", text="Where is my parcel?")
            await client.until("TurnEnded")
        await until(lambda: not service.streams.live)
        assert 'sayline_real_time_factor_count{kind="rtc"} 1.0' in service.metrics.text().decode()


async def test_a_microphone_that_fails_ends_the_call(monkeypatch):
    monkeypatch.setattr(rtc_peer, "_mono", lambda frame: 1 / 0)
    async with server() as (url, service, _), RtcClient(url, microphone=Microphone()) as client:
        assert "microphone" in (await client.until("Failed"))["message"]
        await until(lambda: not service.streams.live)


LOADED = "voice_agent.server.rtc_talk"


async def test_what_the_first_offer_needs_is_loaded_before_the_server_is_ready(monkeypatch):
    monkeypatch.delitem(sys.modules, LOADED, raising=False)
    app = create_app(ServerConfig(recognizer=RecognizerSettings(kind="none")), engine=FakeSynthesizer(cost=0.0))
    assert LOADED not in sys.modules  # making the application loads none of it
    await app.state.service.start()
    assert app.state.service.ready
    assert LOADED in sys.modules


async def test_a_server_without_aiortc_is_ready_all_the_same_and_says_what_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, LOADED, None)
    async with server() as (url, service, _):
        await until(lambda: service.ready)
        async with httpx.AsyncClient() as http:
            answer = await http.post(f"{url}/rtc/offer", json={"type": "offer", "sdp": "v=0"})
    assert answer.status_code == 501
    assert "sayline[server]" in answer.json()["error"]["message"]
