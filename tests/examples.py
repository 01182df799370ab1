"""How many examples a property test tries: ``@settings(max_examples=examples(60))``.

``SAYLINE_EXAMPLES=3000`` gives a test that usually tries 100 examples 3,000, new ones on each run, and the others their share.
"""

from __future__ import annotations

import os

USUAL = 100
WANTED = int(os.environ.get("SAYLINE_EXAMPLES", USUAL))
SEARCHES = "SAYLINE_EXAMPLES" in os.environ


def examples(usual: int) -> int:
    """What a test that usually tries ``usual`` examples tries in this run."""
    return max(1, usual * WANTED // USUAL)
