"""The snippets of both READMEs run as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SNIPPETS = [
    (name, number, code)
    for name in ("README.md", "README.zh-CN.md")
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), re.DOTALL))
]


@pytest.mark.parametrize(("name", "number", "code"), SNIPPETS, ids=[f"{name}-{number}" for name, number, _ in SNIPPETS])
def test_python_snippets_run(name: str, number: int, code: str, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    written = set(re.findall(r'"(\w+\.wav)"', code))
    assert {path.name for path in tmp_path.glob("*.wav")} == written


def test_commands_in_the_readme_exist() -> None:
    from voice_agent.cli.main import app

    known = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
    for name in ("README.md", "README.zh-CN.md"):
        used = set(re.findall(r"\bsayline ([a-z]+)\b", (ROOT / name).read_text(encoding="utf-8")))
        assert used <= known


DOCUMENTS = ["README.md", "README.zh-CN.md", "CONTRIBUTING.md", *sorted(path.name for path in (ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("path", DOCUMENTS)
def test_links_lead_somewhere(path: str) -> None:
    file = ROOT / path if (ROOT / path).exists() else ROOT / "docs" / path
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", prose):
        assert (file.parent / target).exists(), f"{path} links to {target}, which is not there"
