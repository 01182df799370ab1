"""The snippets in docs/conversation.md run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs" / "conversation.md"
SNIPPETS = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("snippet", SNIPPETS, ids=range(len(SNIPPETS)))
def test_snippet(snippet: str) -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", snippet], check=True, cwd=DOCS.parents[1], timeout=120)
