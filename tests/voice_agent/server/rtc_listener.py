"""A WebRTC peer in a process of its own, perhaps in a network of its own: asks one question and keeps the answer.

    python -m tests.voice_agent.server.rtc_listener OUT.npz "question"

The offer goes to the standard output and the answer comes from the standard input, each a line of JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys

import numpy as np
from aiortc import RTCSessionDescription

from tests.voice_agent.server.rtc_client import RtcClient


async def main(out: str, question: str) -> None:
    client = RtcClient("")
    opened = asyncio.Event()
    client.channel.on("open", opened.set)
    print(json.dumps({"type": "offer", "sdp": await client.offer()}), flush=True)
    answer = json.loads(await asyncio.to_thread(sys.stdin.readline))
    await client.peer.setRemoteDescription(RTCSessionDescription(answer["sdp"], "answer"))
    async with asyncio.timeout(40):
        await opened.wait()
    client.send("played", delay_s=0.2)
    client.send("text", text=question)
    ended = await client.until("TurnEnded", limit_s=90)
    await asyncio.sleep(1.0)
    times = np.array([at for at, _, _ in client.frames])
    places = np.array([place for _, place, _ in client.frames])
    np.savez(out, sound=client.sound(), times=times, places=places, heard=ended["heard"])
    client.send("close")
    await client.leave()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
