"""Speech commands as real processes: whole, slow, broken, and killed in the middle."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tts_engine.types import AudioFormat, Utterance
from voice_agent.errors import EngineError, InputError
from voice_agent.synthesizers import CommandSynthesizer

RAMP = """
import sys, time, array
text = sys.stdin.read().strip() if len(sys.argv) < 2 else sys.argv[1]
samples = array.array("h", range(min(len(text), 30) * 1000))
"""


def command(body: str, *arguments: str, **options) -> CommandSynthesizer:
    return CommandSynthesizer([sys.executable, "-c", RAMP + body, *arguments], **options)


async def spoken(synthesizer, *texts):
    session = synthesizer.open()
    for text in texts:
        await session.put(Utterance(text))
    session.end()
    return [chunk async for chunk in session]


def ramp(chunks):
    return np.rint(np.concatenate([chunk.samples for chunk in chunks]) * 2**15).astype(int)


def gone(pid: int) -> bool:
    """Killed; one that nobody has waited for yet is gone too."""
    stat = Path(f"/proc/{pid}/stat")
    try:
        os.kill(pid, 0)
        return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z"
    except (ProcessLookupError, FileNotFoundError):
        return True


async def until(condition, timeout_s=10.0):
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110 - what is waited for is in another process
            await asyncio.sleep(0.001)


async def last_of(session):
    """The packets up to the error that ends an utterance."""
    while True:
        await anext(session)


@pytest.mark.parametrize("arguments", [(), ("{text}",)], ids=["stdin", "argument"])
async def test_the_text_goes_in_and_the_samples_come_out(arguments):
    chunks = await spoken(command("sys.stdout.buffer.write(samples.tobytes())", *arguments), "Hello")
    assert ramp(chunks).tolist() == list(range(5000))
    assert chunks[-1].last


async def test_sentences_come_in_order():
    chunks = await spoken(command("sys.stdout.buffer.write(samples.tobytes())"), "One", "Three", "Seven", "A", "Bc", "Def")
    lengths = {}
    for chunk in chunks:
        lengths[chunk.utterance.text] = lengths.get(chunk.utterance.text, 0) + len(chunk.samples)
    assert lengths == {"One": 3000, "Three": 5000, "Seven": 5000, "A": 1000, "Bc": 2000, "Def": 3000}


async def test_the_next_sentence_is_made_while_one_is_taken():
    session = command("sys.stdout.buffer.write(samples.tobytes())").open()
    await session.put(Utterance("One"))
    await session.put(Utterance("Two"))
    session.end()
    await until(lambda: session.buffered_s > 6000 / 24_000 - 1e-6)
    assert ramp([chunk async for chunk in session]).tolist() == [*range(3000), *range(3000)]
    assert session.buffered_s == pytest.approx(0)


async def test_at_most_ten_seconds_are_made_ahead():
    endless = command("while True: sys.stdout.buffer.write(bytes(48000)); sys.stdout.flush()")
    session = endless.open()
    await session.put(Utterance("Hello"))
    await until(lambda: session.buffered_s >= 10)
    await asyncio.sleep(0.2)
    assert session.buffered_s < 13
    session.cancel()
    await until(lambda: len(asyncio.all_tasks()) == 1)


async def test_what_an_argument_may_hold():
    echo = command("sys.stderr.write(repr(sys.argv[1:])); sys.exit(3)", "{text}|{speed}|{length}|{words_a_minute}|{voice}|{x}")
    session = echo.open()
    await session.put(Utterance("-v {speed} $HOME `ls`\0 \ud800 'a'\nb", speed=1.25, voice="joe"))
    session.end()
    with pytest.raises(EngineError, match="exit code 3") as caught:
        await anext(session)
    assert """[" -v {speed} $HOME `ls` ? 'a' b|1.25|0.8|219|joe|{x}"]""" in str(caught.value)


async def test_a_string_is_split_like_a_shell_does():
    with pytest.raises(EngineError, match="failed: it is not found"):
        await CommandSynthesizer("no-such-program --say '{text} and more'").ready()
    with pytest.raises(InputError, match="empty"):
        CommandSynthesizer("  ")
    await CommandSynthesizer(f"'{sys.executable}' -c pass").ready()


@pytest.mark.parametrize(
    ("body", "options", "said"),
    [
        (
            "sys.stderr.write('loading\\nno voice called joe\\n'); sys.exit(2)",
            {},
            "exit code 2; it said: no voice called joe",
        ),
        ("sys.stdout.buffer.write(samples.tobytes()); sys.exit(1)", {}, "exit code 1"),
        ("time.sleep(60)", {"timeout_s": 0.2}, "nothing came for 0.2 s"),
        ("sys.stdout.buffer.write(bytes(480)); sys.stdout.flush(); time.sleep(60)", {"timeout_s": 0.3}, "nothing came"),
        ("print('Usage: speak [options]')", {"encoding": "wav"}, "no WAV header"),
        ("print('<!DOCTYPE html>')", {}, "is HTML"),
        ("sys.stdout.buffer.write(b'RIFF')", {}, "inside the WAV header"),
        ("sys.stdout.buffer.write(bytes(481))", {}, "inside a sample"),
        ("pass", {}, "no sound"),
        ("os.abort()", {}, "exit code"),
    ],
)
async def test_failures_are_explained_and_the_line_goes_on(body, options, said):
    session = command(body, **options).open()
    await session.put(Utterance("Hello there."))
    await session.put(Utterance("…"))
    session.end()
    with pytest.raises(EngineError, match=said) as caught:
        await last_of(session)
    assert caught.value.unspoken == "Hello there."
    assert [chunk.last async for chunk in session] == [True]


async def test_a_program_that_is_missing_fails_the_sentence():
    with pytest.raises(EngineError, match="cannot be started") as caught:
        await spoken(CommandSynthesizer(["/no/such/program"]), "Hello.")
    assert caught.value.unspoken == "Hello."


async def test_a_command_that_never_reads_does_not_block():
    chunks = await spoken(
        CommandSynthesizer([sys.executable, "-c", "import sys; sys.stdout.buffer.write(bytes(480))"]),
        "Hello " * 100_000,
    )
    assert sum(len(chunk.samples) for chunk in chunks) == 240


async def test_much_complaining_does_not_block():
    chunks = await spoken(command("sys.stderr.write('x' * 1_000_000); sys.stdout.buffer.write(samples.tobytes())"), "Hi")
    assert ramp(chunks).tolist() == list(range(2000))


@pytest.mark.skipif(sys.platform == "win32", reason="process groups")
async def test_a_cancel_kills_the_command_and_its_children(tmp_path):
    pids = tmp_path / "pids"
    body = f"""
