"""Speaking leaves nothing in the home folder: ONNX Runtime keeps an id there for what it sends to its maker."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SPEAKS = """
from tts_engine.engine import Engine
from tts_engine.types import Utterance

for _ in Engine.load().speak(Utterance("Hello.")):
    pass
"""


def test_no_telemetry_of_the_runtime(tmp_path: Path) -> None:
    hidden = ("ORT_DISABLE_TELEMETRY", "XDG_CACHE_HOME")
    environment = {name: value for name, value in os.environ.items() if name not in hidden}
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", SPEAKS],
        env={**environment, "HOME": str(tmp_path)},
        cwd=root,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    assert [path for path in tmp_path.rglob("*") if "onnxruntime" in path.name] == []
