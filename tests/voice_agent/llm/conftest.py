"""The local server that replays recorded streams."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sse_server import SseServer


@pytest.fixture
def server() -> Iterator[SseServer]:
    with SseServer() as running:
        yield running
