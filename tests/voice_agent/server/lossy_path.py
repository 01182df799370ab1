"""A bad network between two WebRTC peers: a UDP relay that loses, delays and reorders packets in both directions.

``blind_offer`` and ``through`` write the session descriptions so that the relay is the only way. It stands in for
netem, which needs a kernel module and rights that a test may not have.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

_CANDIDATE = re.compile(r"^a=candidate:.*\r\n", re.MULTILINE)
_HOST = re.compile(r"^a=candidate:\S+ 1 udp \d+ (\d+\.\d+\.\d+\.\d+) (\d+) typ host", re.MULTILINE | re.IGNORECASE)


def blind_offer(sdp: str) -> str:
    """The offer without addresses: the other side learns the relay's when packets come."""
    return _CANDIDATE.sub("", sdp)


class LossyPath:
    """``loss``: the share of packets that never arrive; the others take up to twice ``jitter_s``, evenly spread."""

    def __init__(self, loss: float, jitter_s: float) -> None:
        self.loss = loss
        self.jitter_s = jitter_s
        self.passed = self.lost = 0
        self._random = random.Random(1)
        self._server: tuple[str, int] | None = None
        self._client: tuple[str, int] | None = None
        self.front: asyncio.DatagramTransport  # towards the client
        self.back: asyncio.DatagramTransport

    def through(self, answer: str) -> str:
        """The answer with the relay's address in place of the server's."""
        found = _HOST.search(answer)
        assert found, answer
        self._server = (found.group(1), int(found.group(2)))
        port = self.front.get_extra_info("sockname")[1]
        ours = f"a=candidate:1 1 udp 2130706431 {found.group(1)} {port} typ host\r\n"
        first, rest = answer[: found.start()], answer[found.start() :]
        return first + ours + _CANDIDATE.sub("", rest)

    def from_client(self, data: bytes, address: tuple[str, int]) -> None:
        self._client = address
        if self._server is not None:
            self._carry(self.back, data, self._server)

    def from_server(self, data: bytes, address: tuple[str, int]) -> None:
        if self._client is not None:
            self._carry(self.front, data, self._client)

    def _carry(self, over: asyncio.DatagramTransport, data: bytes, to: tuple[str, int]) -> None:
        if self._random.random() < self.loss:
            self.lost += 1
            return
        self.passed += 1
        delay_s = self._random.uniform(0, 2 * self.jitter_s)
        asyncio.get_running_loop().call_later(delay_s, lambda: over.is_closing() or over.sendto(data, to))


class _Side(asyncio.DatagramProtocol):
    def __init__(self, take) -> None:
        self._take = take

    def datagram_received(self, data, addr) -> None:
        self._take(data, addr[:2])


@asynccontextmanager
async def lossy_path(loss: float, jitter_s: float) -> AsyncGenerator[LossyPath, None]:
    """A relay on free ports of this machine."""
    loop = asyncio.get_running_loop()
    path = LossyPath(loss, jitter_s)
    path.front, _ = await loop.create_datagram_endpoint(lambda: _Side(path.from_client), local_addr=("0.0.0.0", 0))
    path.back, _ = await loop.create_datagram_endpoint(lambda: _Side(path.from_server), local_addr=("0.0.0.0", 0))
    try:
        yield path
    finally:
        path.front.close()
        path.back.close()
