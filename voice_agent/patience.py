"""Bounds the wait for an LLM that has stopped sending."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from voice_agent.errors import SourceError
from voice_agent.llm.deltas import Delta

__all__ = ["patient"]


async def patient(deltas: AsyncGenerator[Delta, None], stall_s: float | None) -> AsyncGenerator[Delta, None]:
    """The deltas, unchanged. Raises SourceError when one does not come for ``stall_s`` seconds (None: waits for ever)."""
    async with aclosing(deltas):
        while True:
            try:
                async with asyncio.timeout(stall_s):
                    delta = await anext(deltas)
            except StopAsyncIteration:
                return
            except TimeoutError:
                error = SourceError(f"the LLM has sent nothing for {stall_s:g} s; ask again, or allow it more time")
                error.retryable = True
                raise error from None
            yield delta
