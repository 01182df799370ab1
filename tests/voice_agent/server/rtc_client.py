"""A WebRTC peer for tests: aiortc at the other end, its own microphone, everything that comes kept."""

from __future__ import annotations

import asyncio
import contextlib
import fractions
import json
import time
from typing import Any

import av
import httpx
import numpy as np
from aiortc import MediaStreamTrack, RTCConfiguration, RTCPeerConnection, RTCSessionDescription
from aiortc.mediastreams import MediaStreamError

RATE = 48_000
FRAME = 960


class Microphone(MediaStreamTrack):
    """Says ``samples`` (float32 at 48 kHz) in real time, then silence."""

    kind = "audio"

    def __init__(self, samples: np.ndarray | None = None) -> None:
        super().__init__()
        self.samples = np.zeros(0, np.float32) if samples is None else samples
        self._place = 0
        self._began_s = 0.0

    def say(self, samples: np.ndarray) -> None:
        self.samples = np.concatenate([self.samples[: self._place], np.zeros(max(0, self._place - len(self.samples))), samples])

    async def recv(self) -> av.AudioFrame:
        now_s = time.monotonic()
        self._began_s = self._began_s or now_s
        await asyncio.sleep(max(0.0, self._began_s + self._place / RATE - now_s))
        part = self.samples[self._place : self._place + FRAME]
        part = np.concatenate([part, np.zeros(FRAME - len(part))])
        frame = av.AudioFrame.from_ndarray((part * 32767).astype(np.int16)[None], format="s16", layout="mono")
        frame.sample_rate = RATE
        frame.time_base = fractions.Fraction(1, RATE)
        frame.pts = self._place
        self._place += FRAME
        return frame


class RtcClient:
    """``async with RtcClient(url) as client``: connected, its data channel open."""

    def __init__(
        self, url: str, *, microphone: Microphone | None = None, listens: bool = True, key: str | None = None, **settings: Any
    ) -> None:
        self._url = url
        self._headers = {} if key is None else {"authorization": f"Bearer {key}"}
        self._settings = settings
        self.peer = RTCPeerConnection(RTCConfiguration([]))
        self.channel = self.peer.createDataChannel("sayline")
        self.events: list[dict[str, Any]] = []
        self.frames: list[tuple[float, int, np.ndarray]] = []  # (arrival, place in samples, mono float32)
        self.id = ""
        self._came = asyncio.Event()
        self._recording: asyncio.Task[None] | None = None
        if microphone is None:
            self.peer.addTransceiver("audio", direction="sendrecv" if listens else "sendonly")
        else:
            self.peer.addTrack(microphone)
        self.peer.on("track", self._take)
        self.channel.on("message", self._hear)

    async def offer(self) -> str:
        await self.peer.setLocalDescription(await self.peer.createOffer())
        return self.peer.localDescription.sdp

    async def ask(self, sdp: str) -> httpx.Response:
        body: dict[str, Any] = {"type": "offer", "sdp": sdp}
        if self._settings:
            body["settings"] = self._settings
        async with httpx.AsyncClient(timeout=30) as http:
            return await http.post(f"{self._url}/rtc/offer", json=body, headers=self._headers)

    async def __aenter__(self) -> RtcClient:
        opened = asyncio.Event()
        self.channel.on("open", opened.set)
        answer = (await self.ask(await self.offer())).raise_for_status().json()
        self.id = answer["id"]
        await self.peer.setRemoteDescription(RTCSessionDescription(answer["sdp"], "answer"))
        async with asyncio.timeout(20):
            await opened.wait()
        return self

    async def __aexit__(self, *error: object) -> None:
        self.send("close")
        await self.leave()

    async def leave(self) -> None:
        await self.peer.close()
        if self._recording is not None:
            self._recording.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._recording

    def send(self, kind: str, **values: Any) -> None:
        if self.channel.readyState == "open":
            self.channel.send(json.dumps({"type": kind, **values}))

    async def until(self, *kinds: str, limit_s: float = 30.0) -> dict[str, Any]:
        """The first event of these kinds that was not asked for before."""
        async with asyncio.timeout(limit_s):
            while True:
                for event in self.events:
                    if event["event"] in kinds and not event.get("seen"):
                        event["seen"] = True
                        return event
                self._came.clear()
                await self._came.wait()

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["event"] == kind]

    def sound(self) -> np.ndarray:
        """What came so far, each frame at its place, silence where one was lost."""
        if not self.frames:
            return np.zeros(0, np.float32)
        first = self.frames[0][1]
        out = np.zeros(max(place for _, place, _ in self.frames) - first + FRAME, np.float32)
        for _, place, samples in self.frames:
            if place >= first:
                out[place - first : place - first + len(samples)] = samples
        return out

    def _hear(self, message: str) -> None:
        self.events.append({**json.loads(message), "at_s": time.monotonic()})
        self._came.set()

    def _take(self, track: MediaStreamTrack) -> None:
        self._recording = asyncio.create_task(self._record(track))

    async def _record(self, track: MediaStreamTrack) -> None:
        with contextlib.suppress(MediaStreamError):
            while True:
                frame = await track.recv()
                channels = len(frame.layout.channels)
                samples = frame.to_ndarray().reshape(-1)[::channels].astype(np.float32) / 32768
                self.frames.append((time.monotonic(), frame.pts, samples))
