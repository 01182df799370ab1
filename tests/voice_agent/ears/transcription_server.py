"""A real HTTP server on the loopback with ``POST /v1/audio/transcriptions``, whole or broken.

The model's name says what happens: ``plain`` knows no verbose answer; ``status=503`` answers with this HTTP status;
``html`` sends a page; ``stall`` sends nothing until the client leaves; ``disconnect`` hangs up; all others give ``said``.
"""

from __future__ import annotations

import json
import select
import socket
import threading
import wave
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from typing import Any

import numpy as np


@dataclass
class Request:
    """One request: its fields, and the samples of its WAV file. ``left``: the client went away before the answer."""

    fields: dict[str, str]
    samples: np.ndarray
    rate: int
    left: threading.Event = field(default_factory=threading.Event)


class TranscriptionServer(ThreadingHTTPServer):
    """``with TranscriptionServer() as server: RemoteRecognizer(base_url=server.url, api_key=server.key)``."""

    key = "test-key-0123456789"

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.said = "Where is my parcel?"
        self.language: str | None = "english"
        self.segments: list[dict[str, Any]] = [{"no_speech_prob": 0.02, "avg_logprob": -0.2}]
        self.requests: list[Request] = []
        self.stopping = threading.Event()
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def __enter__(self) -> TranscriptionServer:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stopping.set()
        self.shutdown()
        self._thread.join()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        pass

    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, TranscriptionServer)
        request = self._request()
        server.requests.append(request)
        model = request.fields["model"]
        if self.path != "/v1/audio/transcriptions":
            self._answer(404, {"error": {"message": "no such path"}})
        elif self.headers.get("authorization") != f"Bearer {server.key}":
            self._answer(401, {"error": {"message": "Incorrect API key provided: sk-secret-0123456789."}})
        elif model.startswith("status="):
            self._answer(int(model.removeprefix("status=")), {"error": {"message": "The model is tired."}})
        elif model == "plain" and request.fields["response_format"] != "json":
            self._answer(400, {"error": {"message": "response_format 'verbose_json' is not compatible with the model"}})
        elif model == "html":
            self._send(200, "text/html", b"<html>hello</html>")
        elif model == "stall":
            while not server.stopping.is_set():
                if select.select([self.connection], [], [], 0.005)[0] and not self.connection.recv(1, socket.MSG_PEEK):
                    request.left.set()
                    break
            self.close_connection = True
        elif model == "disconnect":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        elif request.fields["response_format"] == "verbose_json":
            self._answer(200, {"text": server.said, "language": server.language, "duration": 1.0, "segments": server.segments})
        else:
            self._answer(200, {"text": server.said})

    def _request(self) -> Request:
        body = self.rfile.read(int(self.headers["content-length"]))
        head = f"content-type: {self.headers['content-type']}\r\n\r\n".encode()
        fields, samples, rate = {}, np.zeros(0), 0
        for part in BytesParser(policy=HTTP).parsebytes(head + body).iter_parts():
            name = part.get_param("name", header="content-disposition")
            data = part.get_payload(decode=True)
            if name == "file":
                with wave.open(BytesIO(data)) as file:
                    assert (file.getnchannels(), file.getsampwidth()) == (1, 2)
                    samples, rate = np.frombuffer(file.readframes(file.getnframes()), "<i2") / 32768, file.getframerate()
            else:
                fields[str(name)] = data.decode()
        return Request(fields, samples, rate)

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        self._send(status, "application/json", json.dumps(body).encode())

    def _send(self, status: int, kind: str, data: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
