"""The conformance kit for sinks: every promise of ``voice_agent.sinks.Sink`` as a check that runs on any sink.

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    async def test_my_sink(check):
        await check(Rig(make=MySink, real_time=True))

A check raises AssertionError with the promise that was broken. With ``run_virtual`` around it a simulated device
takes no time.
"""

from __future__ import annotations

from voice_agent.testing.sink_conformance import cutting, holding, losing, loudness, playing
from voice_agent.testing.sink_conformance.rig import Check, Rig, chunk_of, chunks_of, tone

__all__ = ["CHECKS", "Rig", "chunk_of", "chunks_of", "tone"]

CHECKS: list[Check] = [*playing.CHECKS, *cutting.CHECKS, *holding.CHECKS, *loudness.CHECKS, *losing.CHECKS]
