"""Thousands of connections that mean no good, beside a few listeners: does anybody hear it, is anything left of them?

    python -m benchmarks.abuse [--connections 10000] [--rounds 2] [--at-once 50] [--listeners 4]

The server is a process of its own (``sayline serve``). Each kind of abuse (``tests/voice_agent/server/abusers.py``) gets its
share of the connections, which are torn down hard; meanwhile listeners are told replies as in ``benchmarks.load``, whose
terms these are; what they noticed is in the JSON line. The siege comes from an address of its own (``--source``), as sieges do:
where there are no keys the server shares its engine out among addresses. *Files* and *memory* are the server's open files and
resident MiB, before and when the last connection is gone.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
import urllib.error
import urllib.request

import psutil

from benchmarks.load import Noticed, listener, server
from benchmarks.measure import Row, percentile, report
from benchmarks.streams import WARM_UP_S, Window
from tests.voice_agent.server.abusers import ABUSES, abuse

TOKENS_PER_S = 50.0
SETTLED_S = 10.0
SETTINGS = ["--set", "limits.header_s=2", "--set", "limits.send_s=5"]


async def besiege(address: str, process: psutil.Process, kind: int, count: int, options: argparse.Namespace) -> Row:
    """``count`` connections of one kind."""
    what, before_files, began_s = ABUSES[kind], process.num_fds(), time.monotonic()
    waiting = iter(range(count))

    async def besieger() -> None:
        for i in waiting:  # all share the iterator
            await abuse(address, what, random.Random(f"{what.__name__} {i}"), options.source)

    async with asyncio.TaskGroup() as group:
        for _ in range(options.at_once):
            group.create_task(besieger())
    seconds = time.monotonic() - began_s
    return {
        "abuse": what.__name__,
        "connections": count,
        "seconds": round(seconds, 1),
        "files before": before_files,
        "files after": await _settled_files(process, before_files),
        "memory MiB": _memory_mb(process),
    }


async def _settled_files(process: psutil.Process, before: int) -> int:
    """The open files, when they are as many as before or after a while."""
    for _ in range(round(SETTLED_S / 0.1)):
        if process.num_fds() <= before:
            break
        await asyncio.sleep(0.1)
    return process.num_fds()


def _memory_mb(process: psutil.Process) -> int:
    return round(process.memory_info().rss / 2**20)


async def run(address: str, process: psutil.Process, options: argparse.Namespace) -> tuple[list[Row], Noticed]:
    """All kinds one after the other, beside listeners that go on all the time."""
    idle_files = process.num_fds()
    for kind in range(len(ABUSES)):  # what grows once is no leak: caches, arenas
        await besiege(address, process, kind, 50, options)
    noticed, rows = Noticed(Window(0.0)), []
    listeners = [
        asyncio.create_task(listener(address, random.Random(i), noticed, 1e9, TOKENS_PER_S)) for i in range(options.listeners)
    ]
    await asyncio.sleep(2 * WARM_UP_S)
    for kind in list(range(len(ABUSES))) * options.rounds:
        rows.append(await besiege(address, process, kind, options.connections // len(ABUSES) // options.rounds, options))
        print(rows[-1], flush=True)
    for task in listeners:
        task.cancel()
    await asyncio.wait(listeners)
    rest: Row = {"abuse": "all gone", "connections": sum(int(str(row["connections"])) for row in rows), "seconds": ""}
    rest |= {"files before": idle_files, "files after": await _settled_files(process, idle_files)}
    return [*rows, rest | {"memory MiB": _memory_mb(process)}], noticed


def health(address: str) -> dict[str, object]:
    """What the server says of itself."""
    try:
        with urllib.request.urlopen(f"http://{address}/health", timeout=5) as answer:
            said: dict[str, object] = json.load(answer)
    except urllib.error.HTTPError as error:
        said = json.load(error)
    return said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=10_000, help="in all")
    parser.add_argument("--rounds", type=int, default=1, help="of all kinds: what grows in the second one is a leak")
    parser.add_argument("--at-once", type=int, default=50)
    parser.add_argument("--listeners", type=int, default=4)
    parser.add_argument("--source", default="127.0.0.2", help="of the siege; Linux has all of 127.0.0.0/8, others 127.0.0.1")
    options = parser.parse_args()
    with server(SETTINGS) as (address, process):
        rows, noticed = asyncio.run(run(address, process, options))
        said = health(address)
    report(
        "abuse",
        rows,
        at_once=options.at_once,
        source=options.source,
        health=said,
        listeners=options.listeners,
        replies=noticed.replies,
        first_sound_p50_ms=round(percentile(noticed.sound_ms, 50), 1),
        first_sound_max_ms=round(max(noticed.sound_ms), 1),
        underruns=noticed.underruns,
        longest_gap_ms=round(noticed.gap_ms, 1),
        errors=noticed.errors + noticed.refused,
    )


if __name__ == "__main__":
    main()
