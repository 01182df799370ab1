"""The command line as a user meets it: real processes, real pipes, real files."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import wave
from pathlib import Path

import numpy as np
import pytest

SAYLINE = [sys.executable, "-W", "error", "-m", "voice_agent.cli"]


def sayline(*arguments: str, stdin: str | bytes | None = None, **environment: str) -> subprocess.CompletedProcess[bytes]:
    hidden = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    return subprocess.run(
        [*SAYLINE, *arguments],
        input=stdin.encode() if isinstance(stdin, str) else stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        timeout=120,
        env={**hidden, **environment},
        check=False,
    )


def samples_of(path: Path | bytes) -> np.ndarray:
    with wave.open(str(path)) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (24_000, 1, 2)
        return np.frombuffer(file.readframes(file.getnframes()), "<i2")


def test_say_writes_a_wav(tmp_path: Path) -> None:
    done = sayline("say", "Hello there. 你好！", "--out", str(tmp_path / "said.wav"))
    assert done.returncode == 0, done.stderr.decode()
    samples = samples_of(tmp_path / "said.wav")
    assert 1.5 < len(samples) / 24_000 < 6
    assert np.abs(samples).max() > 2000
    assert done.stdout == b""


def test_the_arithmetic_can_be_chosen(tmp_path: Path) -> None:
    said = []
    for precision in ("int8", "float32"):
        path = tmp_path / f"{precision}.wav"
        done = sayline("say", "Hello there.", "--out", str(path), "--precision", precision, "--compile", "onnx")
        assert (done.returncode, done.stderr) == (0, b"")
        said.append(samples_of(path).tobytes())
    assert said[0] != said[1]


def test_say_to_standard_output_and_a_timeline(tmp_path: Path) -> None:
    done = sayline("say", "Hello.", "--out", "-", "--timeline")
    assert done.returncode == 0
    assert done.stdout[:4] == b"RIFF"
    assert b"audible" in done.stderr
    raw = sayline("say", "Hello.", "--out", "pcm:-")
    assert raw.stdout == done.stdout[44:]


def test_say_as_json(tmp_path: Path) -> None:
    done = sayline("say", "It is **3.14**! 🎉 สวัสดี", "--no-play", "--json")
    report = json.loads(done.stdout)
    assert report["sentences"][0]["text"] == "It is 3.14!"
    assert report["sentences"][0]["first_audible_s"] > 0
    assert any("Thai" in warning for warning in report["warnings"])
    assert b"warning" in done.stderr


def test_pipe_speaks_while_the_input_arrives(tmp_path: Path) -> None:
    """The file holds the first sentence before the second was written to the pipe."""
    path = tmp_path / "piped.wav"
    process = subprocess.Popen([*SAYLINE, "pipe", "--out", str(path)], stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write("The first sentence is here. 第".encode())
    process.stdin.flush()
    deadline = time.monotonic() + 60
    while not (path.exists() and path.stat().st_size > 40_000):
        assert time.monotonic() < deadline, "nothing was spoken before the input ended"
        time.sleep(0.05)
    before = path.stat().st_size
    process.stdin.write("二句在这里。".encode())
    process.stdin.close()
    assert process.wait(60) == 0
    assert path.stat().st_size > before + 20_000
    assert np.abs(samples_of(path)).max() > 2000


@pytest.mark.parametrize("text", ["", "...", "😊", "\x01\x02"])
def test_nothing_to_say_is_said(text: str, tmp_path: Path) -> None:
    done = sayline("pipe", "--out", str(tmp_path / "nothing.wav"), stdin=text)
    assert done.returncode == 0
    assert b"nothing to say" in done.stderr
    assert len(samples_of(tmp_path / "nothing.wav")) == 0


def test_a_binary_file_is_not_spoken() -> None:
    done = sayline("pipe", "--no-play", stdin=Path(sys.executable).read_bytes()[:100_000])
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert b"binary" in done.stderr


def test_ctrl_c_stops_at_once_and_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "cut.wav"
    process = subprocess.Popen([*SAYLINE, "say", "word " * 20_000, "--out", str(path)], stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not (path.exists() and path.stat().st_size > 200_000):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)  # the whole text takes minutes; benchmarks/stopping.py measures how soon
    assert process.returncode == 130
    assert b"Traceback" not in errors
    assert len(samples_of(path)) > 90_000


def test_a_killed_process_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "killed.wav"
    process = subprocess.Popen([*SAYLINE, "say", "word " * 20_000, "--out", str(path)])
    deadline = time.monotonic() + 60
    while not (path.exists() and path.stat().st_size > 200_000):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.kill()
    process.wait()
    assert len(samples_of(path)) > 90_000


def in_shell(command: str) -> subprocess.CompletedProcess[bytes]:
    """What stands for ``sayline`` in a shell's command; the exit code is that of the first command of a pipe."""
    line = f"set -o pipefail; {command.replace('sayline', ' '.join(SAYLINE))}"
    return subprocess.run(["bash", "-c", line], stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False)


