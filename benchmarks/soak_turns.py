"""Soak: many turns of one agent in virtual time, with random holds and interruptions; memory, tasks, threads stay as they were.

    python -m benchmarks.soak_turns [--turns 10000]

The engine is the fake one (word times known), the ear a simulated device. Every word that was accepted is counted: heard,
or reported as not heard.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import random
import threading
import time

from benchmarks.measure import Row, report
from tts_engine.resources import resident_bytes
from voice_agent.agent import Agent
from voice_agent.llm.demo import DemoChat
from voice_agent.sinks.memory import MemorySink
from voice_agent.testing.clock import LoopClock, run_virtual
from voice_agent.testing.fake_engine import FakeSynthesizer

QUESTIONS = ["Where is my order?", "I want a refund.", "谢谢", "订单 482913 到哪了？", "It is broken!", "Tell me more."]
KEPT_MESSAGES = 40


async def soak(turns: int) -> list[Row]:
    rng = random.Random(0)
    sink = MemorySink(clock=LoopClock(), latency_s=0.03, keep=False)
    rows: list[Row] = []
    said = heard = told = held = interrupted = 0
    tasks = len(asyncio.all_tasks())
    async with Agent(DemoChat(), sink, synthesizer=FakeSynthesizer()) as agent:
        for number in range(1, turns + 1):
            turn = asyncio.create_task(agent.reply(rng.choice(QUESTIONS)))
            if rng.random() < 0.3:
                await asyncio.sleep(rng.random() * 4)
                agent.duck()
                await agent.hold()
                await asyncio.sleep(rng.random() * 2)
                await agent.resume()
                held += 1
            if rng.random() < 0.5:
                await asyncio.sleep(rng.random() * 8)
                await agent.interrupt()
            result = await turn
            interrupted += result.interrupted
            said += len(result.text)
            heard += len(result.heard)
            told += len(result.text) - len(result.heard) if result.interrupted else 0
            assert result.text.startswith(result.heard)
            del agent.conversation.messages[:-KEPT_MESSAGES]  # what an application does with a long history
            assert len(asyncio.all_tasks()) == tasks, "a task is left"
            if number % (turns // 10) == 0:
                gc.collect()
                rows.append(
                    {
                        "turns": number,
                        "resident MiB": round(resident_bytes() / 2**20, 1),
                        "Python objects": len(gc.get_objects()),
                        "tasks": len(asyncio.all_tasks()),
                        "threads": threading.active_count(),
                        "held": held,
                        "interrupted": interrupted,
                        "virtual hours": round(asyncio.get_running_loop().time() / 3600, 2),
                    }
                )
    assert heard + told == said, "a character is neither heard nor reported"
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=10_000)
    turns = parser.parse_args().turns
    began_s = time.monotonic()
    rows = run_virtual(soak(turns))
    resident = [float(str(row["resident MiB"])) for row in rows]
    report("soak_turns", rows, growth_mib=round(resident[-1] - resident[1], 1), wall_s=round(time.monotonic() - began_s, 1))


if __name__ == "__main__":
    main()
