"""Who is let in: keys, rates, numbers at once, pages of other origins, names of the server."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import httpx
import pytest

from voice_agent.server.app import create_app
from voice_agent.server.auth import Gate, key_in
from voice_agent.server.config import KeySettings, Limits, ServerConfig
from voice_agent.server.refusals import RefusedError
from voice_agent.server.service import Service
from voice_agent.testing.fake_engine import FakeSynthesizer

WEB, PHONE = "web-0123456789abcdef", "phone-0123456789abcdef"
KEYS = (KeySettings("web", WEB, requests_per_minute=6, concurrent=2), KeySettings("phone", PHONE, requests_per_minute=0))
LOCAL = {"host": "127.0.0.1:8000"}


class Hand:
    """A clock that is moved by hand."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


async def name_of(gate: Gate, headers: dict[str, str], client: str = "127.0.0.1") -> str:
    async with gate.admit(headers, client) as guest:
        return guest.name


async def refused(gate: Gate, headers: dict[str, str], client: str = "127.0.0.1") -> RefusedError:
    with pytest.raises(RefusedError) as caught:
        await name_of(gate, headers, client)
    return caught.value


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": f"Bearer {WEB}"},
        {"authorization": f"bearer  {WEB} "},
        {"authorization": f"Token {WEB}"},
        {"x-api-key": WEB},
        {"sec-websocket-protocol": f"token, {WEB}"},
    ],
)
async def test_ways_to_send_a_key(headers: dict[str, str]) -> None:
    assert await name_of(Gate(ServerConfig(keys=KEYS)), headers) == "web"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": ""},
        {"authorization": WEB},
        {"authorization": f"Basic {WEB}"},
        {"authorization": f"Bearer {WEB[:-1]}"},
        {"authorization": f"Bearer {WEB}x"},
        {"authorization": "Bearer Ünïcödé"},
        {"authorization": f"Bearer {WEB.upper()}"},
        {"sec-websocket-protocol": WEB},
    ],
)
async def test_no_key_and_wrong_keys(headers: dict[str, str]) -> None:
    error = await refused(Gate(ServerConfig(keys=KEYS)), headers)
    assert (error.status, error.code) == (401, "invalid_api_key")
    assert WEB not in str(error)


def test_headers_without_a_key() -> None:
    assert key_in({}) is None
    assert key_in({"sec-websocket-protocol": "token, a, b"}) is None


async def test_each_key_has_its_own_rate() -> None:
    clock = Hand()
    gate = Gate(ServerConfig(keys=KEYS), clock)
    web, phone = {"authorization": f"Bearer {WEB}"}, {"authorization": f"Bearer {PHONE}"}
    for _ in range(6):
        await name_of(gate, web)
    error = await refused(gate, web)
    assert (error.status, error.code) == (429, "rate_limit_exceeded")
    assert error.retry_after_s == pytest.approx(10.0)
    for _ in range(50):
        assert await name_of(gate, phone) == "phone"
    clock.now_s += 10.0
    await name_of(gate, web)
    assert (await refused(gate, web)).status == 429
    clock.now_s += 1e6  # a long rest gives a minute's worth, not more
    for _ in range(6):
        await name_of(gate, web)
    assert (await refused(gate, web)).status == 429


async def test_requests_that_are_open_count_until_they_end() -> None:
    gate = Gate(ServerConfig(keys=KEYS))
    web = {"authorization": f"Bearer {WEB}"}
    async with AsyncExitStack() as stack:
        for _ in range(2):
            await stack.enter_async_context(gate.admit(web, None))
        assert (await refused(gate, web)).code == "too_many_open"
    assert await name_of(gate, web) == "web"


async def test_a_cancelled_request_is_no_longer_open() -> None:
    gate = Gate(ServerConfig(keys=KEYS))

    async def wait() -> None:
        async with gate.admit({"x-api-key": WEB}, None):
            await asyncio.sleep(60)

    tasks = [asyncio.create_task(wait()) for _ in range(2)]
    await asyncio.sleep(0)
    assert (await refused(gate, {"x-api-key": WEB})).code == "too_many_open"
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    assert await name_of(gate, {"x-api-key": WEB}) == "web"


