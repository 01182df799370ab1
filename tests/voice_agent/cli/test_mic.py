"""``sayline chat --mic`` as a user meets it: a real process in a room with a loudspeaker, a microphone and a terminal."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import pty
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from rich.console import Console

from tests import recogniser
from tests.voice_agent import room
from tests.voice_agent.ears import sounds
from tests.voice_agent.ears.sounds import spoken
from tests.voice_agent.ears.transcription_server import TranscriptionServer
from tests.voice_agent.sinks import pulse
from voice_agent.captions import (
    Caption,
    Event,
    Level,
    Listening,
    RecognitionFailed,
    Speaking,
    Thinking,
    ToolUsed,
    Transcribed,
    TurnBegan,
    TurnEnded,
)
from voice_agent.cli.display import LiveDisplay, PlainDisplay
from voice_agent.report import Report

SAYLINE = [sys.executable, "-W", "error", "-m", "voice_agent.cli", "chat"]
MISSING = "; ".join(filter(None, (pulse.missing(), sounds.missing())))
QUESTION = "When will my order arrive?"


# ---- in a room ----------------------------------------------------------------------------------------------------


class Terminal:
    """A terminal of its own; what is shown on it is in ``shown``."""

    def __init__(self) -> None:
        self.master, self.end = pty.openpty()
        self.shown = b""
        threading.Thread(target=self._read, daemon=True).start()

    def type(self, key: bytes) -> None:
        os.write(self.master, key)

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while data := os.read(self.master, 65_536):
                self.shown += data


def has(path: Path, name: str) -> bool:
    return path.exists() and f'"event": "{name}"' in path.read_text()


async def until_event(path: Path, name: str, process: asyncio.subprocess.Process) -> None:
    async with asyncio.timeout(90):
        while not has(path, name):
            assert process.returncode is None, "the chat has ended"
            await asyncio.sleep(0.05)


async def stopped(process: asyncio.subprocess.Process) -> int:
    process.send_signal(signal.SIGINT)
    return await asyncio.wait_for(process.wait(), 20)


@pytest.mark.peer
@pytest.mark.slow
@pytest.mark.skipif(bool(MISSING), reason=MISSING or "all is there")
async def test_a_question_is_heard_and_answered(tmp_path: Path) -> None:
    recogniser.require()
    events = tmp_path / "events.jsonl"
    with room.running(tmp_path, echo=((0.04, 14.0),)) as place:
        process = await asyncio.create_subprocess_exec(
            *[*SAYLINE, "--mic", "--llm", "demo", "--events", str(events), "--output", "pulse"],
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=place.environment,
        )
        await until_event(events, "Listening", process)
        await asyncio.sleep(1.0)
        await place.say(spoken(QUESTION))
        await until_event(events, "TurnEnded", process)
        assert await stopped(process) == 130
        out, err = await process.communicate()
    lines = out.decode().splitlines()
    assert lines[0].startswith("you> ")
    assert "order" in lines[0]
    assert lines[1].startswith("bot> ")
    assert len(lines[1]) > 20
    told = err.decode().splitlines()
    assert told[0] == "(demo: scripted answers, no language model)"
    assert len(told) == 2
    assert "the standard input is not read" in told[1]
    kinds = [json.loads(line)["event"] for line in events.read_text().splitlines()]
    states = [kind for kind in kinds if kind in ("Listening", "Thinking", "Speaking")]
    assert states[:3] == ["Listening", "Thinking", "Speaking"]
    assert "Level" not in kinds


@pytest.mark.peer
@pytest.mark.slow
@pytest.mark.skipif(bool(MISSING), reason=MISSING or "all is there")
async def test_push_to_talk_with_a_remote_recogniser(tmp_path: Path) -> None:
    events, terminal = tmp_path / "events.jsonl", Terminal()
    with room.running(tmp_path) as place, TranscriptionServer() as server:
        server.said = "Where is my parcel?"
        process = await asyncio.create_subprocess_exec(
            *[*SAYLINE, "--mic", "--llm", "demo", "--events", str(events), "--push-to-talk", "--stt", server.url],
            stdin=terminal.end,
            stdout=terminal.end,
            stderr=terminal.end,
            env={**place.environment, "OPENAI_API_KEY": server.key, "TERM": "xterm-256color"},
        )
        await until_event(events, "Listening", process)
        await asyncio.sleep(1.0)
        await place.say(spoken("Nobody listens to this."))
        assert server.requests == []
        terminal.type(b" ")
        await asyncio.sleep(0.3)
        await place.say(spoken(QUESTION))
        await asyncio.sleep(0.3)
        terminal.type(b" ")
        await until_event(events, "Speaking", process)
        assert len(server.requests) == 1
        assert 1.0 < len(server.requests[0].samples) / server.requests[0].rate < 6.0
        assert await stopped(process) == 130
    shown = terminal.shown.decode()
    for part in ("● listening", "… thinking", "♪ speaking", "you> Where is my parcel?", "space: talk", " dB"):
        assert part in shown
    assert "\x1b[?25h" in shown[-40:], "the cursor is back"
    assert shown.endswith("\x1b[2K"), "and the live line is gone"


# ---- what is refused ----------------------------------------------------------------------------------------------


def refused(*arguments: str, **environment: str) -> tuple[int, str]:
    hidden = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    done = subprocess.run(
        [*SAYLINE, "--llm", "demo", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=120,
        env={**hidden, "COLUMNS": "300", **environment},
        check=False,
    )
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--mic", "--once", "Hello"], 2, "--once is a typed question"),
        (["--mic", "--out", "-"], 2, "--out - has no place there"),
        (["--wake", "hey"], 2, "go with --mic"),
        (["--push-to-talk"], 2, "go with --mic"),
        (["--mic", "--no-play", "--wake", "!"], 2, "the wake phrase '!' has no word"),
        (["--mic", "--no-play", "--stt", "/no/model"], 2, "the Whisper model /no/model is not there"),
        (["--mic", "--no-play", "--stt", "remote"], 2, "OPENAI_API_KEY is not set"),
        (["--mic", "--no-play", "--language", "de"], 2, "'de' is not one of"),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_do(arguments: list[str], code: int, says: str) -> None:
    got, message = refused(*arguments)
    assert got == code
    assert says in message


def test_no_microphone_gives_one_clear_line(tmp_path: Path) -> None:
    with TranscriptionServer() as server:
        nowhere = {"PULSE_SERVER": "unix:/nowhere", "HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
        code, message = refused("--mic", "--no-play", "--stt", server.url, OPENAI_API_KEY=server.key, **nowhere)
    if "there is no microphone" not in message:
        pytest.skip("this machine has a microphone")
    assert code == 4
    assert message.splitlines()[1].startswith("sayline: there is no microphone: connect one, or allow this program")
    assert "Traceback" not in message


# ---- what is shown ------------------------------------------------------------------------------------------------


def report(heard: str, *, interrupted: bool = False) -> Report:
    return Report(heard, heard, (), 1.0, 1.0, 0.0, (), (), (), (), (), interrupted)


TALK: list[Event] = [
    Listening(0),
    Level(-20.0, True),
    Transcribed(0, "Where is", False, "en"),
    Transcribed(0, "Where is my parcel?", True, "en"),
    Thinking(0),
    ToolUsed(0, "track", {"number": 1}, None),
    ToolUsed(0, "track", {"number": 1}, "here"),
    TurnBegan(0),
    Speaking(0),
    Caption(0, "On", 0, 2, 0.0, 0.1, 0),
    Caption(0, "its", 3, 6, 0.1, 0.2, 0),
    TurnEnded(1, report("On its", interrupted=True)),
    Transcribed(1, "background talk", True, "en", "not addressed"),
    RecognitionFailed(1, "the server is tired"),
    TurnEnded(1, report(""), "the model is tired"),
]
LINES = [
    "you> Where is my parcel?",
    "     (track …)",
    "bot> On its (interrupted)",
    "you> background talk  (not addressed)",
]


def test_lines_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with PlainDisplay() as display:
        for event in TALK:
            display.show(event)
    shown = capsys.readouterr()
    assert shown.out.splitlines() == LINES
    assert shown.err.splitlines() == [
        "sayline: warning: the server is tired",
        "sayline: warning: the model is tired",
    ]


def test_a_live_line_on_a_terminal() -> None:
    file = io.StringIO()
    display = LiveDisplay(Console(file=file, force_terminal=True, width=100), hint="space: talk")
    pictures = []
    with display:
        for event in TALK:
            display.show(event)
            pictures.append(display._picture().plain)
    assert "● listening" in pictures[0]
    assert pictures[0].rstrip().endswith("space: talk")
    assert "-20 dB" in pictures[1]
    assert pictures[2].endswith("you> Where is")
    assert "you>" not in pictures[3]
    assert "… thinking" in pictures[4]
    assert pictures[10].endswith("bot> On its")
    assert "♪ speaking" in pictures[10]
    assert "bot>" not in pictures[11]
    shown = file.getvalue()
    for line in LINES:
        assert line in shown


@pytest.mark.parametrize("db", [-200.0, -90.0, -70.0, -40.0, -10.0, 0.0, 12.0])
def test_the_meter_takes_any_level(db: float) -> None:
    display = LiveDisplay(Console(file=io.StringIO(), force_terminal=True))
    with display:
        display.show(Level(db, False))
        assert f"{db:.0f} dB" in display._picture().plain


def test_chinese_captions_have_no_spaces_between() -> None:
    display = LiveDisplay(Console(file=io.StringIO(), force_terminal=True))
    with display:
        for text in ("您", "好", "，Anna", "您好"):
            display.show(Caption(0, text, 0, 1, 0.0, 0.1, 0))
        assert display._picture().plain.endswith("bot> 您好 ，Anna您好")
