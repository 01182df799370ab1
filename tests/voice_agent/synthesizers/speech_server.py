"""A real HTTP server on the loopback with ``POST /v1/audio/speech``, whole or broken.

The model's name says what happens, at times with a query: ``tone?fault=stall&after=9600``. ``tone`` gives PCM: as many
milliseconds of a sine as the input has characters, times ten. ``wav`` gives the same as WAV, ``mp3`` and ``html`` what
their names say. ``status``: answer with this HTTP status. ``cut``: bytes a write. ``wait_s``: before each write. A
``fault`` happens after ``after`` bytes: ``stall`` (nothing more until the client leaves), ``disconnect``.
"""

from __future__ import annotations

import json
import select
import socket
import threading
import time
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import numpy as np

from tests.loopback_server import LoopbackHandler, LoopbackServer
from tts_engine.types import AudioFormat
from voice_agent.audio import samples_to_pcm, wav_header

RATE = 24_000


def tone(milliseconds: int) -> np.ndarray:
    return (0.5 * np.sin(2 * np.pi * 440 * np.arange(RATE * milliseconds // 1000) / RATE)).astype(np.float32)


@dataclass
class SpeechRequest:
    """One request. ``left_s``: when the client was seen to have gone, on ``time.monotonic``."""

    body: dict[str, Any]
    left: threading.Event = field(default_factory=threading.Event)
    left_s: float = 0.0


class SpeechServer(LoopbackServer):
    """``with SpeechServer() as server: OpenAISpeech(base_url=server.url, api_key=server.key)``."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.requests: list[SpeechRequest] = []


class _GoneError(Exception):
    pass


class _Handler(LoopbackHandler):
    def do_POST(self) -> None:  # noqa: N802 (http.server's name)
        server = self.server
        assert isinstance(server, SpeechServer)
        request = SpeechRequest(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        server.requests.append(request)
        try:
            if self.path != "/v1/audio/speech":
                self._error(404, "no such path")
            elif self.headers.get("authorization") != f"Bearer {server.key}":
                self._error(401, "Incorrect API key provided: sk-secret-0123456789.")
            else:
                self._speak(request)
        except (_GoneError, ConnectionError):
            request.left_s = time.monotonic()
            request.left.set()
            self.close_connection = True

    def _speak(self, request: SpeechRequest) -> None:
        name, _, query = request.body["model"].partition("?")
        options = {key: values[-1] for key, values in parse_qs(query).items()}
        if "status" in options:
            self._error(int(options["status"]), "The model is tired.")
            return
        data = samples_to_pcm(tone(10 * len(request.body["input"])))
        kind = {"tone": "audio/pcm", "wav": "audio/wav", "mp3": "audio/mpeg", "html": "text/html"}[name]
        if name == "wav":
            data = wav_header(AudioFormat(16_000), None) + data
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        after = int(options.get("after", len(data)))
        cut = int(options.get("cut", 8192))
        for at in range(0, after, cut):
            self._wait(float(options.get("wait_s", 0)))
            piece = data[at : min(at + cut, after)]
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        fault = options.get("fault")
        if fault == "stall":
            self._wait(float("inf"))
        elif fault == "disconnect":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        else:
            self.wfile.write(b"0\r\n\r\n")

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if select.select([self.connection], [], [], min(left, 0.005))[0] and not self.connection.recv(1, socket.MSG_PEEK):
                raise _GoneError
            if self.server.stopping.is_set():  # type: ignore[attr-defined]
                raise _GoneError

    def _error(self, status: int, message: str) -> None:
        self.send_json(status, {"error": {"message": message, "type": "error", "code": None}})
