"""Every example runs as it stands: without a key, a server or a sound card."""

from __future__ import annotations

import os
import subprocess
import sys
import wave
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
NAMES = sorted(path.name for path in EXAMPLES.glob("*.py") if not path.name.startswith("_"))
ARGUMENTS = {"recorded_streams.py": ["{folder}"]}
FILES = {"recorded_streams.py": "demo.wav"}
SAYS = {
    "any_stream.py": ["an SDK's chunks", "'Chunks of an SDK.'", "Ollama"],
    "customer_service.py": ["left our warehouse yesterday", "30 days", "订单482914正在打包", "messages kept"],
    "desktop_assistant.py": ["That makes 51", "water the plants"],
    "langchain_hook.py": ["stream:", "callback: 'You asked: And with callbacks?"],
    "websocket_client.py": ["Your@", "done: ", "heard: 'If nobody"],
}


def run(name: str, arguments: list[str], folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """An example in a folder of its own, without anybody's key."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OPENAI_")}
    return subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning", str(EXAMPLES / name), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=240,
        cwd=folder,
        env={**environment, "PYTHONIOENCODING": "utf-8", **more},
        check=False,
    )


def test_every_example_is_known() -> None:
    assert {"any_stream.py", "customer_service.py", "desktop_assistant.py", "langchain_hook.py"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_example(name: str, tmp_path: Path) -> None:
    done = run(name, [part.format(folder=tmp_path) for part in ARGUMENTS.get(name, ["--out", "{folder}/out.wav"])], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    for words in SAYS.get(name, []):
        assert words in done.stdout, done.stdout
    with wave.open(str(tmp_path / FILES.get(name, "out.wav"))) as file:
        assert file.getnframes() > 2 * file.getframerate()


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("any_stream.py", ["--out", "nowhere/out.wav"], "the folder"),
        ("langchain_hook.py", ["--out", "out.mp3"], "cannot write .mp3 files"),
        ("customer_service.py", ["--no-play", "--llm", "openai"], "OPENAI_API_KEY is not set"),
        ("recorded_streams.py", ["/dev/null/out"], "Not a directory"),
        ("websocket_client.py", ["ws://127.0.0.1:9"], "Connect call failed"),
    ],
)
def test_what_cannot_work_is_one_line(name: str, arguments: list[str], says: str, tmp_path: Path) -> None:
    done = run(name, arguments, tmp_path)
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert says in line


def test_a_question_that_fails_does_not_end_the_assistant(tmp_path: Path) -> None:
    questions = ["What is 1/0?", "What is 2 + 2?"]
    done = run("desktop_assistant.py", ["--no-play", *questions], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "I cannot work out 1/0" in done.stdout
    assert "That makes 4." in done.stdout
    nobody = run("desktop_assistant.py", ["--no-play", *questions], tmp_path, OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    assert nobody.returncode == 0, nobody.stderr
    assert nobody.stdout.count("nobody answers there") == 2