import os, subprocess
child = subprocess.Popen(["sleep", "60"])
sys.stdout.buffer.write(bytes(9600)); sys.stdout.flush()
open({str(pids)!r}, "w").write(f"{{os.getpid()}} {{child.pid}}")
time.sleep(60)
"""
    session = command(body).open()
    await session.put(Utterance("Hello"))
    await anext(session)
    await until(lambda: pids.exists() and pids.read_text())
    own, child = map(int, pids.read_text().split())
    waiting = asyncio.ensure_future(anext(session))
    await asyncio.sleep(0)
    began_s = time.monotonic()
    session.cancel()
    with pytest.raises(StopAsyncIteration):
        await waiting
    await until(lambda: gone(own) and gone(child))
    await until(lambda: len(asyncio.all_tasks()) == 1)
    assert time.monotonic() - began_s < 40  # they sleep for 60 s


@pytest.mark.peer
async def test_espeak():
    if shutil.which("espeak-ng") is None:
        pytest.skip("no espeak-ng: apt install espeak-ng")
    chunks = await spoken(CommandSynthesizer("espeak-ng --stdout -s {words_a_minute} {text}"), "-5 degrees today.")
    assert chunks[0].format == AudioFormat(22_050)
    assert 0.5 < sum(chunk.duration_s for chunk in chunks) < 4
