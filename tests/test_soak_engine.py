"""The short form of the engine's long run: 200 sentences, some cut off, some that fail, and nothing is left of them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys


async def test_nothing_is_left_of_200_sentences() -> None:
    command = [sys.executable, "-m", "benchmarks.soak_engine", "--sentences", "200"]
    run = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    output, _ = await run.communicate()
    assert run.returncode == 0
    row = json.loads(output.decode().splitlines()[-1])["rows"][0]
    assert row["speeches left"] == row["sessions left"] == row["threads left"] == 0
    assert row["sentences"] >= 200
    assert row["failed"] > 0
    assert row["replies cut"] > 0
    assert row["spoken"] > 100
