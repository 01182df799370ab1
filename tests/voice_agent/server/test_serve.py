"""``sayline serve`` as a process: curl, slow and stuck clients, its log, SIGTERM."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import wave
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

from voice_agent.cli.main import app as cli

KEY = "0123456789abcdef0123"
SECRET = "The password is swordfish."


@dataclass
class Served:
    """A running server and what it has written."""

    process: subprocess.Popen[bytes]
    port: int
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def lines(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.log.read_text(encoding="utf-8").splitlines()]

    def get(self, path: str) -> tuple[int, bytes]:
        request = urllib.request.Request(f"{self.url}{path}", headers={"authorization": f"Bearer {KEY}"})
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                return response.status, response.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()


@contextlib.contextmanager
def served(folder: Path, *arguments: str) -> Iterator[Served]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = folder / "log.jsonl"
    hidden = {name: value for name, value in os.environ.items() if not name.startswith(("OPENAI_", "SAYLINE_"))}
    command = [sys.executable, "-W", "error", "-m", "voice_agent.cli", "serve", "--port", str(port), *arguments]
    with log.open("wb") as file:
        process = subprocess.Popen(command, stderr=file, stdout=file, env={**hidden, "SAYLINE_API_KEY": KEY})
    try:
        server = Served(process, port, log)
        until_s = time.monotonic() + 60
        while True:
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < until_s
            try:
                if server.get("/health")[0] == 200:
                    break
            except OSError:
                pass
            time.sleep(0.05)
        yield server
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    limits = [f"--set=limits.{name}" for name in ("header_s=1", "body_s=1", "send_s=2", "connections=100", "body_bytes=20000")]
    with served(tmp_path_factory.mktemp("serve"), *limits) as running:
        yield running


def body_of(text: str, **changes: object) -> bytes:
    return json.dumps({"model": "tts-1", "voice": "alloy", "input": text, "response_format": "wav", **changes}).encode()


def head_of(length: int) -> bytes:
    return (
        f"POST /v1/audio/speech HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {KEY}\r\n"
        f"content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
    ).encode()


@pytest.mark.peer
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_curl(server: Served, tmp_path: Path) -> None:
    path = tmp_path / "said.wav"
    done = subprocess.run(
        [
            "curl", "--silent", "--show-error", "--fail", f"{server.url}/v1/audio/speech",
            "--header", f"Authorization: Bearer {KEY}", "--json", body_of("Hello there.").decode(), "--output", str(path),
        ],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    assert done.stderr == b""
    with wave.open(str(path)) as file:
        assert 0.5 < len(file.readframes(10 * 24_000)) / 2 / 24_000 < 3


def test_no_key_no_speech(server: Served) -> None:
    request = urllib.request.Request(f"{server.url}/v1/audio/speech", body_of("Hello."), {"content-type": "application/json"})
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request, timeout=10)
    assert caught.value.code == 401
    assert json.loads(caught.value.read())["error"]["code"] == "invalid_api_key"


def test_the_log_has_a_line_a_request_and_nothing_that_was_said(server: Served) -> None:
    headers = {"content-type": "application/json", "authorization": f"Bearer {KEY}"}
    with urllib.request.urlopen(urllib.request.Request(f"{server.url}/v1/audio/speech", body_of(SECRET), headers)) as response:
        assert response.read()
    until_s = time.monotonic() + 10
    while not (found := [line for line in server.lines() if line.get("text_len") == len(SECRET)]):
        assert time.monotonic() < until_s
        time.sleep(0.05)
    line = found[0]
    assert {"uid", "qsize", "latency_ms", "text_len", "voice", "heard_s", "audio_s", "outcome"} <= set(line)
    assert (line["kind"], line["guest"], line["outcome"], line["level"]) == ("speech", "default", "ok", "info")
    written = server.log.read_text()
    assert "swordfish" not in written
    assert KEY not in written


def closed_after_s(client: socket.socket, most_s: float = 20.0) -> float:
    """How long until the server has closed the connection."""
    began_s = time.monotonic()
    client.settimeout(most_s)
    try:
        while client.recv(65_536):
            pass
    except ConnectionError:
        pass
    return time.monotonic() - began_s


@pytest.mark.parametrize("sent", [b"", b"POST /v1/audio/speech HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow:"])
def test_headers_that_do_not_come(server: Served, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(sent)
        assert 0.5 < closed_after_s(client) < 15


def test_headers_that_drip(server: Served) -> None:
    """Each byte in time, the whole never."""
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        began_s = time.monotonic()
        with contextlib.suppress(OSError):
            for letter in b"GET /health HTTP/1.1\r\n" + b"x" * 1000:
                client.sendall(bytes([letter]))
                time.sleep(0.1)
        assert time.monotonic() - began_s < 20


def test_a_body_that_does_not_come_is_told_so(server: Served) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.sendall(head_of(1000) + b'{"model"')
        client.settimeout(20)
        answer = client.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b"request_timeout" in answer


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_that_is_too_long(server: Served, chunked: bool) -> None:
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        if chunked:
            head = head_of(0).replace(b"content-length: 0", b"transfer-encoding: chunked")
            client.sendall(head + b"4000\r\n" + b"x" * 0x4000 + b"\r\n4000\r\n" + b"x" * 0x4000 + b"\r\n")
        else:
            client.sendall(head_of(10**9))
        client.settimeout(20)
        answer = client.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"] == "request_too_large"


def test_a_client_that_takes_nothing_is_left(server: Served) -> None:
    body = body_of("This is a sentence of a long text. " * 400, sample_rate=48_000)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", server.port))
        client.sendall(head_of(len(body)) + body)
        until_s = time.monotonic() + 60
        while not any(line.get("text_len", 0) > 10_000 for line in server.lines()):
            assert time.monotonic() < until_s
            time.sleep(0.1)
    line = next(line for line in server.lines() if line.get("text_len", 0) > 10_000)
    assert line["outcome"] == "left"


def test_more_connections_than_may_be(server: Served) -> None:
    clients = []
    try:
        clients = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(150)]
        time.sleep(2)  # those within the bound have sent no headers by now
        assert server.get("/health")[0] == 200
    finally:
        for client in clients:
            client.close()


def test_garbage(server: Served) -> None:
    for data in (b"\x16\x03\x01\x02\x00\x01\x00", b"\x00" * 1000, b"GET /" + b"a" * 100_000):
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(data)
            closed_after_s(client)
    assert server.get("/health")[0] == 200


def test_sigterm_lets_speech_in_flight_end_and_refuses_what_is_new(tmp_path: Path) -> None:
    with served(tmp_path, "--set=engine.ahead_s=1", "--set=drain_s=60") as server:
        body = body_of("This is a sentence of a text. " * 30, response_format="pcm", sample_rate=48_000)
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", server.port))
            client.sendall(head_of(len(body)) + body)
            taken = client.recv(1000)
            server.process.send_signal(signal.SIGTERM)
            until_s = time.monotonic() + 20
            while server.get("/health")[0] != 503:
                assert time.monotonic() < until_s
                time.sleep(0.05)
            assert json.loads(server.get("/health")[1])["status"] == "draining"
            status, answer = server.get("/v1/models")
            assert (status, json.loads(answer)["error"]["code"]) == (503, "draining")
            client.settimeout(60)
            while data := client.recv(65_536):
                taken += data
                if taken.endswith(b"\r\n0\r\n\r\n"):
                    break
        assert taken.startswith(b"HTTP/1.1 200 ")
        assert len(taken) > 2 * 48_000 * 30
        assert server.process.wait(30) == 0
        last = [line for line in server.lines() if line.get("kind") == "speech"][-1]
        assert last["outcome"] == "ok"


def test_a_second_signal_ends_at_once(tmp_path: Path) -> None:
    with served(tmp_path, "--set=engine.ahead_s=1", "--set=drain_s=60") as server:
        body = body_of("This is a sentence of a long text. " * 500)
        with socket.create_connection(("127.0.0.1", server.port)) as client:
            client.sendall(head_of(len(body)) + body)
            client.recv(1000)
            server.process.send_signal(signal.SIGINT)
            time.sleep(0.5)
            assert server.process.poll() is None
            server.process.send_signal(signal.SIGINT)
            assert server.process.wait(30) is not None


def test_an_address_in_use_is_told(server: Served) -> None:
    command = [sys.executable, "-m", "voice_agent.cli", "serve", "--port", str(server.port)]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert done.returncode == 4
    assert f"cannot listen on 127.0.0.1:{server.port}".encode() in done.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--host", "0.0.0.0"], b"no API key is set"),
        (["--set", "limits.nothing=1"], b"--set limits.nothing=1"),
        (["--config", "/nowhere.yaml"], b"/nowhere.yaml: cannot be read"),
        (["--set", "voice=nobody"], b"unknown voice 'nobody'"),
    ],
)
def test_settings_that_cannot_be_used(arguments: list[str], told: bytes) -> None:
    hidden = {name: value for name, value in os.environ.items() if not name.startswith("SAYLINE_")}
    command = [sys.executable, "-m", "voice_agent.cli", "serve", *arguments]
    done = subprocess.run(command, capture_output=True, timeout=60, env=hidden, check=False)
    assert done.returncode == 2
    assert told in done.stderr


def test_the_settings_are_shown_without_secrets() -> None:
    command = [sys.executable, "-m", "voice_agent.cli", "serve", "--show-config", "--port", "0"]
    done = subprocess.run(command, capture_output=True, timeout=60, env={**os.environ, "SAYLINE_API_KEY": KEY}, check=True)
    assert KEY.encode() not in done.stdout
    assert json.loads(done.stdout)["keys"][0]["name"] == "default"


def test_the_help_shows_all_that_it_says() -> None:
    """What stands in brackets is markup to the library that prints the help, unless it is taken care of."""
    command = [sys.executable, "-m", "voice_agent.cli", "serve", "--help"]
    environment = {**os.environ, "COLUMNS": "250", "TERM": "dumb"}
    printed = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment, check=True).stdout
    shown = " ".join(printed.replace("│", " ").split())
    command_of: Any = typer.main.get_command(cli)
    helps = [option.help for option in command_of.commands["serve"].params]
    assert len(helps) > 5
    for text in helps:
        assert " ".join(text.split()) in shown
