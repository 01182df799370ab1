"""The snippets in docs/synthesizers.md run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[3] / "docs" / "synthesizers.md"
SNIPPETS = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.mark.parametrize("snippet", SNIPPETS, ids=range(len(SNIPPETS)))
def test_snippet(snippet):
    hidden = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    subprocess.run([sys.executable, "-W", "error", "-c", snippet], check=True, cwd=DOCS.parents[1], timeout=120, env=hidden)
