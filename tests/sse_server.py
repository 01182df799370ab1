"""A real HTTP server on the loopback that replays recorded LLM streams, in time, whole or broken, for real clients to
read.

    with SseServer() as server:
        client = AsyncOpenAI(base_url=server.url, api_key=server.key)
        await client.chat.completions.create(model="openai_chat_basic", messages=[...], stream=True)

The model's name is the recording's id, at times with a query: ``openai_chat_basic?fault=stall&after=3``.

``scale``: factor on the recorded waits (default 0). ``cut``: bytes a write. ``status``: answer with this HTTP status.
``fault`` happens after ``after`` chunks: ``disconnect`` (the connection breaks inside an event), ``torn`` (the
response ends inside an event), ``stall`` (nothing more comes until the client leaves), ``error`` (an error event).
``headers_s``: seconds before the response begins.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from tests.llm_replay import RecordedStream, load_streams

_ERRORS = {
    400: ("invalid_request_error", None, "Your messages are too long."),
    401: ("invalid_request_error", "invalid_api_key", "Incorrect API key provided: {key}."),
    403: ("permission_error", None, "You may not use this model."),
    404: ("invalid_request_error", "model_not_found", "The model `{model}` does not exist."),
    429: ("rate_limit_error", "rate_limit_exceeded", "Rate limit reached."),
    500: ("server_error", None, "The server had an error."),
    503: ("server_error", None, "The model is overloaded."),
}
_LEFT_CHECK_S = 0.01


@dataclass
class Request:
    """One request as it came in. ``left`` is set when the client went away before the response was complete."""

    path: str
    body: dict[str, Any]
    left: threading.Event = field(default_factory=threading.Event)
    finished: threading.Event = field(default_factory=threading.Event)
    chunks_sent: int = 0


class SseServer:
    """Serves ``/v1/chat/completions``, ``/v1/responses``, ``/v1/messages``, ``/api/chat``, ``/api/generate``,
    ``/v1/models``.
    """

    key = "test-key-0123456789"

    def __init__(self, streams: Iterable[RecordedStream] | None = None) -> None:
        self.streams = {stream.id: stream for stream in (load_streams() if streams is None else streams)}
        self.requests: list[Request] = []
        self.came = threading.Event()
        self.stopping = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.sayline = self  # type: ignore[attr-defined]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def address(self) -> str:
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}"

    @property
    def url(self) -> str:
        """The base URL for OpenAI clients."""
        return f"{self.address}/v1"

    def __enter__(self) -> SseServer:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.stopping.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # clients may leave at any time
            super().handle_error(request, client_address)


class _GoneError(Exception):
    """The client went away, or the server stops."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # many small writes in a row would each wait for the client's delayed ACK

    def do_GET(self) -> None:
        if self._authorised():
            models = [{"id": name, "object": "model", "created": 0, "owned_by": "tests"} for name in self._home.streams]
            self._json(200, {"object": "list", "data": models})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)) or b"{}")
        request = Request(self.path, body)
        self._home.requests.append(request)
        self._home.came.set()
        try:
            if self._authorised():
                self._respond(request)
        except (_GoneError, ConnectionError):
            request.left.set()
            self.close_connection = True
        finally:
            request.finished.set()

    def log_message(self, *args: object) -> None:
        pass

    @property
    def _home(self) -> SseServer:
        home = self.server.sayline  # type: ignore[attr-defined]
        assert isinstance(home, SseServer)
        return home

    def _authorised(self) -> bool:
        given = self.headers.get("authorization", "").removeprefix("Bearer ") or self.headers.get("x-api-key", "")
        if self.path.startswith("/api/") or given == self._home.key:
            return True
        self._error(401, key=given)
        return False

    def _respond(self, request: Request) -> None:
        name, _, query = str(request.body.get("model", "")).partition("?")
        options = {key: values[-1] for key, values in parse_qs(query).items()}
        stream = self._home.streams.get(name)
        self._wait(float(options.get("headers_s", 0)))
        if "status" in options:
            self._error(int(options["status"]))
        elif stream is None:
            self._error(404, model=name)
        else:
            self._stream(request, stream, options)

    def _stream(self, request: Request, stream: RecordedStream, options: dict[str, str]) -> None:
        self.send_response(200)
        ndjson = self.path.startswith("/api/")
        self.send_header("content-type", "application/x-ndjson" if ndjson else "text/event-stream")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        events = _events(stream, ndjson)
        after = int(options["after"]) if "after" in options else len(events) // 2
        fault = options.get("fault")
        cut = int(options.get("cut", 0))
        for position, event in enumerate(events):
            if position < len(stream.delay_ms):
                self._wait(stream.delay_ms[position] * float(options.get("scale", 0)) / 1000)
            if fault and position == after:
                self._fail(fault, event)
                return
            if event:
                self._write(event, cut)
            request.chunks_sent += 1
        self._write(b"", cut)

    def _fail(self, fault: str, event: bytes) -> None:
        if fault == "stall":
            self._wait(float("inf"))
        elif fault == "error":
            self._write(b"data: " + json.dumps({"error": _error_body(500)}).encode() + b"\n\n", 0)
            self._write(b"", 0)
        elif fault == "torn":
            self._write(event[: len(event) // 2], 0)
            self._write(b"", 0)
        elif fault == "disconnect":
            self._write(event[: len(event) // 2], 0)
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        else:
            raise ValueError(f"unknown fault {fault!r}")

    def _write(self, data: bytes, cut: int) -> None:
        pieces = [data[at : at + cut] for at in range(0, len(data), cut)] if cut and data else [data]
        for piece in pieces:
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            self.wfile.flush()

    def _wait(self, seconds: float) -> None:
        """Sleeps, and notices when the client goes away."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if select.select([self.connection], [], [], min(left, _LEFT_CHECK_S))[0]:
                if not self.connection.recv(1, socket.MSG_PEEK):
                    raise _GoneError
                time.sleep(min(left, _LEFT_CHECK_S))
            if self._home.stopping.is_set():
                raise _GoneError

    def _error(self, status: int, **names: str) -> None:
        self._json(status, {"error": _error_body(status, **names)})

    def _json(self, status: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _error_body(status: int, **names: str) -> dict[str, str | None]:
    kind, code, message = _ERRORS[status]
    shown = {"key": "…", "model": "…", **names}
    return {"message": message.format_map(shown), "type": kind, "param": None, "code": code}


def _events(stream: RecordedStream, ndjson: bool) -> list[bytes]:
    """The response's body, one element a recorded chunk; plain text is sent as chat chunks."""
    if ndjson:
        return [json.dumps(chunk, ensure_ascii=False).encode() + b"\n" for chunk in stream.chunks]
    if stream.format == "sse":
        return [chunk.encode() for chunk in stream.chunks]
    chunks = list(stream.chunks)
    if stream.format == "text":
        chunks = [*(_chat_chunk({"content": text}) for text in chunks), _chat_chunk({}, "stop")]
    events = []
    for chunk in chunks:
        name = f"event: {chunk['type']}\n" if "type" in chunk else ""
        events.append(f"{name}data: {json.dumps(chunk)}\n\n".encode())
    if stream.format in ("openai_chat", "text"):
        events.append(b"data: [DONE]\n\n")
    return events


def _chat_chunk(delta: dict[str, str], reason: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return {"id": "chatcmpl-0", "object": "chat.completion.chunk", "created": 0, "model": "text", "choices": [choice]}
