"""How far one sequence is from another."""

from __future__ import annotations

from collections.abc import Sequence


def edits(got: Sequence[str], expected: Sequence[str]) -> int:
    """The least number of items to put in, take out or change (Levenshtein 1966)."""
    row = list(range(len(got) + 1))
    for i, wanted in enumerate(expected, start=1):
        before, row[0] = row[0], i
        for j, found in enumerate(got, start=1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (wanted != found))
    return row[-1]