@pytest.mark.parametrize(
    "command",
    [
        "sayline say 'One. Two. Three. Four. Five. Six.' --out -",
        "sayline say Hello. --no-play --json",
        "sayline chat --llm demo --once 'Where is my order?' --no-play",
        "sayline voices",
    ],
)
def test_a_reader_that_goes_away_is_no_traceback(command: str) -> None:
    done = in_shell(f"{command} | true")
    assert b"Traceback" not in done.stderr
    assert done.returncode == 4


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        ("sayline voices >/dev/full", 4, b"No space left"),
        ("sayline say Hello. --no-play --json >/dev/full", 4, b"No space left"),
        ("sayline voices >&-", 0, b""),
        ("sayline say Hello. --no-play --json >&-", 0, b""),
        ("sayline say Hello. --out - >&-", 4, b"no standard output"),
        ("sayline pipe --no-play <&-", 2, b"no standard input"),
        ("sayline chat --llm demo --no-play <&-", 2, b"no standard input"),
        ("sayline say Hello. --voice nobody --no-play 2>&-", 2, b""),
    ],
)
def test_streams_that_are_closed_or_full(command: str, code: int, says: bytes) -> None:
    done = in_shell(command)
    assert says in done.stderr
    assert b"Traceback" not in done.stderr
    assert done.returncode == code, done.stderr.decode()


