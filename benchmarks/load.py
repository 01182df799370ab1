"""How many live sockets the server carries: rising numbers of conversations, each with tokens at an LLM's pace.

    python -m benchmarks.load [--streams 10 20 40 80 160] [--seconds 12] [--mos DIR] [--plot load.png]

The server is a process of its own (``sayline serve``), all clients are this one; both share the cores. Each client has one
socket (``WS /v1/audio/speech/stream``) and is told replies of one to three sentences, token by token, with short pauses for
thought between them. It plays what it gets from the first packet on, nothing is held back.

*First sound*: from the token that completes what is spoken first until the first packet is there; *first audible*: until
the packet with the first sample above -50 dBFS is. *End to end*: the same from the LLM's first token, so the time that the
LLM takes to write the first sentence is in it. *Underrun*: a packet comes later than the one before it has sounded.
*Real-time factor*: processor time of the server for each second of audio; *sounding at once*, *cores busy*: in the
``--seconds`` behind the warm-up. *Refused*: handshakes answered with 503; *errors*: of those who were let in.
*DistillMOS* (Stahl and Gamper, 2025): the mean of at most 24 replies as they were heard, gaps as silence. It needs a folder of
its own: ``pip install --no-deps --target DIR distillmos xls-r-sqa``, then ``--mos DIR``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib.util
import json
import math
import random
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import psutil

from benchmarks.load_client import RefusedByServer, Socket, open_socket
from benchmarks.measure import Row, percentile, report
from benchmarks.plots import add_plot_option, lines
from benchmarks.streams import AUDIBLE, SENTENCES, THOUGHT_S, WARM_UP_S, Window
from voice_agent.llm.demo import tokens_of

PATH = "/v1/audio/speech/stream"
RATE = 24_000
SCORED = 24
"""Replies of each number of streams that are kept for their DistillMOS."""


@dataclass
class Noticed:
    """What all clients of a run noticed."""

    window: Window

    sound_ms: list[float] = field(default_factory=list)
    audible_ms: list[float] = field(default_factory=list)
    end_to_end_ms: list[float] = field(default_factory=list)
    replies: int = 0
    underruns: int = 0
    gap_ms: float = 0.0
    audio_s: float = 0.0
    refused: int = 0
    errors: int = 0
    kept: list[bytes] = field(default_factory=list)


class Listener:
    """One client: its socket, and the reply that it is told."""

    def __init__(self, socket: Socket, noticed: Noticed, dice: random.Random) -> None:
        self._socket = socket
        self._noticed = noticed
        self._dice = dice
        self._over = asyncio.Event()
        socket.on_text, socket.on_audio, socket.on_close = self._text, self._audio, self._over.set
        self._begin(counts=False)

    def _begin(self, counts: bool) -> None:
        self._counts = counts
        self._sent: list[tuple[int, float]] = []  # (offset behind a token, when it was sent)
        self._first_end = 0  # raw offset behind what is spoken first
        self._sound_s = self._audible_s = self._played_s = 0.0
        keeps = counts and len(self._noticed.kept) < SCORED and self._dice.random() < 0.3
        self._kept: list[bytes] | None = [] if keeps else None
        self._over.clear()

    async def reply(self, tokens_per_s: float, counts: bool) -> None:
        """Sends a reply in tokens, and returns when it has been played."""
        self._begin(counts)
        end = 0
        for token in tokens_of(" ".join(self._dice.choices(SENTENCES, k=self._dice.randint(1, 3)))):
            end += len(token)
            self._socket.send(type="append", text=token)
            self._sent.append((end, time.monotonic()))
            await asyncio.sleep(self._dice.uniform(0.5, 1.5) / tokens_per_s)
        self._socket.send(type="end")
        await self._over.wait()
        await asyncio.sleep(max(0.0, self._played_s - time.monotonic()))
        self._count()

    def _text(self, message: dict[str, object]) -> None:
        kind = message["type"]
        if kind == "done":
            self._over.set()
        elif kind == "error":
            self._noticed.errors += 1
        elif kind == "words":
            for word in message["words"]:  # type: ignore[attr-defined]
                if word["sentence"] == 0:
                    self._first_end = max(self._first_end, word["start"] + len(word["text"]))

    def _audio(self, data: bytes) -> None:
        now_s, noticed = time.monotonic(), self._noticed
        if not self._sound_s:
            self._sound_s = now_s
        if not self._audible_s and np.abs(np.frombuffer(data, "<i2")).max() > AUDIBLE * 32_768:
            self._audible_s = now_s
        late_s = now_s - self._played_s
        if self._played_s and late_s > 0 and self._counts:
            noticed.underruns += 1
            noticed.gap_ms = max(noticed.gap_ms, 1000 * late_s)
        seconds = len(data) / 2 / RATE
        if self._kept is not None:
            gap = b"" if not self._played_s else bytes(2 * int(max(0.0, late_s) * RATE))
            self._kept.append(gap + data)
        noticed.window.sounds(max(self._played_s, now_s), seconds)
        self._played_s = max(self._played_s, now_s) + seconds
        noticed.audio_s += seconds

    def _count(self) -> None:
        noticed = self._noticed
        if not self._counts or not self._audible_s:
            return
        noticed.replies += 1
        complete_s = next(at_s for end, at_s in self._sent if end >= self._first_end)
        noticed.sound_ms.append(1000 * (self._sound_s - complete_s))
        noticed.audible_ms.append(1000 * (self._audible_s - complete_s))
        noticed.end_to_end_ms.append(1000 * (self._audible_s - self._sent[0][1]))
        if self._kept is not None and len(noticed.kept) < SCORED:
            noticed.kept.append(b"".join(self._kept))


async def listener(address: str, dice: random.Random, noticed: Noticed, seconds: float, tokens_per_s: float) -> None:
    """Connects, as often as it must, and holds a conversation until the time is over."""
    until_s = time.monotonic() + WARM_UP_S + seconds
    counted_s = time.monotonic() + WARM_UP_S
    await asyncio.sleep(dice.random() * WARM_UP_S)
    while time.monotonic() < until_s:
        try:
            opened = await open_socket(address, PATH)
        except RefusedByServer as refused:
            noticed.refused += 1
            await asyncio.sleep(refused.retry_after_s)
            continue
        told = Listener(opened, noticed, dice)
        try:
            while (now_s := time.monotonic()) < until_s:
                await told.reply(tokens_per_s, counts=now_s >= counted_s)
                await asyncio.sleep(dice.uniform(*THOUGHT_S))
        finally:
            opened.close()


async def run(address: str, server: psutil.Process, streams: int, options: argparse.Namespace) -> tuple[Row, Noticed]:
    """``streams`` clients for about ``seconds``."""
    noticed, own = Noticed(Window(options.seconds)), Window(options.seconds)
    busy_s = _busy_s(server)
    async with asyncio.TaskGroup() as listeners:
        listeners.create_task(noticed.window.watch(lambda: _busy_s(server)))
        listeners.create_task(own.watch(time.process_time))
        for i in range(streams):
            work = listener(address, random.Random(i), noticed, options.seconds, options.tokens_per_s)
            listeners.create_task(work)
    busy_s = _busy_s(server) - busy_s
    row: Row = {"streams": streams, "sounding at once": round(noticed.window.sounding, 1), "replies": noticed.replies}
    for name, values, shares in (
        ("first sound", noticed.sound_ms, (50, 90, 99)),
        ("first audible", noticed.audible_ms, (50, 99)),
        ("end to end", noticed.end_to_end_ms, (50, 90, 95, 99)),
    ):
        row |= {f"{name} P{share} ms": round(percentile(values or [0.0], share), 1) for share in shares}
        if name == "first sound":
            row["first sound max ms"] = round(max(values, default=0.0), 1)
    return row | {
        "underruns": noticed.underruns,
        "longest gap ms": round(noticed.gap_ms, 1),
        "real-time factor": round(busy_s / max(noticed.audio_s, 1e-9), 4),
        "server cores busy": round(noticed.window.cores, 2),
        "client cores busy": round(own.cores, 2),
        "memory MiB": round(server.memory_info().rss / 2**20),
        "refused": noticed.refused,
        "errors": noticed.errors,
    }, noticed


def _busy_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


@contextlib.contextmanager
def server(options: list[str]) -> Iterator[tuple[str, psutil.Process]]:
    """A server of its own, ready to speak: "HOST:PORT" and its process."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "voice_agent.cli", "serve", "--port", str(port), *options]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            address = f"127.0.0.1:{port}"
            _await_health(address, process)
            yield address, psutil.Process(process.pid)
        finally:
            process.terminate()


