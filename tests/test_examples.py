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


def test_every_example_is_known() -> None:
    assert {"any_stream.py", "customer_service.py", "desktop_assistant.py", "langchain_hook.py"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_example(name: str, tmp_path: Path) -> None:
    arguments = [part.format(folder=tmp_path) for part in ARGUMENTS.get(name, ["--out", "{folder}/out.wav"])]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OPENAI_")}
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning", str(EXAMPLES / name), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=240,
        env={**environment, "PYTHONIOENCODING": "utf-8"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    for words in SAYS.get(name, []):
        assert words in done.stdout, done.stdout
    with wave.open(str(tmp_path / FILES.get(name, "out.wav"))) as file:
        assert file.getnframes() > 2 * file.getframerate()
