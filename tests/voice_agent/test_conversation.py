"""The history and its file: what was heard, in OpenAI's format, safe from kills and from wrong files."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.voice_agent.scripted import Device, ScriptedModel, check_history
from voice_agent.agent import Agent
from voice_agent.conversation import Conversation
from voice_agent.errors import ConfigError
from voice_agent.llm.deltas import ToolCall
from voice_agent.metrics import STAGES
from voice_agent.testing.clock import run_virtual
from voice_agent.testing.fake_engine import FakeSynthesizer
from voice_agent.tools import tool


@tool
async def weather(city: str) -> str:
    """Tells the weather."""
    return f"sunny in {city}"


SCRIPT = (["One moment.", ToolCall("weather", {"city": "Köln"}, "c1")], ["It is sunny. 🎉"], ["Second answer here."])


def hold(path: Path, *questions: str, interrupt_s: float | None = None) -> list[dict[str, object]]:
    """Asks the questions in a conversation that is kept in ``path``; gives its messages."""

    async def main() -> list[dict[str, object]]:
        conversation = Conversation.open(path)
        agent = Agent(
            ScriptedModel(*SCRIPT), Device(), synthesizer=FakeSynthesizer(), tools=[weather], conversation=conversation
        )
        async with agent:
            for question in questions:
                reply = agent.reply(question)
                if interrupt_s is None:
                    await reply
                    continue
                task = asyncio.create_task(reply)
                await asyncio.sleep(interrupt_s)
                await agent.interrupt()
                await task
        return [dict(message) for message in conversation.messages]

    return run_virtual(main())


def test_a_conversation_is_kept_and_resumed(tmp_path: Path) -> None:
    path = tmp_path / "talk.db"
    first = hold(path, "Wie ist das Wetter?", "Und \ud800 jetzt?")
    check_history(first)
    assert [message["role"] for message in first] == ["user", "assistant", "tool", "assistant", "user", "assistant"]
    with Conversation.open(path) as again:
        assert again.messages == first
        again.user("More.")
    with Conversation.open(path) as again:
        assert again.messages == [*first, {"role": "user", "content": "More."}]


def test_the_file_tells_what_was_said_what_was_heard_and_when(tmp_path: Path) -> None:
    path = tmp_path / "talk.db"
    hold(path, "Wie ist das Wetter?")
    hold(path, "Noch einmal?", interrupt_s=0.7)
    database = sqlite3.connect(path)
    rows = database.execute("SELECT said, heard, report FROM turns ORDER BY id").fetchall()
    assert rows[0][:2] == ("One moment.It is sunny. 🎉", "One moment.It is sunny. 🎉")
    assert rows[1][:2] == ("One moment.It is sunny. 🎉", "One moment.")
    assert json.loads(rows[1][2])["interrupted"]
    stages = database.execute("SELECT stage FROM timeline WHERE turn = 1 AND sentence = 0").fetchall()
    assert {stage for (stage,) in stages} == set(STAGES)
    database.close()


@pytest.mark.parametrize("content", [b"not a database at all, just text that is long enough to look at", b"\0" * 5000])
def test_a_file_of_another_kind_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "photo.jpg"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"photo\.jpg.*name another"):
        Conversation.open(path)
    assert path.read_bytes() == content


def test_another_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    database = sqlite3.connect(path)
    database.execute("CREATE TABLE orders (id INTEGER)")
    database.commit()
    database.close()
    with pytest.raises(ConfigError, match="no conversation of Sayline"):
        Conversation.open(path)


def test_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "talk.db"
    Conversation.open(path).close()
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(ConfigError, match="version 99"):
        Conversation.open(path)


@pytest.mark.parametrize("message", ["{", "[]", '{"role": 1}', '"text"'])
def test_a_damaged_message_is_named(tmp_path: Path, message: str) -> None:
    path = tmp_path / "talk.db"
    Conversation.open(path).close()
    database = sqlite3.connect(path)
    database.execute("INSERT INTO messages (message) VALUES (?)", (message,))
    database.commit()
    database.close()
    with pytest.raises(ConfigError, match=r"talk\.db"):
        Conversation.open(path)


@pytest.mark.parametrize("name", ["missing/talk.db", "."])
def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be used"):
        Conversation.open(tmp_path / name)


def test_a_new_file_may_exist_and_be_empty(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()
    with Conversation.open(path) as conversation:
        assert conversation.messages == []


WRITER = """
import sys
from voice_agent.conversation import Conversation
conversation = Conversation.open(sys.argv[1])
number = len(conversation.messages)
while True:
    conversation.add([{"role": "user", "content": str(number)}, {"role": "assistant", "content": str(number + 1)}])
    number += 2
    print(number, flush=True)
"""


def test_a_killed_process_loses_nothing_that_was_added(tmp_path: Path) -> None:
    path = tmp_path / "talk.db"
    for wait_s in (0.01, 0.05, 0.1):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(wait_s)
            os.kill(process.pid, signal.SIGKILL)
            told = process.stdout.read().split()
        with Conversation.open(path) as conversation:
            contents = [message["content"] for message in conversation.messages]
        assert contents == [str(number) for number in range(len(contents))]
        assert len(contents) % 2 == 0
        assert len(contents) >= int(told[-1]) if told else True


def test_a_file_that_cannot_be_written_is_told_and_written_later(tmp_path: Path) -> None:
    path = tmp_path / "talk.db"
    other = sqlite3.connect(path)

    async def main() -> None:
        conversation = Conversation.open(path)
        async with Agent(ScriptedModel(*SCRIPT), Device(), synthesizer=FakeSynthesizer(), conversation=conversation) as agent:
            other.execute("BEGIN IMMEDIATE")
            report = await agent.reply("First?")
            assert report.heard == "One moment."
            assert any("talk.db: cannot be used" in warning and "locked" in warning for warning in report.warnings)
            other.rollback()
            assert not (await agent.reply("Second?")).warnings
            other.execute("BEGIN IMMEDIATE")
            await agent.reply("Third?")
            assert len(conversation.messages) == 6
            with pytest.raises(ConfigError, match="locked"):
                conversation.close()

    run_virtual(main())
    other.close()
    with Conversation.open(path) as again:
        assert [message["content"] for message in again.messages] == ["First?", "One moment.", "Second?", "It is sunny. 🎉"]


def test_one_that_was_opened_elsewhere_is_written_in_the_loops_thread(tmp_path: Path) -> None:
    conversation = Conversation.open(tmp_path / "talk.db")
    thread = threading.Thread(target=lambda: conversation.user("Hi."))
    thread.start()
    thread.join()
    conversation.close()
    with Conversation.open(tmp_path / "talk.db") as again:
        assert again.messages == [{"role": "user", "content": "Hi."}]


def test_an_empty_answer_leaves_nothing() -> None:
    conversation = Conversation()
    conversation.user("Hi.")
    conversation.assistant("")
    assert conversation.messages == [{"role": "user", "content": "Hi."}]