def _await_health(address: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://{address}/health", timeout=5) as answer:
            if json.load(answer)["status"] == "ok":
                return
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise SystemExit("the server does not start: run `sayline serve` by hand to see why")


def opinions(kept: Sequence[Sequence[bytes]]) -> list[float | None]:
    """The mean DistillMOS of the replies of each run; None where none was kept."""
    from benchmarks.quality import opinion_scorer

    score = opinion_scorer()
    means = []
    for replies in kept:
        scores = [score(np.frombuffer(reply, "<i2").astype(np.float32) / (1 << 15)) for reply in replies]
        means.append(round(sum(scores) / len(scores), 3) if scores else None)
    return means


def _find_distillmos(folder: Path) -> None:
    """Makes what is installed in ``folder`` importable; ends the program if it is not there."""
    sys.path.append(str(folder))
    if importlib.util.find_spec("distillmos") is None:
        raise SystemExit(f"no distillmos in {folder}: pip install --no-deps --target {folder} distillmos xls-r-sqa")


def _number(value: object) -> float:
    return math.nan if value is None else float(str(value))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--streams", type=int, nargs="+", default=[10, 20, 40, 80, 160])
    parser.add_argument("--seconds", type=float, default=12.0, help="for each number of streams")
    parser.add_argument("--tokens-per-s", type=float, default=50.0, help="how fast the LLM writes")
    parser.add_argument("--mos", type=Path, metavar="DIR", help="where distillmos is installed")
    parser.add_argument("--serve", nargs=argparse.REMAINDER, default=[], help="all that follows are options of sayline serve")
    add_plot_option(parser)
    options = parser.parse_args()
    if options.mos:
        _find_distillmos(options.mos)
    rows: list[Row] = []
    kept: list[list[bytes]] = []
    with server(options.serve) as (address, process):
        asyncio.run(run(address, process, 2, argparse.Namespace(seconds=0.5, tokens_per_s=50.0)))  # dictionaries, caches
        for streams in options.streams:
            row, noticed = asyncio.run(run(address, process, streams, options))
            print(row, flush=True)
            rows.append(row)
            kept.append(noticed.kept)
    if options.mos:  # when the cores are free again
        for row, mean in zip(rows, opinions(kept), strict=True):
            row["DistillMOS"] = mean
    report("load", rows, tokens_per_s=options.tokens_per_s, seconds=options.seconds, serve=options.serve)
    shown = {
        "first audible, ms": ("first audible P50 ms", "first audible P99 ms"),
        "real-time factor": ("real-time factor",),
        "memory, MiB": ("memory MiB",),
        "DistillMOS": ("DistillMOS",) if options.mos else (),
    }
    panels = {title: {name: [_number(row[name]) for row in rows] for name in names} for title, names in shown.items() if names}
    lines(options.plot, panels, options.streams, "live sockets", from_zero=True)


if __name__ == "__main__":
    main()
