"""Clients that mean no good, each one connection long: they vanish, lie, drip, flood and send what is no protocol."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from collections.abc import Awaitable, Callable

__all__ = ["ABUSES", "abuse", "open_socket", "order"]

PATH = "/v1/audio/speech/stream"
_PATIENCE_S = 5.0
Abuse = Callable[[asyncio.StreamReader, asyncio.StreamWriter, str, random.Random], Awaitable[None]]


def upgrade(host: str, path: str = PATH, key: str = "") -> bytes:
    """The request that opens a WebSocket."""
    authorization = f"Authorization: Bearer {key}\r\n" if key else ""
    return (
        f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n{authorization}"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    ).encode()


def frame(payload: bytes, opcode: int = 1, final: bool = True) -> bytes:
    """A client's frame, masked with zeros."""
    head = bytes((final << 7 | opcode,))
    count = len(payload)
    if count < 126:
        length = bytes((0x80 | count,))
    else:
        length = b"\xfe" + count.to_bytes(2, "big") if count < 1 << 16 else b"\xff" + count.to_bytes(8, "big")
    return head + length + bytes(4) + payload


async def open_socket(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, path: str = PATH) -> None:
    """Shakes hands as one should."""
    writer.write(upgrade(host, path))
    await reader.readuntil(b"\r\n\r\n")


def order(kind: str, **values: object) -> bytes:
    return frame(json.dumps({"type": kind, **values}).encode())


async def nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, dice: random.Random) -> None:
    """Connects and goes."""


async def half_a_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, dice: random.Random) -> None:
    whole = upgrade(host)
    writer.write(whole[: dice.randrange(len(whole))])


async def leaves_in_the_middle(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, dice: random.Random
) -> None:
    """Opens a socket, asks for speech, and vanishes without a word."""
    await open_socket(reader, writer, host)
    writer.write(order("append", text="This will never be heard by anyone. " * dice.randint(1, 5)))
    if dice.random() < 0.5:
        await reader.read(dice.choice([1, 400, 40_000]))


async def leaves_by_the_door(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, dice: random.Random
) -> None:
    await open_socket(reader, writer, host)
    writer.write(order("append", text="Hello. ") + order("end") + frame(b"\x03\xe8", 8))
    await reader.read()


async def wrong_key(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, dice: random.Random) -> None:
    writer.write(upgrade(host, key=dice.randbytes(16).hex()))
    await reader.read(100)


async def not_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, dice: random.Random) -> None:
    writer.write(dice.randbytes(dice.randint(1, 2000)))
    await reader.read(100)


async def broken_frames(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, dice: random.Random) -> None:
    """A socket that opens well; then what RFC 6455 forbids."""
    wrong = [
        dice.randbytes(dice.randint(1, 500)),
        frame(b"\xff\xfe\xfd"),  # text that is no UTF-8
        b"\x81\x05hello",  # not masked
        frame(b"x" * 200, 9),  # a ping that is too long
        frame(b"x", 0),  # goes on with what never began
        frame(b"x", 3),  # no such opcode
        b"\x81\xff" + (1 << 62).to_bytes(8, "big") + bytes(4),  # more than the world holds
        frame(b"{", final=False) * 50,  # pieces without an end
        frame(b"x" * 1_000_000),
    ]
    await open_socket(reader, writer, host)
    for _ in range(dice.randint(1, 3)):
        writer.write(dice.choice(wrong))
    await reader.read(dice.choice([1, 1000]))


async def nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, dice: random.Random) -> None:
    """Frames as they should be, and orders as they should not."""
    kinds = ["append", "end", "flush", "cancel", "truncate", "played", "configure", "close", "x"]
    values = [None, True, -1, 0, 1e308, "x", [], {}, "9" * 400, [[[[]]]], "\ud800"]
    names = ["text", "epoch", "samples", "ms", "voice", "speed", "encoding", "sample_rate", "transport", "ahead_s"]
    await open_socket(reader, writer, host)
    for _ in range(dice.randint(1, 60)):
        writer.write(order(dice.choice(kinds), **{dice.choice(names): dice.choice(values) for _ in range(dice.randint(0, 3))}))
    await reader.read(dice.choice([1, 5000]))


async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, dice: random.Random) -> None:
    """Thousands of the smallest messages at once, and never reads an answer."""
    await open_socket(reader, writer, host)
    writer.write(order("append", text="a") * 3000 + order("cancel") * 500)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0.2):
            await writer.drain()


async def huge_text(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, dice: random.Random) -> None:
    await open_socket(reader, writer, host)
    for _ in range(10):
        writer.write(order("append", text="word " * 12_000))
    await reader.read(1000)


ABUSES: tuple[Abuse, ...] = (
    nothing, half_a_request, leaves_in_the_middle, leaves_by_the_door, wrong_key, not_http, broken_frames, nonsense, flood,
    huge_text,
)  # fmt: skip


async def abuse(address: str, what: Abuse, dice: random.Random, source: str | None = None) -> None:
    """One connection of this kind, torn down hard. ``source``: the address from which it comes."""
    host, port = address.rsplit(":", 1)
    with contextlib.suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
        async with asyncio.timeout(_PATIENCE_S):
            local = None if source is None else (source, 0)
            reader, writer = await asyncio.open_connection(host, int(port), local_addr=local)
            try:
                await what(reader, writer, address, dice)
            finally:
                writer.transport.abort()