async def test_addresses_without_keys_are_bounded_and_forgotten() -> None:
    gate = Gate(ServerConfig(limits=Limits(requests_per_minute=2)), Hand())
    for client in range(12_000):
        await name_of(gate, LOCAL, f"10.0.{client // 250}.{client % 250}")
    assert len(gate._accounts) <= 10_001
    await name_of(gate, LOCAL, "10.9.9.9")
    await name_of(gate, LOCAL, "10.9.9.9")
    assert (await refused(gate, LOCAL, "10.9.9.9")).code == "rate_limit_exceeded"


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("http://127.0.0.1:8000", "127.0.0.1:8000"),
        ("http://localhost:8000", "LOCALHOST:8000"),
        ("https://app.example", "127.0.0.1:8000"),
        (None, "[::1]:8000"),
    ],
)
async def test_pages_that_may_call(origin: str | None, host: str) -> None:
    gate = Gate(ServerConfig(origins=("https://app.example",)))
    headers = {"host": host} | ({} if origin is None else {"origin": origin})
    assert await name_of(gate, headers) == "anonymous"


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "http://127.0.0.1:9999",
        "http://127.0.0.1",
        "https://app.example.evil.example",
        "",
        "http://",
        "http://[",
        "http://[::1",
    ],
)
async def test_pages_that_may_not_call(origin: str) -> None:
    error = await refused(Gate(ServerConfig(origins=("https://app.example",))), {**LOCAL, "origin": origin})
    assert (error.status, error.code) == (403, "origin_not_allowed")


async def test_a_star_lets_all_pages_call() -> None:
    assert await name_of(Gate(ServerConfig(origins=("*",))), {**LOCAL, "origin": "https://any.example"}) == "anonymous"


@pytest.mark.parametrize(
    "host", ["evil.example:8000", "evil.example", "192.168.0.7:8000", "[2001:db8::1]:80", "localhost.evil.example"]
)
async def test_without_keys_only_known_names_lead_here(host: str) -> None:
    """A name of the attacker's that leads to the loopback makes their page "of the same origin"."""
    error = await refused(Gate(ServerConfig()), {"host": host, "origin": f"http://{host}"})
    assert (error.status, error.code) == (403, "host_not_allowed")
    gate = Gate(ServerConfig(keys=KEYS))
    assert await name_of(gate, {"host": host, "x-api-key": PHONE}) == "phone"


async def test_names_may_be_added() -> None:
    gate = Gate(ServerConfig(hosts=("speech.example",)))
    assert await name_of(gate, {"host": "speech.example"}) == "anonymous"


async def test_nobody_is_let_in_while_draining() -> None:
    gate = Gate(ServerConfig())
    gate.draining = True
    error = await refused(gate, LOCAL)
    assert (error.status, error.code, error.retryable) == (503, "draining", True)


async def test_what_is_sent_is_not_read_before_the_key() -> None:
    app = create_app(ServerConfig(keys=KEYS), engine=FakeSynthesizer())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        for path in ("/rtc/offer", "/v1/audio/speech"):
            refused_first = await client.post(path, content=b"{")
            assert (refused_first.status_code, refused_first.json()["error"]["code"]) == (401, "invalid_api_key")
            known = await client.post(path, content=b"{", headers={"x-api-key": WEB})
            assert known.status_code == 400


async def test_each_answer_has_a_name_of_its_own() -> None:
    app = create_app(ServerConfig(keys=KEYS), engine=FakeSynthesizer())
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1") as client:
        answers = [await client.get(path) for path in ("/health", "/v1/models", "/none")]
    assert len({answer.headers["x-request-id"] for answer in answers}) == 3


async def test_a_server_ends_when_all_who_are_in_have_left() -> None:
    service = Service(ServerConfig(), FakeSynthesizer())
    async with service.gate.admit(LOCAL, "127.0.0.1"):  # a body that still comes in: nothing of it is spoken yet
        ending = asyncio.create_task(service.drain())
        await asyncio.sleep(0.2)
        assert not ending.done()
    await asyncio.wait_for(ending, 30)
    await service.close()
