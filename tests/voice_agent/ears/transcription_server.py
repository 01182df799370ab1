"""A real HTTP server on the loopback with ``POST /v1/audio/transcriptions``, whole or broken.

The model's name says what happens: ``plain`` knows no verbose answer; ``status=503`` answers with this HTTP status;
``html`` sends a page; ``stall`` sends nothing until the client leaves; ``disconnect`` hangs up; all others give ``said``.
"""

from __future__ import annotations

import select
import socket
import threading
import wave
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from io import BytesIO
from typing import Any

import numpy as np

from tests.loopback_server import LoopbackHandler, LoopbackServer


@dataclass
class Request:
    """One request: its fields, and the samples of its WAV file. ``left``: the client went away before the answer."""

    fields: dict[str, str]
    samples: np.ndarray
    rate: int
    left: threading.Event = field(default_factory=threading.Event)


class TranscriptionServer(LoopbackServer):
    """``with TranscriptionServer() as server: RemoteRecognizer(base_url=server.url, api_key=server.key)``."""

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.said = "Where is my parcel?"
        self.language: str | None = "english"
        self.segments: list[dict[str, Any]] = [{"no_speech_prob": 0.02, "avg_logprob": -0.2}]
        self.requests: list[Request] = []


class _Handler(LoopbackHandler):
    def do_POST(self) -> None:  # noqa: N802 (http.server's name)
        server = self.server
        assert isinstance(server, TranscriptionServer)
        request = self._request()
        server.requests.append(request)
        model = request.fields["model"]
        if self.path != "/v1/audio/transcriptions":
            self.send_json(404, {"error": {"message": "no such path"}})
        elif self.headers.get("authorization") != f"Bearer {server.key}":
            self.send_json(401, {"error": {"message": "Incorrect API key provided: sk-secret-0123456789."}})
        elif model.startswith("status="):
            self.send_json(int(model.removeprefix("status=")), {"error": {"message": "The model is tired."}})
        elif model == "plain" and request.fields["response_format"] != "json":
            self.send_json(400, {"error": {"message": "response_format 'verbose_json' is not compatible with the model"}})
        elif model == "html":
            self.send_whole(200, "text/html", b"<html>hello</html>")
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
            self.send_json(
                200, {"text": server.said, "language": server.language, "duration": 1.0, "segments": server.segments}
            )
        else:
            self.send_json(200, {"text": server.said})

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