def test_a_terminal_that_knows_no_chinese() -> None:
    done = sayline("say", "你好 🎉", "--no-play", "--json", "--timeline", LC_ALL="C", PYTHONIOENCODING="ascii")
    assert json.loads(done.stdout)["sentences"][0]["text"] == "你好"
    done = sayline("chat", "--llm", "demo", "--once", "你好", "--no-play", LC_ALL="C", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.parametrize(
    ("arguments", "shows"),
    [
        (["listen", "{recording}"], b"speech began"),
        (["compile", "--out", "{folder}/made.safetensors"], b"measuring"),
    ],
)
def test_ctrl_c_ends_what_only_computes(arguments: list[str], shows: bytes, tmp_path: Path) -> None:
    recording = tmp_path / "long.wav"
    assert sayline("say", "One sentence.", "--out", str(recording)).returncode == 0
    with wave.open(str(recording)) as file:
        facts, sound = file.getparams(), file.readframes(file.getnframes())
    with wave.open(str(recording), "wb") as file:
        file.setparams(facts)
        file.writeframes(sound * 5000)
    named = [each.format(recording=recording, folder=tmp_path) for each in arguments]
    process = subprocess.Popen([*SAYLINE, *named], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    assert shows in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output[-2000:]
    assert b"Traceback" not in output
    assert not (tmp_path / "made.safetensors").exists()


def test_ctrl_c_while_it_starts() -> None:
    """The signal comes while modules are imported."""
    program = """
import builtins, os, signal
real = builtins.__import__
def interrupted(name, *rest):
    if name == "typer":
        os.kill(os.getpid(), signal.SIGINT)
    return real(name, *rest)
builtins.__import__ = interrupted
from voice_agent.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (130, b"")


def test_a_file_is_not_emptied_by_a_voice_or_a_format_that_is_not_there(tmp_path: Path) -> None:
    kept = tmp_path / "kept.wav"
    kept.write_bytes(b"an older recording")
    for command in (
        ["say", "Hello.", "--voice", "nobody"],
        ["say", "Hello.", "--speed", "9"],
        ["say", "Hello.", "--compile", "jit"],
        ["pipe", "--format", "nothing"],
        ["chat", "--llm", "demo", "--once", "Hi", "--voice", "nobody"],
    ):
        assert sayline(*command, "--out", str(kept)).returncode == 2
        assert kept.read_bytes() == b"an older recording"


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["say", "Hello.", "--voice", "bella", "--no-play"], 2, b"auto, heart, xiaobei"),
        (["say", "\u4f60\u597d\u3002", "--voice", "heart", "--no-play"], 2, b"xiaobei"),
        (["say", "Hello.", "--speed", "9", "--no-play"], 2, b"0.5"),
        (["say", "Hello.", "--precision", "int4", "--no-play"], 2, b"auto, float32, bfloat16, int8"),
        (["pipe", "--compile", "onnx", "--precision", "bfloat16", "--no-play"], 2, b"compile='none'"),
        (["say", "Hello.", "--out", "x.mp3"], 2, b".wav"),
        (["say", "Hello.", "--out", "/nowhere/x.wav"], 4, b"/nowhere"),
        (["say", "Hello.", "--out", "/dev/full"], 2, b"/dev/full"),
        (["say", "Hello.", "--out", "wav:/dev/full"], 4, b"full"),
        (["say"], 2, b"TEXT"),
        (["sing"], 2, b"sing"),
        (["say", "Hello.", "--json", "--out", "-"], 2, b"standard output"),
        (["chat", "--once", "Hi", "--no-play"], 2, b"OPENAI_API_KEY"),
        (["pipe", "--format", "json", "--no-play"], 2, b"auto, text"),
        (["listen", "missing.wav"], 2, b"missing.wav"),
        (["compile", "--out", "/nowhere/x"], 4, b"/nowhere does not exist"),
    ],
    ids=lambda value: value[:60] if isinstance(value, str) else None,
)
def test_errors_are_one_clear_line_and_a_code(arguments: list[str], code: int, says: bytes) -> None:
    done = sayline(*arguments)
    assert says in done.stderr + done.stdout
    assert done.returncode == code, done.stderr.decode()
    assert b"Traceback" not in done.stderr


def test_no_network_and_a_wrong_key() -> None:
    done = sayline("chat", "--once", "Hi", "--no-play", OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    assert done.returncode == 3
    assert b"127.0.0.1:9" in done.stderr
    assert b"Traceback" not in done.stderr


def test_chat_with_the_demo(tmp_path: Path) -> None:
    done = sayline("chat", "--llm", "demo", "--out", str(tmp_path / "chat.wav"), "--json", stdin="Where is my order?\n谢谢\n")
    assert done.returncode == 0, done.stderr.decode()
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["asked"] for answer in answers] == ["Where is my order?", "谢谢"]
    total_s = len(samples_of(tmp_path / "chat.wav")) / 24_000
    assert total_s == pytest.approx(sum(answer["audio_s"] for answer in answers), abs=0.01)
    assert b"script" in done.stderr.lower()


def test_a_conversation_goes_on_in_its_file(tmp_path: Path) -> None:
    file, events = tmp_path / "talk.db", tmp_path / "events.jsonl"
    arguments = ["chat", "--llm", "demo", "--no-play", "--resume", str(file), "--events", str(events)]
    assert sayline(*arguments, "--once", "Where is my order?").returncode == 0
    kinds = [json.loads(line)["event"] for line in events.read_text().splitlines()]
    assert kinds[0] == "TurnBegan"
    assert kinds[-1] == "TurnEnded"
    assert {"Caption", "SentenceHeard"} < set(kinds)
    assert sayline(*arguments, "--once", "123456").returncode == 0
    from voice_agent.conversation import Conversation

    with Conversation.open(file) as conversation:
        roles = [message["role"] for message in conversation.messages]
    assert roles == ["user", "assistant"] * 2


@pytest.mark.parametrize(
    ("option", "content", "says"),
    [
        ("--resume", "no database, but a text that is long enough", b"cannot be used as a conversation"),
        ("--tools", "x = 1", b"@tool"),
        ("--tools", "x = (", b"SyntaxError"),
    ],
)
def test_files_of_a_chat_that_cannot_be_used(option: str, content: str, says: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file.py"
    path.write_text(content)
    done = sayline("chat", "--llm", "demo", "--no-play", "--once", "Hi", option, str(path))
    assert done.returncode == 2
    assert says in done.stderr
    assert b"Traceback" not in done.stderr


def test_voices_and_doctor() -> None:
    assert b"xiaobei" in sayline("voices").stdout
    assert [row["name"] for row in json.loads(sayline("voices", "--json").stdout)] == ["heart", "xiaobei"]
    done = sayline("doctor", "--json")
    findings = json.loads(done.stdout)
    assert done.returncode == 0
    assert {"Embedded voice", "English speech", "Chinese speech", "Speaker"} <= {row["what"] for row in findings}
    assert all(row["ok"] for row in findings if row["needed"])


def test_words_need_no_quotes() -> None:
    done = sayline("say", "Hello", "there.", "--no-play", "--json")
    assert json.loads(done.stdout)["text"] == "Hello there."


def test_help_tells_exit_codes_and_commands() -> None:
    shown = sayline("--help").stdout
    for word in (b"say", b"pipe", b"chat", b"voices", b"doctor", b"130"):
        assert word in shown
    assert b"[break_300]" in sayline("say", "--help").stdout
    assert re.fullmatch(rb"sayline \d+\.\d+\.\d+\n", sayline("--version").stdout)
