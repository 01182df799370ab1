"""Talks to a Sayline server over its live socket: tokens go in as an LLM writes them, speech and words come out.

    python examples/websocket_client.py --out answer.wav                      # starts a server of its own
    python examples/websocket_client.py ws://localhost:8000 --out answer.wav  # uses one that runs (``sayline serve``)

After two seconds of the second answer the listener interrupts: the client says how much it has played, and the server
answers what was heard of it. Needs ``pip install "sayline[server]"``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import socket
import sys
import wave
from collections.abc import AsyncIterator

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from voice_agent.llm.demo import tokens_of

RATE = 24_000
ANSWERS = [
    "Your parcel left our warehouse yesterday. It should be with you on Friday.",
    "If nobody is at home, the driver leaves it with a neighbour, or takes it to the shop at the corner of your street.",
]


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("server", nargs="?", help="its address, such as ws://localhost:8000; default: one is started")
    parser.add_argument("--key", help="an API key, where the server wants one")
    parser.add_argument("--out", default="out.wav", help="where the speech goes")
    options = parser.parse_args()
    headers = {"Authorization": f"Bearer {options.key}"} if options.key else {}
    async with contextlib.AsyncExitStack() as stack:
        server = options.server or await stack.enter_async_context(own_server())
        path = f"{server}/v1/audio/speech/stream?sample_rate={RATE}"
        live = await stack.enter_async_context(connect(path, additional_headers=headers, compression=None))
        played = await hear(live, ANSWERS[0])
        played += await hear(live, ANSWERS[1], interrupted_after_s=2.0)
        await live.send(json.dumps({"type": "close"}))
    with wave.open(options.out, "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes(played)


async def hear(live: ClientConnection, answer: str, interrupted_after_s: float | None = None) -> bytes:
    """Has an answer spoken while it is written; gives what was played of it, 16-bit samples."""
    writing = asyncio.create_task(write(live, answer))
    audio, epoch = b"", 0
    async for message in live:
        if isinstance(message, bytes):
            audio += message  # a real client plays this at once
        else:
            event = json.loads(message)
            if event["type"] == "started":
                epoch = event["epoch"]
            elif event["type"] == "words":
                print(*(f"{word['text']}@{word['start_ms'] / 1000:.2f}s" for word in event["words"]), flush=True)
            elif event["type"] == "error":
                sys.exit(f"error: {event['message']}")
            elif event["type"] in ("done", "heard"):
                break
        if interrupted_after_s is not None and len(audio) / 2 / RATE > interrupted_after_s:
            samples, interrupted_after_s = round(interrupted_after_s * RATE), None
            writing.cancel()
            audio = audio[: 2 * samples]  # what has not been played is dropped
            await live.send(json.dumps({"type": "truncate", "epoch": epoch, "samples": samples}))
    print(f"heard: {event['text']!r}" if event["type"] == "heard" else f"done: {event['duration_ms'] / 1000:.2f} s", flush=True)
    with contextlib.suppress(asyncio.CancelledError):
        await writing
    return audio


async def write(live: ClientConnection, answer: str) -> None:
    """Sends an answer in tokens, as an LLM writes it."""
    for token in tokens_of(answer):
        await live.send(json.dumps({"type": "append", "text": token}))
        await asyncio.sleep(0.02)
    await live.send(json.dumps({"type": "end"}))


@contextlib.asynccontextmanager
async def own_server() -> AsyncIterator[str]:
    """A server in this process, for as long as the block lasts."""
    from voice_agent.server.app import create_app
    from voice_agent.server.config import ServerConfig
    from voice_agent.server.serving import make_server

    config = ServerConfig()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = make_server(create_app(config), config)
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield f"ws://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            await serving


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except (OSError, WebSocketException) as error:
        sys.exit(f"error: {error}")
