"""The snippets in docs/conversation.md and docs/dialogue.md run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
SNIPPETS = [
    pytest.param(snippet, id=f"{page}-{number}")
    for page in ("conversation", "dialogue")
    for number, snippet in enumerate(
        re.findall(r"```python\n(.*?)```", (DOCS / f"{page}.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    )
]


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_snippet(snippet: str) -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", snippet], check=True, cwd=DOCS.parent, timeout=120)
