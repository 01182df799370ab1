"""What the documents say holds: their Python snippets run, their commands exist, their links lead somewhere.

A block that is only part of a program is fenced as ``py``, and not run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
READMES = ("README.md", "README.zh-CN.md")
DOCUMENTS = [*READMES, "CONTRIBUTING.md", *sorted(str(path.relative_to(ROOT)) for path in (ROOT / "docs").glob("*.md"))]


def text_of(document: str) -> str:
    return (ROOT / document).read_text(encoding="utf-8")


SNIPPETS = [
    pytest.param(code, id=f"{Path(document).stem}-{number}")
    for document in DOCUMENTS
    for number, code in enumerate(re.findall(r"^```python\n(.*?)^```", text_of(document), re.DOTALL | re.MULTILINE))
]


@pytest.mark.parametrize("code", SNIPPETS)
def test_a_snippet_runs(code: str, tmp_path: Path) -> None:
    """Without a key, in an empty folder; all .wav files that its code names are there afterwards."""
    keyless = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env=keyless, capture_output=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr.decode()
    named = set(re.findall(r'"(\w+\.wav)"', re.sub(r"#.*", "", code)))
    assert {path.name for path in tmp_path.glob("*.wav")} == named


def test_commands_in_the_readme_exist() -> None:
    from voice_agent.cli.main import app

    known = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
    for name in READMES:
        used = set(re.findall(r"\bsayline ([a-z]+)\b", text_of(name)))
        assert used <= known


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_lead_somewhere(document: str) -> None:
    prose = re.sub(r"```.*?```|`[^`\n]*`", "", text_of(document), flags=re.DOTALL)
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", prose):
        assert ((ROOT / document).parent / target).exists(), f"{document} links to {target}, which is not there"
